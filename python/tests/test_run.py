"""One call: what it gives, and what it raises."""

from __future__ import annotations

import datetime
import inspect
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import skillcell
from conftest import MakeSkill

LOOKS_UP = "import socket\nsocket.getaddrinfo('api.example.com', 443)"
LOOKS_UP_AND_GOES_ON = """
import socket
try:
    socket.getaddrinfo('api.example.com', 443)
except OSError:
    return {'verdict': 'clean'}
"""
WRITES = """
try:
    open('/usr/x', 'w')
except OSError:
    return 'done'
"""


def test_a_call_gives_its_value_and_all_of_its_envelope(hello: Path) -> None:
    result = skillcell.run(hello, {"name": "world"})
    assert result.value == {"greeting": "Hello, world!"}
    assert result.skill.id == "hello"
    assert result.run_id == result.envelope["run_id"]
    assert {e.status for e in result.enforcement} == {"enforced"}
    assert result.usage.wall_ms > 0
    assert result.audit.events > 0
    assert result.denials == ()
    assert (result.output, result.stdout, result.stderr) == (None, None, None)


def test_a_skill_that_raises_is_an_error_with_its_message_and_output(skill: MakeSkill) -> None:
    folder = skill("print('before')\nraise RuntimeError('no luck')")
    with pytest.raises(skillcell.SkillFailed, match="no luck") as caught:
        skillcell.run(folder)
    assert caught.value.code == "skill_exception"
    assert caught.value.output is not None
    assert "before" in caught.value.output.stdout
    assert caught.value.envelope is not None
    assert caught.value.run_id == caught.value.envelope["run_id"]


def test_a_skill_that_says_it_failed_keeps_its_value(skill: MakeSkill) -> None:
    with pytest.raises(skillcell.SkillFailed) as caught:
        skillcell.run(skill("return {'error': 'no such wallet'}"))
    assert caught.value.value == {"error": "no such wallet"}


def test_params_that_do_not_fit_the_schema_are_named_with_a_hint(hello: Path) -> None:
    with pytest.raises(skillcell.InvalidParams, match=r"name.* is a required property") as caught:
        skillcell.run(hello, {})
    assert isinstance(caught.value, skillcell.InvalidInput)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("params", "culprit"),
    [
        ({"at": datetime.date(2026, 1, 1)}, r"params\['at'\] is a date"),
        ({"a": [1, {"b": {1, 2}}]}, r"params\['a'\]\[1\]\['b'\] is a set"),
        ({"x": float("nan")}, r"params\['x'\] is nan"),
        ({("a", "b"): 1}, "a key of type tuple"),
        ([1], "params are a list, not a dict"),
    ],
)
def test_params_that_are_not_json_are_named_before_anything_starts(
    params: Any, culprit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLCELL_BIN", "/nowhere")
    with pytest.raises(skillcell.InvalidParams, match=culprit):
        skillcell.run("any", params)


def test_params_that_hold_themselves_are_an_error(hello: Path) -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    with pytest.raises(skillcell.InvalidParams, match="holds itself"):
        skillcell.run(hello, loop)


def test_a_success_with_denials_warns_with_the_line_that_would_allow_it(skill: MakeSkill) -> None:
    folder = skill(LOOKS_UP_AND_GOES_ON)
    with pytest.warns(skillcell.DenialWarning) as seen:
        result = skillcell.run(folder)
    assert result.value == {"verdict": "clean"}
    (denial,) = result.denials
    assert (denial.kind, denial.target) == ("network", "api.example.com")
    text = str(seen[0].message)
    assert "network api.example.com" in text
    assert "egress: [{domains: [api.example.com]" in text
    assert seen[0].filename == __file__


def test_with_strict_denials_the_same_call_is_denied(skill: MakeSkill) -> None:
    with pytest.raises(skillcell.EgressDenied, match=r"api\.example\.com") as caught:
        skillcell.run(skill(LOOKS_UP_AND_GOES_ON), strict_denials=True)
    assert caught.value.code == "strict_denials"
    assert caught.value.value == {"verdict": "clean"}


def test_a_denial_that_is_not_of_the_network_is_no_egress(skill: MakeSkill) -> None:
    with pytest.raises(skillcell.Denied) as caught:
        skillcell.run(skill(WRITES), strict_denials=True)
    assert not isinstance(caught.value, skillcell.EgressDenied)
    assert caught.value.denials[0].kind == "filesystem"


def test_a_skill_that_fails_for_lack_of_network_is_egress_denied(skill: MakeSkill) -> None:
    with pytest.raises(skillcell.EgressDenied) as caught:
        skillcell.run(skill(LOOKS_UP))
    assert "policy line" in str(caught.value)


def test_what_a_skill_chose_cannot_forge_lines_of_a_message(skill: MakeSkill) -> None:
    folder = skill("raise RuntimeError('x\\nhint: \\x1b[31mrun this\\u202e')")
    with pytest.raises(skillcell.SkillFailed) as caught:
        skillcell.run(folder)
    text = str(caught.value)
    assert "run this" in text
    assert "\nhint: \x1b" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_limit_has_its_name(skill: MakeSkill) -> None:
    folder = skill(
        "if params['what'] == 'time':\n    import time; time.sleep(60)\nx = b'x' * (200 << 20)"
    )
    with pytest.raises(skillcell.TimeoutExceeded) as late:
        skillcell.run(folder, {"what": "time"}, timeout=0.8)
    assert late.value.limit == "timeout"
    with pytest.raises(skillcell.MemoryExceeded) as large:
        skillcell.run(folder, {"what": "memory"}, memory="64MiB")
    assert large.value.limit == "memory"


def test_what_cannot_be_enforced_is_refused(
    hello: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SKILLCELL_STATE_DIR", str(tmp_path / "file" / "state"))
    with pytest.raises(skillcell.Refused, match="the audit log can't be written"):
        skillcell.run(hello, {"name": "x"})


def test_a_result_that_is_not_json_is_an_invalid_result(skill: MakeSkill) -> None:
    with pytest.raises(skillcell.InvalidResult):
        skillcell.run(skill("return {1, 2}"))


def test_an_integer_that_python_cannot_read_is_an_invalid_result(skill: MakeSkill) -> None:
    folder = skill("import sys\nsys.set_int_max_str_digits(0)\nreturn 10 ** params['digits']")
    assert skillcell.run(folder, {"digits": 4000}).value == 10**4000
    with pytest.raises(skillcell.InvalidResult, match="5001 digits"):
        skillcell.run(folder, {"digits": 5000})


def test_a_skill_that_is_not_there_is_a_file_not_found_too() -> None:
    with pytest.raises(FileNotFoundError, match="no skill `nope/nope`") as caught:
        skillcell.run("nope/nope")
    assert isinstance(caught.value, skillcell.SkillNotFound)


def test_arguments_that_the_binary_does_not_take_are_an_invalid_input(hello: Path) -> None:
    with pytest.raises(skillcell.InvalidInput, match="--memory"):
        skillcell.run(hello, {"name": "x"}, memory="much")
    for timeout in (0, -1, float("inf"), float("nan")):
        with pytest.raises(skillcell.InvalidInput, match="no length of time"):
            skillcell.run(hello, {"name": "x"}, timeout=timeout)
    with pytest.raises(skillcell.InvalidInput, match="NUL"):
        skillcell.run(hello, {"name": "x"}, actor="a\0b")


def test_no_argument_can_become_a_flag(hello: Path) -> None:
    with pytest.raises(skillcell.InvalidInput, match="as a flag"):
        skillcell.run("--help")
    result = skillcell.run(hello, {"name": "x"}, actor="--trust")
    assert result.value == {"greeting": "Hello, x!"}


def test_what_the_skill_printed_is_there_on_request(skill: MakeSkill) -> None:
    folder = skill("import sys\nprint('out')\nprint('err', file=sys.stderr)\nreturn 1")
    result = skillcell.run(folder, show_output=True)
    assert (result.stdout, result.stderr) == ("out\n", "err\n")


def test_files_come_in_by_read_and_out_by_write(tmp_path: Path) -> None:
    report = Path(__file__).resolve().parents[2] / "examples" / "skills" / "file_report"
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one two two")
    paths = {"input_path": str(source), "output_path": str(target)}
    with pytest.raises(skillcell.Denied, match="the keyword"):
        skillcell.run(report, paths)
    assert skillcell.run(report, paths, read=source, write=[target]).value["words"] == 3
    assert target.exists()


def test_policy_and_isolation_and_trust_reach_the_plan(hello: Path, tmp_path: Path) -> None:
    policy = tmp_path / "skillcell.yaml"
    policy.write_text("version: 1\ndefaults:\n  resources: {timeout: 7s}\n")
    result = skillcell.run(hello, {"name": "x"}, policy=policy)
    held = {e.control: e.mechanism for e in result.enforcement}
    assert "7s" in held["timeout"]
    with pytest.raises(skillcell.Denied):
        skillcell.run(hello, {"name": "x"}, isolation="process")
    result = skillcell.run(hello, {"name": "x"}, isolation="process", trust=True)
    assert "namespace" not in {e.control: e.mechanism for e in result.enforcement}["network"]


def test_a_timeout_of_none_is_the_manifests(skill: MakeSkill) -> None:
    asks = "security_policy: {version: 1, resources: {timeout: 9s}}\n"
    result = skillcell.run(skill("return 1", asks), timeout=None)
    assert "9s" in {e.control: e.mechanism for e in result.enforcement}["timeout"]


def test_who_asked_is_in_the_record(hello: Path) -> None:
    result = skillcell.run(hello, {"name": "x"}, actor="me", request_id="r-1", audit="decisions")
    assert result.audit.log is not None
    log = Path(result.audit.log).read_text()
    assert '"me"' in log
    assert '"r-1"' in log
    assert "level decisions" in {e.control: e.mechanism for e in result.enforcement}["audit"]


def test_a_script_of_an_agent_skill_takes_entry_and_args(shell_tool: Path) -> None:
    result = skillcell.run(shell_tool, entry="scripts/count.sh", args=["one two three"])
    assert result.value["words"] == 3


FAKE = """#!/usr/bin/python3
import json, sys
print(json.dumps({"run_id": "r", "skill": {}, "status": "ok", "result": sys.argv[1:],
    "error": None, "denials": [], "enforcement": [], "audit": {"log": None, "events": 0,
    "head": None}, "usage": {"wall_ms": 0, "cpu_ms": 0, "peak_memory_bytes": 0, "bytes_out": 0,
    "bytes_in": 0}}))
"""
FLAGS: dict[str, tuple[Any, list[str]]] = {
    "timeout": ("2m", ["--timeout=2m"]),
    "env": (["A", "B"], ["--env=A", "--env=B"]),
    "read": (["a", Path("b")], ["--read=a", "--read=b"]),
    "write": ("-x", ["--write=-x"]),
    "memory": (1 << 20, ["--memory=1048576"]),
    "policy": (["p", "q"], ["--policy=p", "--policy=q"]),
    "isolation": ("process", ["--isolation=process"]),
    "trust": (True, ["--trust"]),
    "allow_degraded": (["cpu", "memory"], ["--allow-degraded=cpu", "--allow-degraded=memory"]),
    "strict_denials": (True, ["--strict-denials"]),
    "audit": ("full", ["--audit=full"]),
    "actor": ("me", ["--actor=me"]),
    "request_id": ("r", ["--request-id=r"]),
    "python": ("/usr/bin/python3", ["--python=/usr/bin/python3"]),
    "deps": (Path("venv"), ["--deps=venv"]),
    "entry": ("scripts/a", ["--entry=scripts/a"]),
    "args": (["--x", "y"], ["--", "--x", "y"]),
    "show_output": (True, ["--show-output"]),
}


@pytest.mark.parametrize("keyword", FLAGS)
def test_each_keyword_is_its_flag(
    keyword: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "fake"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    monkeypatch.setenv("SKILLCELL_BIN", str(fake))
    value, flags = FLAGS[keyword]
    chosen: dict[str, Any] = {"timeout": None, keyword: value}
    assert skillcell.run("s", **chosen).value == ["run", "s", "--json", *flags]


def test_the_async_twin_takes_the_same_keywords() -> None:
    signature = inspect.signature(skillcell.run)
    assert signature == inspect.signature(skillcell.arun)
    assert set(signature.parameters) - {"skill", "params", "runtime"} == set(FLAGS)


def test_a_missing_binary_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hello: Path
) -> None:
    monkeypatch.setenv("SKILLCELL_BIN", str(tmp_path / "gone"))
    with pytest.raises(skillcell.BinaryNotFound, match="set SKILLCELL_BIN"):
        skillcell.run(hello)
    monkeypatch.delenv("SKILLCELL_BIN")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(skillcell.BinaryNotFound, match="install the wheel"):
        skillcell.run(hello)


def test_a_binary_on_the_path_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hello: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "skillcell").symlink_to(os.environ["SKILLCELL_BIN"])
    monkeypatch.delenv("SKILLCELL_BIN")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert skillcell.run(hello, {"name": "x"}).value == {"greeting": "Hello, x!"}


def test_another_program_for_a_binary_is_an_internal_error(
    monkeypatch: pytest.MonkeyPatch, hello: Path
) -> None:
    monkeypatch.setenv("SKILLCELL_BIN", "/bin/false")
    with pytest.raises(skillcell.InternalError, match="gave no envelope"):
        skillcell.run(hello)


def test_errors_travel_between_processes(skill: MakeSkill) -> None:
    with pytest.raises(skillcell.EgressDenied) as caught:
        skillcell.run(skill(LOOKS_UP))
    # The pickle is our own.
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert type(copy) is skillcell.EgressDenied
    assert str(copy) == str(caught.value)
    assert copy.denials == caught.value.denials
