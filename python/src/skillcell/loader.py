"""A `SkillLoader` for agents that have Skillware's: the same calls, but in cells."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from . import _api, _tools
from ._isolated import IsolatedModule, IsolatedSkill, explain, isolated_class
from ._request import Options
from ._text import printable
from ._warnings import BundleWarning
from .result import Result

if TYPE_CHECKING:
    from ._request import Path as SkillPath

TAXONOMY: dict[str, Any] = {"shape": "atomic", "tier": "core", "target": ["software"], "tags": []}
"""What Skillware takes for granted where a manifest is silent."""


class SecretProvider(Protocol):
    """Anything with a `get`, such as a dict."""

    def get(self, key: str, /) -> str | None: ...


class SkillLoader:
    """Reads skills and describes them to models. Their code runs in cells only."""

    @staticmethod
    def load_skill(
        skill_path: SkillPath, *, execute_module: bool = True, **options: Any
    ) -> dict[str, Any]:
        """What a bundle says about itself, and a class whose calls are made in cells.

        The dict has `manifest`, `instructions`, `card`, `registry_id`, `module` and `class`, as
        Skillware's has; and `folder` and `scripts`. Nothing of the skill is run or imported.

        Args:
            skill_path: A skill's folder, or its id (`category/name`).
            execute_module: False leaves `module` and `class` out.
            options: Keywords of `skillcell.run` for the calls of `class`.
        """
        chosen = Options(**options)
        found = explain(os.fspath(skill_path), None, chosen)
        for message in found["warnings"]:
            warnings.warn(printable(f"{skill_path}: {message}"), BundleWarning, stacklevel=2)
        folder, manifest = Path(found["folder"]), {**copy.deepcopy(TAXONOMY), **found["manifest"]}
        skill_class = module = None
        if execute_module and found["entry"]["kind"] != "none":
            names = found["classes"] or ["Skill"]
            skill_class = isolated_class(names[0], str(folder), manifest, chosen)
            module = IsolatedModule(folder / "skill.py", dict.fromkeys(names, skill_class))
        return {
            "manifest": manifest,
            "instructions": found["instructions"] or "",
            "card": found["card"] or {},
            "registry_id": _registry_id(folder, manifest),
            "module": module,
            "class": skill_class,
            "folder": str(folder),
            "scripts": found["scripts"],
        }

    @staticmethod
    def execute_isolated(
        skill: SkillPath | Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        timeout: float | str | None = 30,
        **options: Any,
    ) -> Result:
        """As `skillcell.run`, for a path, an id, or what `load_skill` gave."""
        folder = skill["folder"] if isinstance(skill, Mapping) else skill
        return _api.run_with(folder, params, Options(timeout=timeout, **options))

    @staticmethod
    def get_skill_class(skill_bundle: Mapping[str, Any]) -> type[IsolatedSkill]:
        """The class of a loaded bundle."""
        skill_class = skill_bundle.get("class")
        if skill_class is None:
            raise KeyError(
                "the bundle has no class: load it without execute_module=False, and an Agent "
                "Skill with entry= and one of its scripts"
            )
        chosen: type[IsolatedSkill] = skill_class
        return chosen

    @staticmethod
    def resolve_env_vars(
        manifest: Mapping[str, Any], provider: SecretProvider | None = None
    ) -> dict[str, str]:
        """Values for the variables that a manifest declares, for `config` of the class."""
        source: SecretProvider = os.environ if provider is None else provider
        declared = manifest.get("env_vars")
        names = declared if isinstance(declared, Mapping) else {}
        found = {name: (source.get(name) or "").strip() for name in names}
        return {name: value for name, value in found.items() if value}

    to_openai_tool = staticmethod(_tools.openai_tool)
    to_deepseek_tool = staticmethod(_tools.openai_tool)
    to_claude_tool = staticmethod(_tools.claude_tool)
    to_gemini_tool = staticmethod(_tools.gemini_tool)
    to_bedrock_tool = staticmethod(_tools.bedrock_tool)
    to_ollama_prompt = staticmethod(_tools.ollama_prompt)

    # Skillware's guides have agents match the names of tool calls by these.
    _sanitize_function_tool_name = staticmethod(_tools.tool_name)
    _sanitize_openai_tool_name = staticmethod(_tools.tool_name)
    _sanitize_deepseek_tool_name = staticmethod(_tools.tool_name)
    _sanitize_claude_tool_name = staticmethod(_tools.tool_name)
    _sanitize_gemini_tool_name = staticmethod(_tools.tool_name)
    _sanitize_bedrock_tool_name = staticmethod(_tools.tool_name)


def _registry_id(folder: Path, manifest: Mapping[str, Any]) -> str | None:
    """`category/name`, where the skill lies in folders of these names."""
    expected = f"{folder.parent.name}/{folder.name}"
    return expected if manifest.get("name") == expected else None
