"""Calls that end early leave nothing running, and secrets are on no command line."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

import skillcell
from conftest import MakeSkill
from processes import alive, command_lines, descendants, in_cell, until

SLEEPS = "import time\ntime.sleep(50)"
DECLARES = "env_vars:\n  TOKEN: {required: true}\n"
SECRET = "s3cr3t-of-the-test"  # noqa: S105


async def started() -> dict[int, str]:
    """What runs for a call, once the skill does."""
    await asyncio.to_thread(until, in_cell)
    return descendants()


def test_a_value_reaches_the_skill_and_no_command_line(skill: MakeSkill) -> None:
    folder = skill("import os, time\ntime.sleep(2)\nreturn os.environ['TOKEN']", DECLARES)

    async def call() -> tuple[str, str]:
        task = asyncio.create_task(skillcell.arun(folder, env={"TOKEN": SECRET}))
        await started()
        lines = command_lines()
        return (await task).value, lines

    value, lines = asyncio.run(call())
    assert value == SECRET
    assert "--env=TOKEN" in lines
    assert SECRET not in lines


def test_the_same_probe_finds_a_value_that_is_on_a_command_line(skill: MakeSkill) -> None:
    folder = skill("import time\ntime.sleep(2)\nreturn 1", DECLARES)
    command = [os.environ["SKILLCELL_BIN"], "run", str(folder), "--env", f"TOKEN={SECRET}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL):
        until(in_cell)
        assert SECRET in command_lines()


def test_a_variable_of_the_caller_is_passed_by_its_name(
    skill: MakeSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = skill("import os\nreturn os.environ['TOKEN']", DECLARES)
    monkeypatch.setenv("TOKEN", "mine")
    with pytest.raises(skillcell.InvalidInput, match="TOKEN"):
        skillcell.run(folder)
    assert skillcell.run(folder, env=["TOKEN"]).value == "mine"
    assert skillcell.run(folder, env={"TOKEN": None}).value == "mine"


def test_params_are_on_no_command_line(skill: MakeSkill) -> None:
    folder = skill("import time\ntime.sleep(2)\nreturn params['key']")

    async def call() -> tuple[str, str]:
        task = asyncio.create_task(skillcell.arun(folder, {"key": SECRET}))
        await started()
        lines = command_lines()
        return (await task).value, lines

    value, lines = asyncio.run(call())
    assert (value, SECRET in lines) == (SECRET, False)


@pytest.mark.parametrize(
    "name", ["SKILLCELL_STATE_DIR", "LD_PRELOAD", "XDG_STATE_HOME", "PATH", "https_proxy", "HOME"]
)
def test_a_value_for_the_skill_cannot_steer_the_binary(
    name: str, hello: Path, tmp_path: Path
) -> None:
    with pytest.raises(skillcell.InvalidInput, match="means something to skillcell itself"):
        skillcell.run(hello, {"name": "x"}, env={name: str(tmp_path / "elsewhere")})
    assert not (tmp_path / "elsewhere").exists()


def test_names_that_are_none_and_values_with_nul_are_rejected(hello: Path) -> None:
    for env in ({"A=B": "x"}, {"": "x"}, {"A": "x\0y"}):
        with pytest.raises(skillcell.InvalidInput, match="env: "):
            skillcell.run(hello, {"name": "x"}, env=env)


def test_a_cancelled_call_leaves_nothing_running(skill: MakeSkill) -> None:
    folder = skill(SLEEPS)

    async def cancel() -> dict[int, str]:
        task = asyncio.create_task(skillcell.arun(folder))
        running = await started()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return running

    running = asyncio.run(cancel())
    assert len(running) > 1
    assert alive(running) == {}


def test_a_call_that_is_cancelled_twice_leaves_nothing_running(skill: MakeSkill) -> None:
    folder = skill(SLEEPS)

    async def cancel() -> dict[int, str]:
        task = asyncio.create_task(skillcell.arun(folder))
        running = await started()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return running

    running = asyncio.run(cancel())
    until(lambda: not alive(running), 5)


def test_a_call_that_waited_too_long_leaves_nothing_running(skill: MakeSkill) -> None:
    folder = skill(SLEEPS)

    async def wait() -> dict[int, str]:
        task = asyncio.create_task(skillcell.arun(folder))
        running = await started()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(task, 0.1)
        return running

    assert alive(asyncio.run(wait())) == {}


def test_a_keyboard_interrupt_ends_the_call(skill: MakeSkill) -> None:
    folder = skill(SLEEPS)
    seen: dict[int, str] = {}

    def interrupt() -> None:
        until(in_cell)
        seen.update(descendants())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        skillcell.run(folder)
    thread.join()
    assert len(seen) > 1
    assert alive(seen) == {}


def test_a_binary_that_is_killed_takes_its_cell_along(skill: MakeSkill) -> None:
    folder = skill(SLEEPS)

    async def kill() -> dict[int, str]:
        task = asyncio.create_task(skillcell.arun(folder))
        running = await started()
        os.kill(next(pid for pid, name in running.items() if name == "skillcell"), signal.SIGKILL)
        with pytest.raises(skillcell.InternalError, match="-9"):
            await task
        return running

    running = asyncio.run(kill())
    until(lambda: not alive(running), 5)


def test_many_calls_at_once_do_not_mix(hello: Path) -> None:
    async def call() -> list[skillcell.Result]:
        calls = [skillcell.arun(hello, {"name": str(n)}, timeout=60) for n in range(16)]
        return await asyncio.gather(*calls)

    results = asyncio.run(call())
    assert [r.value["greeting"] for r in results] == [f"Hello, {n}!" for n in range(16)]
    assert len({r.run_id for r in results}) == 16


def test_the_async_twin_raises_and_warns_alike(skill: MakeSkill) -> None:
    with pytest.raises(skillcell.SkillFailed):
        asyncio.run(skillcell.arun(skill("raise ValueError", name="a")))
    body = "try:\n    open('/usr/x', 'w')\nexcept OSError:\n    return 1"

    async def call() -> skillcell.Result:
        return await skillcell.arun(skill(body, name="b"))

    with pytest.warns(skillcell.DenialWarning) as seen:
        assert asyncio.run(call()).value == 1
    assert seen[0].filename == __file__
