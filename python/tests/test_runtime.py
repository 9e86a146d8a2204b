"""Calls through a daemon are calls as without one; and nobody is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import skillcell
from conftest import MakeSkill
from processes import alive, command_lines, descendants, in_cell, until
from skillcell import _exchange, _http

SLEEPS = "import time\ntime.sleep(50)"


@pytest.fixture
def runtime() -> Iterator[skillcell.Runtime]:
    with skillcell.Runtime() as made:
        yield made


def daemons() -> list[int]:
    return [pid for pid, name in descendants().items() if name == "skillcell"]


def test_a_call_gives_what_it_gives_without_a_daemon(
    runtime: skillcell.Runtime, hello: Path
) -> None:
    plain = skillcell.run(hello, {"name": "é"})
    for result in (
        runtime.run(hello, {"name": "é"}),
        skillcell.run(hello, {"name": "é"}, runtime=runtime),
        asyncio.run(runtime.arun(hello, {"name": "é"})),
        asyncio.run(skillcell.arun(hello, {"name": "é"}, runtime=runtime)),
    ):
        assert result.value == plain.value == {"greeting": "Hello, é!"}
        assert result.enforcement == plain.enforcement
        assert result.skill == plain.skill
        assert result.run_id != plain.run_id
    assert len(daemons()) == 1


def test_errors_are_those_of_a_call_without_a_daemon(
    runtime: skillcell.Runtime, skill: MakeSkill, tmp_path: Path
) -> None:
    folder = skill(
        "import time\nif 's' in params: time.sleep(9)\nif 'd' in params: open('/usr/x', 'w')\n"
        "raise ValueError(params)",
        "parameters: {type: object, properties: {n: {type: integer}}}\n",
    )
    for params, options, kind in (
        ({"n": "x"}, {}, skillcell.InvalidParams),
        ({"n": 1}, {}, skillcell.SkillFailed),
        ({"s": 1}, {"timeout": 1}, skillcell.TimeoutExceeded),
        ({"d": 1}, {}, skillcell.Denied),
        ({}, {"isolation": "microvm"}, skillcell.Refused),
        ({}, {"isolation": "nonsense"}, skillcell.InvalidInput),
        ({}, {"timeout": "soon"}, skillcell.InvalidInput),
        ({}, {"env": {"LD_PRELOAD": "x"}}, skillcell.InvalidInput),
        ({}, {"policy": tmp_path / "nowhere.yaml"}, skillcell.InvalidInput),
    ):
        with pytest.raises(kind) as plain:
            skillcell.run(folder, params, **options)
        with pytest.raises(kind) as through:
            runtime.run(folder, params, **options)
        assert type(through.value) is type(plain.value)
        assert through.value.code == plain.value.code
        if plain.value.envelope:
            assert str(through.value) == str(plain.value)
    with pytest.raises(skillcell.SkillNotFound):
        runtime.run("no/such_skill")


def test_variables_and_relative_paths_are_the_callers_at_the_call(
    runtime: skillcell.Runtime,
    skill: MakeSkill,
    hello: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    declares = (
        "env_vars: {TOKEN: {required: true}}\n"
        "security_policy: {version: 1, filesystem: {params: {file: read}}}\n"
    )
    folder = skill("import os\nreturn [os.environ['TOKEN'], open(params['file']).read()]", declares)
    runtime.run(hello, {"name": "first"})  # the daemon has the variables of before
    (tmp_path / "data.txt").write_text("mine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", "set later")
    params = {"file": "data.txt"}
    result = runtime.run(folder.name, params, env=["TOKEN"], read="data.txt")
    assert result.value == ["set later", "mine"]
    result = runtime.run(folder.name, params, env={"TOKEN": "given"}, read="data.txt")
    assert result.value[0] == "given"
    assert "given" not in command_lines()
    monkeypatch.delenv("TOKEN")
    with pytest.raises(skillcell.InvalidInput, match="TOKEN"):
        runtime.run(folder.name, params, env=["TOKEN"], read="data.txt")


def test_denials_warn_at_the_line_of_the_caller(
    runtime: skillcell.Runtime, skill: MakeSkill
) -> None:
    folder = skill("try:\n    open('/usr/x', 'w')\nexcept OSError:\n    return 1")

    async def acall() -> None:
        await runtime.arun(folder)

    for call in (
        lambda: runtime.run(folder),
        lambda: skillcell.run(folder, runtime=runtime),
        lambda: asyncio.run(acall()),
    ):
        with pytest.warns(skillcell.DenialWarning) as seen:
            call()
        assert [warning.filename for warning in seen] == [__file__]


def test_what_a_skill_prints_is_told_while_it_runs(
    runtime: skillcell.Runtime, skill: MakeSkill
) -> None:
    folder = skill(
        "import sys\nprint('one é', flush=True)\nimport time\ntime.sleep(1)\n"
        "print('two', file=sys.stderr, flush=True)\nreturn {'envelope': ',\"dropped\":'}"
    )
    expected = [("output", "one é\n", "stdout"), ("output", "two\n", "stderr")]
    told: list[skillcell.Event] = []
    result = runtime.run(folder, on_event=told.append)
    assert [(e.kind, e.text, e.stream) for e in told] == expected
    assert result.value == {"envelope": ',"dropped":'}
    told.clear()
    assert asyncio.run(runtime.arun(folder, on_event=told.append)).value == result.value
    assert [(e.kind, e.text, e.stream) for e in told] == expected


def test_an_error_while_listening_ends_the_call(
    runtime: skillcell.Runtime, skill: MakeSkill
) -> None:
    folder = skill("print('x', flush=True)\nimport time\ntime.sleep(50)")

    def fail(_: skillcell.Event) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        runtime.run(folder, on_event=fail)
    assert not in_cell()


def test_many_threads_and_tasks_share_a_runtime(runtime: skillcell.Runtime, hello: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: runtime.run(hello, {"name": str(n)}), range(16)))
    assert [r.value["greeting"] for r in results] == [f"Hello, {n}!" for n in range(16)]

    async def call() -> list[skillcell.Result]:
        calls = [runtime.arun(hello, {"name": str(n)}, timeout=60) for n in range(16)]
        return await asyncio.gather(*calls)

    results = asyncio.run(call())
    assert [r.value["greeting"] for r in results] == [f"Hello, {n}!" for n in range(16)]
    assert len(daemons()) == 1


def test_a_cancelled_call_leaves_no_cell_and_the_runtime_goes_on(
    runtime: skillcell.Runtime, skill: MakeSkill, hello: Path
) -> None:
    folder = skill(SLEEPS)

    async def cancel() -> None:
        task = asyncio.create_task(runtime.arun(folder))
        await asyncio.to_thread(until, in_cell)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert not in_cell()
    assert runtime.run(hello, {"name": "x"}).value


def test_a_keyboard_interrupt_ends_the_call_and_not_the_daemon(
    runtime: skillcell.Runtime, skill: MakeSkill, hello: Path
) -> None:
    folder = skill(SLEEPS)

    def interrupt() -> None:
        until(in_cell)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        runtime.run(folder)
    thread.join()
    assert not in_cell()
    assert runtime.run(hello, {"name": "x"}).value


def test_a_closed_runtime_leaves_nothing_running_and_makes_no_calls(hello: Path) -> None:
    runtime = skillcell.Runtime()
    runtime.run(hello, {"name": "x"})
    running = descendants()
    assert running
    runtime.close()
    assert alive(running) == {}
    with pytest.raises(RuntimeError, match="closed"):
        runtime.run(hello, {"name": "x"})


def test_a_killed_daemon_fails_the_call_and_the_next_one_has_another(
    runtime: skillcell.Runtime, skill: MakeSkill, hello: Path
) -> None:
    folder = skill(SLEEPS)
    runtime.run(hello, {"name": "x"})
    (daemon,) = daemons()

    def kill() -> None:
        until(in_cell)
        os.kill(daemon, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(skillcell.InternalError, match="went away"):
        runtime.run(folder)
    thread.join()
    until(lambda: not in_cell())
    assert runtime.run(hello, {"name": "x"}).value
    assert daemon not in daemons()


def test_a_daemon_ends_with_an_agent_that_is_killed(hello: Path) -> None:
    code = (
        "import os, signal, skillcell, sys\n"
        "runtime = skillcell.Runtime()\n"
        "runtime.run(sys.argv[1], {'name': 'x'})\n"
        "print(runtime._own.path, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    source = str(Path(skillcell.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    ended = subprocess.run(
        [sys.executable, "-c", code, str(hello)], env=environment, capture_output=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    socket = Path(ended.stdout.decode().strip())
    until(lambda: not socket.exists())


def test_a_given_daemon_is_used_and_left_alone(hello: Path, tmp_path: Path) -> None:
    # Longer than the path of a socket may be.
    socket = tmp_path / ("d" * 90) / "daemon.sock"
    command = [os.environ["SKILLCELL_BIN"], "serve", f"--socket={socket}", "--stop-with-stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout
        until(socket.exists)
        with skillcell.Runtime(socket) as runtime:
            assert runtime.run(hello, {"name": "x"}).value
        assert daemon.poll() is None
        daemon.terminate()
        assert daemon.wait(20) == 0
    with (
        pytest.raises(skillcell.DaemonUnavailable, match="no daemon answers"),
        skillcell.Runtime(socket) as runtime,
    ):
        runtime.run(hello, {"name": "x"})


def test_too_many_calls_raise_busy(skill: MakeSkill) -> None:
    folder = skill("import time\ntime.sleep(3)\nreturn 1")
    with (
        skillcell.Runtime(max_running=1, max_waiting=0) as runtime,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(runtime.run, folder)
        until(in_cell)
        with pytest.raises(skillcell.Busy) as busy:
            runtime.run(folder)
        assert busy.value.retry_after >= 1
        assert first.result().value == 1


def test_a_loaded_skill_is_called_through_its_runtime(
    runtime: skillcell.Runtime, hello: Path
) -> None:
    bundle = skillcell.SkillLoader.load_skill(hello, runtime=runtime)
    tool = bundle["class"]()
    assert tool.validate_params({"name": "x"})
    assert tool.execute({"name": "x"}) == {"greeting": "Hello, x!"}
    assert len(daemons()) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_answers_are_read_however_they_are_cut(size: int) -> None:
    event = json.dumps({"event": "warn", "text": "a"}, separators=(",", ":")).encode() + b"\n"
    end = b'{"event":"end","envelope":{"status":"ok"},"dropped":0}\n'
    body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (event, end, b""))
    told: list[skillcell.Event] = []
    for head, content, want in (
        (b"Content-Length: 15\r\n", b'{"status":"ok"}', b'{"status":"ok"}'),
        (b"Transfer-Encoding: chunked\r\n", body, b'{"status":"ok"}'),
    ):
        text = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + content
        exchange = _exchange.Exchange(told.append)
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert [exchange.feed(piece) for piece in pieces] == [False] * (len(pieces) - 1) + [True]
        assert exchange.body == want
    assert told == [skillcell.Event("warn", "a")]


def test_what_is_no_answer_is_an_error() -> None:
    for text in (b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 x\r\n\r\n", b"x" * 70_000):
        with pytest.raises(_http.NotHttp):
            _exchange.Exchange(None).feed(text)
    with pytest.raises(ConnectionError):
        _exchange.Exchange(None).feed(b"")
