"""One call, checked and ready to be made by whatever transport."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ._params import encode_params
from .errors import InvalidInput

if TYPE_CHECKING:
    from .runtime import Runtime

Path: TypeAlias = "str | os.PathLike[str]"
"""A path of the host."""

Paths: TypeAlias = "Path | Iterable[Path]"
"""One path, or several."""

Names: TypeAlias = "str | Iterable[str]"
"""One name, or several."""

Env: TypeAlias = "Mapping[str, str | None] | Names"
"""Variables with their values, or names of the caller's own variables. None is the own value."""


@dataclass(frozen=True)
class Request:
    """What is asked for. `env` has None where the caller's own value is meant."""

    skill: str
    params: bytes | None
    flags: tuple[tuple[str, str | None], ...]
    args: tuple[str, ...]
    env: Mapping[str, str | None]


@dataclass(frozen=True)
class Options:
    """The keywords of `run`, which says what they mean."""

    timeout: float | str | None = 30
    env: Env = ()
    read: Paths = ()
    write: Paths = ()
    memory: int | str | None = None
    policy: Paths = ()
    isolation: str | None = None
    trust: bool = False
    allow_degraded: Names = ()
    strict_denials: bool = False
    audit: str | None = None
    actor: str | None = None
    request_id: str | None = None
    python: Path | None = None
    deps: Path | None = None
    entry: str | None = None
    args: Names = ()
    show_output: bool = False
    runtime: Runtime | None = None


def make_request(skill: Path, params: Mapping[str, Any] | None, options: Options) -> Request:
    """Checks the arguments of a call. Nothing is started."""
    return Request(
        skill=_skill(skill),
        params=encode_params(params),
        flags=tuple(_flags(options)),
        args=_names(options.args),
        env=_env(options.env),
    )


def _flags(options: Options) -> Iterator[tuple[str, str | None]]:
    for name, value in (
        ("timeout", _duration(options.timeout)),
        ("memory", None if options.memory is None else str(options.memory)),
        ("isolation", options.isolation),
        ("audit", options.audit),
        ("actor", options.actor),
        ("request-id", options.request_id),
        ("python", _path(options.python)),
        ("deps", _path(options.deps)),
        ("entry", options.entry),
    ):
        if value is not None:
            yield name, value
    for name, values in (
        ("read", _paths(options.read)),
        ("write", _paths(options.write)),
        ("policy", _paths(options.policy)),
        ("allow-degraded", _names(options.allow_degraded)),
    ):
        for value in values:
            yield name, value
    for name, given in (
        ("trust", options.trust),
        ("strict-denials", options.strict_denials),
        ("show-output", options.show_output),
    ):
        if given:
            yield name, None


def _path(path: Path | None) -> str | None:
    return None if path is None else os.fspath(path)


def _skill(skill: Path) -> str:
    text = os.fspath(skill)
    if text.startswith("-"):
        raise InvalidInput(
            f"{text!r} would be read as a flag, not as a skill",
            hint=f"write the path as ./{text}",
        )
    return text


def _duration(timeout: float | str | None) -> str | None:
    if timeout is None or isinstance(timeout, str):
        return timeout
    if not 0.001 <= timeout < float("inf"):
        raise InvalidInput(
            f"timeout={timeout!r} is no length of time",
            hint="give seconds, such as 0.5 or 30, or text such as '2m'",
        )
    return f"{round(timeout * 1000)}ms"


def _paths(value: Paths) -> tuple[str, ...]:
    if isinstance(value, str | os.PathLike):
        return (os.fspath(value),)
    return tuple(os.fspath(path) for path in value)


def _names(value: Names) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _env(value: Env) -> dict[str, str | None]:
    if isinstance(value, Mapping):
        return dict(value)
    return dict.fromkeys(_names(value))
