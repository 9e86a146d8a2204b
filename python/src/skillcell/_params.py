"""Params to JSON, and envelopes from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .errors import InvalidParams

# Python converts longer ones in quadratic time, and refuses to from 3.11 on.
LONGEST_INTEGER = 4300


def encode_params(params: Mapping[str, Any] | None) -> bytes | None:
    """The JSON of params; an error says which value isn't JSON."""
    if params is None:
        return None
    if not isinstance(params, Mapping):
        raise InvalidParams(
            f"params are a {type(params).__name__}, not a dict", hint="pass a dict of JSON values"
        )
    try:
        return json.dumps(dict(params), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        reason = _find_culprit(params, "params", 0) or str(error)
        raise InvalidParams(
            f"params can't be written as JSON: {reason}",
            hint="pass str, int, float, bool, None, list and dict only",
        ) from error


def decode_json(text: bytes) -> Any:
    """Raises ValueError where it can't be read, or only at great cost."""
    return json.loads(text, parse_int=_parse_int)


def _parse_int(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def _find_culprit(value: object, place: str, depth: int) -> str | None:
    if depth > 128:
        return f"{place[:80]}… is nested more than 128 levels deep, or holds itself"
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str | int | float | bool | None):
                return f"{place} has a key of type {type(key).__name__}"
            found = _find_culprit(item, f"{place}[{key!r}]", depth + 1)
            if found:
                return found
        return None
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            found = _find_culprit(item, f"{place}[{index}]", depth + 1)
            if found:
                return found
        return None
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return f"{place} is {_named(value)}"
    return None


def _named(value: object) -> str:
    return repr(value) if isinstance(value, float) else f"a {type(value).__name__}"
