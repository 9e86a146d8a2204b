"""The environment that the binary is started with.

A value for a skill travels in it, because everybody on the host can read a command line. But the
binary obeys some variables itself: a value under the name of the audit log's folder would move the
log. Such names are passed only with the value that they already have.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

from .errors import InvalidInput

_OWN = re.compile(
    r"(LD_|DYLD_|GLIBC_|MALLOC_|PYTHON|PYENV_|PIP_|UV_|XDG_|SKILLCELL_|OTEL_|RUST_|SSL_|LC_).*"
    r"|GCONV_PATH|LOCPATH|NLSPATH|RES_OPTIONS|LOCALDOMAIN|HOSTALIASES|RESOLV_HOST_CONF"
    r"|PATH|HOME|TMPDIR|LANG|LANGUAGE|TZ|TZDIR|VIRTUAL_ENV|NETRC|.*_PROXY",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def child_environment(given: Mapping[str, str | None]) -> dict[str, str]:
    """The caller's environment, with the values given for the skill."""
    environment = dict(os.environ)
    # An agent is often started by its virtualenv's python without activating it, and has its
    # skills there.
    environment.setdefault("VIRTUAL_ENV", sys.prefix)
    check_given(given)
    environment.update({name: value for name, value in given.items() if value is not None})
    return environment


def check_given(given: Mapping[str, str | None]) -> None:
    """Raises for a name or value that no skill can get from here."""
    for name, value in given.items():
        if value is not None:
            _check(name, value)


def _check(name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"env: {name!r} is no name of a variable")
    if "\0" in value:
        raise InvalidInput(f"env: the value of {name} has a NUL byte")
    if _OWN.fullmatch(name) and os.environ.get(name) != value:
        raise InvalidInput(
            f"env: {name} means something to skillcell itself, so a skill can't get another value",
            hint=f"set {name} in this process and pass env=[{name!r}]",
        )
