"""What stands where Skillware has a skill's module and class. Neither holds code of the skill."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from . import _api
from ._request import Options, make_request
from ._warnings import DenialWarning, denial_message
from .errors import Denied, InvalidInput, SkillFailed, error_of

REPORTED = "skill_reported_error"


class IsolatedSkill:
    """A skill of which every call is made in a cell of its own."""

    folder: ClassVar[str]
    contract: ClassVar[dict[str, Any]]
    options: ClassVar[Options]

    def __init__(
        self,
        config: Mapping[str, str] | None = None,
        credential_fn: Callable[[str], str | None] | None = None,
    ) -> None:
        """`config` and `credential_fn` give values to variables that the manifest declares."""
        self.config = dict(config or {})
        self._credential_fn = credential_fn
        for name in self.config:
            if name not in self._declared():
                raise InvalidInput(
                    f"{self.folder}: config has {name!r}, which isn't in env_vars of the manifest",
                    hint="only declared variables reach a cell; give other things as params",
                )

    @property
    def manifest(self) -> dict[str, Any]:
        return self.contract

    def execute(self, params: Mapping[str, Any]) -> Any:
        """What the skill returns; a failure that it reports itself is returned, as by Skillware."""
        try:
            return _api.run_with(self.folder, params, self._options()).value
        except (SkillFailed, Denied) as error:
            return self._reported(error)

    async def aexecute(self, params: Mapping[str, Any]) -> Any:
        """As `execute`, without blocking the event loop."""
        try:
            return (await _api.arun_with(self.folder, params, self._options())).value
        except (SkillFailed, Denied) as error:
            return self._reported(error)

    def validate_params(self, params: Mapping[str, Any]) -> bool:
        """True, or an `InvalidParams`, which is a ValueError. Nothing is run."""
        explain(self.folder, params, self._options())
        return True

    def _declared(self) -> Mapping[str, Any]:
        declared = self.contract.get("env_vars")
        return declared if isinstance(declared, Mapping) else {}

    def _options(self) -> Options:
        values = dict(self.config)
        if self._credential_fn is not None:
            asked = {name: self._credential_fn(name) for name in self._declared()}
            values.update({name: value for name, value in asked.items() if value})
        given = make_request(self.folder, None, self.options).env
        own = {name: value for name, value in given.items() if name not in values}
        return replace(self.options, env={**own, **values})

    def _reported(self, error: SkillFailed | Denied) -> Any:
        if error.code != REPORTED or (error.denials and self.options.strict_denials):
            raise error
        if error.denials:
            message = denial_message(error.skill.id or self.folder, error.denials)
            warnings.warn(message, DenialWarning, stacklevel=3)
        return error.value


class IsolatedModule:
    """Has the skill's class under the name that it has in `skill.py`, and nothing else."""

    def __init__(self, file: Path, classes: Mapping[str, type[IsolatedSkill]]) -> None:
        self.__name__ = "skill_module"
        self.__file__ = str(file)
        self._classes = dict(classes)

    def __getattr__(self, name: str) -> type[IsolatedSkill]:
        classes: dict[str, type[IsolatedSkill]] = self.__dict__.get("_classes", {})
        if name in classes:
            return classes[name]
        there = ", ".join(classes) or "none"
        raise AttributeError(
            f"{name!r}: skill.py isn't imported, only its skill class can be called: {there}"
        )


def isolated_class(
    name: str, folder: str, manifest: dict[str, Any], options: Options
) -> type[IsolatedSkill]:
    """The class of one skill."""
    return type(
        name,
        (IsolatedSkill,),
        {"folder": folder, "contract": manifest, "options": options, "__module__": __name__},
    )


def explain(skill: str, params: Mapping[str, Any] | None, options: Options) -> Mapping[str, Any]:
    """What `skillcell explain` says of a call."""
    found = _api.explain_with(skill, params, options)
    if found.get("error"):
        raise error_of(skill, found)
    return found
