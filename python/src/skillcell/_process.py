"""The transport that starts the binary for each call."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping

from ._binary import find_binary
from ._command import explain_command, run_command
from ._environment import child_environment
from ._params import decode_json
from ._request import Request
from ._transport import Envelope
from .errors import InternalError, InvalidInput, InvalidResult, SkillcellError

GRACE = 5.0
"""Seconds in which the binary clears up a call that is ended, before it is killed."""

USAGE = 2
"""Exit code for arguments that the binary doesn't take; there is no envelope then."""


class ProcessTransport:
    """Starts `skillcell` and reads its envelope. Keeps nothing between calls."""

    def run(self, request: Request) -> Envelope:
        return self._wait(request, run_command(request))

    def explain(self, request: Request) -> Envelope:
        return self._wait(request, explain_command(request))

    async def arun(self, request: Request) -> Envelope:
        arguments = _checked(run_command(request))
        process = await asyncio.create_subprocess_exec(
            find_binary(),
            *arguments,
            stdin=_stdin(request),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=child_environment(request.env),
        )
        try:
            stdout, stderr = await process.communicate(request.params)
        except BaseException:
            await _end(process)
            raise
        return _envelope(request, process.returncode, stdout, stderr)

    def _wait(self, request: Request, arguments: list[str]) -> Envelope:
        process = subprocess.Popen(
            [find_binary(), *_checked(arguments)],
            stdin=_stdin(request),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=child_environment(request.env),
        )
        with process:
            try:
                stdout, stderr = process.communicate(request.params)
            except BaseException:
                _end_now(process)
                raise
        return _envelope(request, process.returncode, stdout, stderr)


def _stdin(request: Request) -> int:
    return subprocess.DEVNULL if request.params is None else subprocess.PIPE


def _checked(arguments: list[str]) -> list[str]:
    for argument in arguments:
        if "\0" in argument:
            raise InvalidInput(f"{argument!r} has a NUL byte, which no argument can hold")
    return arguments


def _end_now(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(GRACE)
    except BaseException:  # the grace is over, or somebody lost patience
        process.kill()


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    try:
        process.terminate()
        # Reads on, so that a full pipe doesn't keep the binary from ending.
        await asyncio.wait_for(process.communicate(), GRACE)
    except ProcessLookupError:
        pass
    except BaseException:
        if process.returncode is None:
            process.kill()


def _envelope(request: Request, code: int | None, stdout: bytes, stderr: bytes) -> Envelope:
    try:
        envelope = decode_json(stdout)
    except (ValueError, RecursionError) as error:
        if code == 0:
            raise InvalidResult(
                f"{request.skill}: the result can't be read: {error}",
                hint="have the skill give such numbers as text",
            ) from error
        raise _no_envelope(request, code, stderr) from error
    if not isinstance(envelope, Mapping):
        raise _no_envelope(request, code, stderr)
    return envelope


def _no_envelope(request: Request, code: int | None, stderr: bytes) -> SkillcellError:
    said = stderr.decode(errors="replace").strip()
    if code == USAGE:
        message = said.partition("\n\n")[0].removeprefix("error: ")
        return InvalidInput(f"{request.skill}: {message}", hint="see `skillcell run --help`")
    return InternalError(
        f"{request.skill}: skillcell ended with {code} and gave no envelope: {said[-500:]}",
        hint="`skillcell doctor` tells what this host lacks; is SKILLCELL_BIN another program?",
    )
