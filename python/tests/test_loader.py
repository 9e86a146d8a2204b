"""`SkillLoader`: what it reads, and that it never runs what it reads."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import skillcell
from conftest import MakeSkill
from skillcell import SkillLoader

DECLARES = "env_vars:\n  TOKEN: {required: true}\n"


def test_loading_a_skill_runs_none_of_its_code(skill: MakeSkill, tmp_path: Path) -> None:
    folder, marker = skill("return 1"), tmp_path / "marker"
    source = folder / "skill.py"
    source.write_text(f"open({str(marker)!r}, 'w').close()\n" + source.read_text())
    (folder / "__init__.py").write_text(source.read_text())
    before = set(sys.modules)
    bundle = SkillLoader.load_skill(folder)
    SkillLoader.to_openai_tool(bundle)
    bundle["class"]()
    assert bundle["module"].Probe is bundle["class"]
    assert not marker.exists()
    assert not [m for m in set(sys.modules) - before if "skill" in m]
    # The same file does leave its mark where it is imported.
    spec = importlib.util.spec_from_file_location("probe", source)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert marker.exists()


def test_a_call_of_the_class_runs_in_a_cell(skill: MakeSkill, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("")
    body = f"import os\nreturn [__file__, os.path.exists({str(outside)!r})]"
    bundle = SkillLoader.load_skill(skill(body))
    in_cell = ["/skill/skill.py", False]
    assert bundle["class"]().execute({}) == in_cell
    assert asyncio.run(SkillLoader.get_skill_class(bundle)().aexecute({})) == in_cell
    assert SkillLoader.execute_isolated(bundle, {}).value == in_cell
    assert SkillLoader.execute_isolated(bundle["folder"], {}, timeout=5).skill.id == "probe"


def test_a_bundle_has_what_its_files_say(skill: MakeSkill) -> None:
    folder = skill("return 1", "description: Probes.\nissuer: {name: me}\n")
    (folder / "instructions.md").write_text("Ask first.")
    (folder / "card.json").write_text('{"icon": "x"}')
    bundle = SkillLoader.load_skill(str(folder))
    assert bundle["manifest"]["issuer"] == {"name": "me"}
    assert bundle["manifest"]["shape"] == "atomic"
    assert (bundle["instructions"], bundle["card"]) == ("Ask first.", {"icon": "x"})
    assert (bundle["registry_id"], bundle["folder"]) == (None, str(folder))
    bare = SkillLoader.load_skill(folder, execute_module=False)
    assert (bare["module"], bare["class"]) == (None, None)
    with pytest.raises(KeyError, match="execute_module"):
        SkillLoader.get_skill_class(bare)


def test_a_link_to_a_file_of_the_host_does_not_become_instructions(
    skill: MakeSkill, tmp_path: Path
) -> None:
    folder = skill("return 1")
    (tmp_path / "key").write_text("private")
    (folder / "instructions.md").symlink_to(tmp_path / "key")
    assert (folder / "instructions.md").read_text() == "private"
    with pytest.warns(skillcell.BundleWarning, match=r"instructions\.md"):
        bundle = SkillLoader.load_skill(folder)
    assert bundle["instructions"] == ""


def test_an_agent_skill_is_loaded_and_called_by_its_script(shell_tool: Path) -> None:
    bundle = SkillLoader.load_skill(shell_tool)
    assert bundle["manifest"]["name"] == "shell-tool"
    assert bundle["instructions"].strip().startswith("#")
    assert "scripts/count.sh" in bundle["scripts"]
    assert bundle["class"] is None
    bundle = SkillLoader.load_skill(shell_tool, entry="scripts/count.sh", args=["a b"])
    assert bundle["class"]().execute({})["words"] == 2


def test_a_module_has_nothing_but_the_class(skill: MakeSkill) -> None:
    module = SkillLoader.load_skill(skill("return 1"))["module"]
    with pytest.raises(AttributeError, match=r"isn't imported.*Probe"):
        module.helper  # noqa: B018
    assert not hasattr(module, "os")


def test_options_of_a_load_are_those_of_its_calls(skill: MakeSkill) -> None:
    bundle = SkillLoader.load_skill(skill("import time\ntime.sleep(20)"), timeout=0.5)
    with pytest.raises(skillcell.TimeoutExceeded):
        bundle["class"]().execute({})
    with pytest.raises(TypeError, match="tiemout"):
        SkillLoader.load_skill(bundle["folder"], tiemout=1)


def test_only_declared_variables_are_given_to_a_skill(
    skill: MakeSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = SkillLoader.load_skill(skill("import os\nreturn os.environ['TOKEN']", DECLARES))
    monkeypatch.setenv("TOKEN", " mine ")
    with pytest.raises(skillcell.InvalidInput, match="TOKEN"):
        bundle["class"]().execute({})
    config = SkillLoader.resolve_env_vars(bundle["manifest"])
    assert config == {"TOKEN": "mine"}
    assert bundle["class"](config).execute({}) == "mine"
    assert bundle["class"](config=SkillLoader.resolve_env_vars(bundle["manifest"], {})).config == {}
    assert bundle["class"](config, credential_fn={"TOKEN": "other"}.get).execute({}) == "other"
    with pytest.raises(skillcell.InvalidInput, match="OTHER"):
        bundle["class"](config={"OTHER": "x"})


def test_a_failure_that_a_skill_reports_is_its_answer(skill: MakeSkill) -> None:
    bundle = SkillLoader.load_skill(skill("return {'error': 'no such wallet'}"))
    assert bundle["class"]().execute({}) == {"error": "no such wallet"}
    bundle = SkillLoader.load_skill(skill("raise KeyError('x')", name="raises"))
    with pytest.raises(skillcell.SkillFailed):
        bundle["class"]().execute({})


def test_a_failure_that_is_reported_after_a_denial_warns_or_raises(skill: MakeSkill) -> None:
    body = "try:\n    open('/usr/x', 'w')\nexcept OSError:\n    return {'error': 'no disk'}"
    bundle = SkillLoader.load_skill(skill(body))
    with pytest.warns(skillcell.DenialWarning, match="/usr/x") as seen:
        assert bundle["class"]().execute({}) == {"error": "no disk"}
    assert seen[0].filename == __file__
    with pytest.raises(skillcell.Denied):
        SkillLoader.load_skill(bundle["folder"], strict_denials=True)["class"]().execute({})


def test_params_can_be_checked_without_a_call(hello: Path) -> None:
    instance = SkillLoader.load_skill(hello)["class"]()
    assert instance.validate_params({"name": "x"}) is True
    with pytest.raises(ValueError, match="required property"):
        instance.validate_params({})
    assert instance.manifest["name"] == "hello"


def test_a_skill_that_is_not_there_is_an_error_as_of_skillware() -> None:
    with pytest.raises(FileNotFoundError):
        SkillLoader.load_skill("no/such")


def test_python_m_skillcell_is_the_command() -> None:
    source = Path(skillcell.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "skillcell", "--version"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("skillcell ")
    environment["SKILLCELL_BIN"] = "/nowhere"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "set SKILLCELL_BIN" in done.stderr
