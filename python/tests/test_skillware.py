"""Beside Skillware itself: the same bundles, the same tools, the same agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from skillware.core.discovery import bundled_skills_root, list_registry_skill_ids
from skillware.core.loader import SkillLoader as Original

import skillcell
from skillcell import SkillLoader

SKILLS = list_registry_skill_ids(bundled_skills_root())

# Its manifest has an unquoted `off`, for which PyYAML reads False, so that Skillware offers models
# a choice that the skill doesn't take. Skillcell reads YAML 1.2, where it is a word.
READS_OFF_AS_FALSE = "security/deceptive_ui_guard"
# Where a block of text ends with the file and without a line end, the parsers differ by that.
ENDS_WITHOUT_LINE_END = "data_engineering/novelty_extractor"


def pair(skill: str) -> tuple[dict[str, Any], dict[str, Any]]:
    theirs = Original.load_skill(skill, check_requirements=False, execute_module=False)
    return theirs, SkillLoader.load_skill(skill)


def gemini_or_error(loader: Any, bundle: dict[str, Any]) -> Any:
    """Gemini's SDK doesn't take every JSON Schema: lists of types, numbers in an enum."""
    try:
        return loader.to_gemini_tool(bundle)
    except (AttributeError, ValueError):
        return "not for Gemini"


def test_all_bundled_skills_are_compared() -> None:
    assert len(SKILLS) == 28


@pytest.mark.parametrize("skill", SKILLS)
def test_a_bundle_and_its_tools_are_those_of_skillware(skill: str) -> None:
    theirs, ours = pair(skill)
    if skill == READS_OFF_AS_FALSE:
        mode = theirs["manifest"]["parameters"]["properties"]["render_mode"]
        assert mode["default"] is False
        mode["default"] = "off"
        mode["enum"][mode["enum"].index(False)] = "off"
    if skill == ENDS_WITHOUT_LINE_END:
        theirs["manifest"]["constitution"] += "\n"
    for part in ("manifest", "instructions", "card", "registry_id"):
        assert ours[part] == theirs[part], part
    assert SkillLoader.to_openai_tool(ours) == Original.to_openai_tool(theirs)
    assert SkillLoader.to_deepseek_tool(ours) == Original.to_deepseek_tool(theirs)
    assert SkillLoader.to_claude_tool(ours) == Original.to_claude_tool(theirs)
    assert SkillLoader.to_bedrock_tool(ours) == Original.to_bedrock_tool(theirs)
    assert SkillLoader.to_ollama_prompt(ours) == Original.to_ollama_prompt(theirs)
    assert gemini_or_error(SkillLoader, ours) == gemini_or_error(Original, theirs)
    source = (Path(ours["folder"]) / "skill.py").read_text()
    assert f"class {ours['class'].__name__}(BaseSkill)" in source


@pytest.mark.parametrize(
    "name", ["a/b", "", "a//b__c", "__", "é", "x" * 80, "_a_", "office/pdf form.filler", "a-b"]
)
def test_names_of_tools_are_those_of_skillware(name: str) -> None:
    expected = Original._sanitize_function_tool_name(name)
    assert SkillLoader._sanitize_gemini_tool_name(name) == expected


def test_without_its_sdk_a_gemini_tool_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, hello: Path
) -> None:
    monkeypatch.setitem(sys.modules, "google.genai.types", None)
    with pytest.raises(ImportError, match="pip install google-genai"):
        SkillLoader.to_gemini_tool(SkillLoader.load_skill(hello))


def test_an_agent_that_changes_one_import_gives_the_same_answer(tmp_path: Path) -> None:
    original = (Path(__file__).parent / "agent_loop.py").read_text()
    line = "from skillware.core.loader import SkillLoader"
    assert original.count(line) == 1
    (tmp_path / "before.py").write_text(original)
    (tmp_path / "after.py").write_text(original.replace(line, "from skillcell import SkillLoader"))
    before, after = (answer(tmp_path / name) for name in ("before.py", "after.py"))
    answers = [m["content"] for m in after["messages"] if m["role"] == "tool"]
    assert "summarise this" in answers[0]
    assert "do not fit the schema" in answers[1]
    assert "instruction_override" in answers[2]
    assert '"error"' in answers[3]
    assert after == before
    log = "".join(p.read_text() for p in (tmp_path / "state" / "audit").glob("*.jsonl"))
    assert "optimization/prompt_rewriter" in log


def answer(agent: Path) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(Path(skillcell.__file__).parents[1])}
    environment.pop("VIRTUAL_ENV", None)
    done = subprocess.run(
        [sys.executable, str(agent)],
        env=environment,
        cwd=agent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
