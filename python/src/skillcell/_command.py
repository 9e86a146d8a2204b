"""A request as a command line of the binary."""

from __future__ import annotations

from ._request import Request

OF_RUN_ONLY = {"strict-denials", "actor", "request-id", "show-output"}


def run_command(request: Request) -> list[str]:
    """`skillcell run` with everything but params and values of variables."""
    command = ["run", request.skill, "--json", *_flags(request)]
    if request.params is not None:
        command.append("--params=-")
    if request.args:
        command += ["--", *request.args]
    return command


def explain_command(request: Request) -> list[str]:
    """`skillcell explain` for the same call."""
    command = ["explain", request.skill, "--json"]
    command += [flag for flag in _flags(request) if flag[2:].split("=")[0] not in OF_RUN_ONLY]
    if request.params is not None:
        command.append("--params=-")
    return command


def _flags(request: Request) -> list[str]:
    # `--name=value`, so that no value can be read as a flag.
    given = [f"--{name}" if value is None else f"--{name}={value}" for name, value in request.flags]
    return given + [f"--env={name}" for name in request.env]
