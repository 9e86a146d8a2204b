"""A request as the daemon's API takes it."""

from __future__ import annotations

import json
import os
import sys

from ._environment import check_given
from ._request import Request

LISTS = {"read", "write", "policy", "allow-degraded"}

_environment: tuple[object, bytes] = (None, b"")


def request_body(request: Request, *, guest: bool = False) -> bytes:
    """JSON, with the caller's variables and folder, as a process of its own would have them.

    A daemon of another user gets neither, and takes neither.
    """
    check_given(request.env)
    fields: dict[str, object] = {"skill": request.skill}
    if not guest:
        fields["folder"] = host_text(os.getcwd())
    for name, value in request.flags:
        key = name.replace("-", "_")
        if value is None:
            fields[key] = True
        elif name in LISTS:
            listed = fields.setdefault(key, [])
            assert isinstance(listed, list)  # noqa: S101
            listed.append(host_text(value) if name != "allow-degraded" else value)
        elif name in ("python", "deps"):
            fields[key] = host_text(value)
        else:
            fields[key] = value
    if request.args:
        fields["args"] = request.args
    if request.env:
        fields["env"] = [
            {"name": name} if value is None else {"name": name, "value": value}
            for name, value in request.env.items()
        ]
    parts = [json.dumps(fields).encode()[:-1]]
    if not guest:
        parts += [b', "environment": ', _variables()]
    if request.params is not None:
        parts += [b', "params": ', request.params]
    parts.append(b"}")
    return b"".join(parts)


def host_text(text: str) -> str | list[int]:
    """Text of the host; its bytes where they aren't UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return list(os.fsencode(text))
    return text


def _variables() -> bytes:
    """All variables of this process as JSON, made again when one has changed."""
    global _environment
    # What `os.environ` keeps, in bytes: comparing it takes a microsecond, decoding it a hundred.
    now = getattr(os.environ, "_data", None) or dict(os.environb)
    known, text = _environment
    if known != now:
        values = {name: host_text(value) for name, value in os.environ.items()}
        # An agent is often started by its virtualenv's python without activating it, and has its
        # skills there.
        values.setdefault("VIRTUAL_ENV", sys.prefix)
        # A variable whose name isn't text can't be sent, and nothing reads such a one.
        kept = {name: value for name, value in values.items() if isinstance(host_text(name), str)}
        text = json.dumps(kept).encode()
        _environment = (dict(now), text)
    return text
