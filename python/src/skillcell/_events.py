"""What is told of a call while it runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from ._http import NotHttp


@dataclass(frozen=True)
class Event:
    """Something that happened during a call.

    `kind` is "stage", "line" or "warn" for what Skillcell does, and "output" for what the skill
    printed, on `stream`. `text` is then the skill's own words: escape it before you print it.
    """

    kind: str
    text: str
    stream: str | None = None


def tell(line: bytes, on_event: Callable[[Event], object]) -> bytes | None:
    """Tells of one line of a stream. The last one isn't told but given, as a body."""
    begun = line[:60]
    if begun.startswith(b'{"event":"end","envelope":'):
        end = line.rindex(b',"dropped":')
        return line[len(b'{"event":"end","envelope":') : end]
    if begun.startswith(b'{"event":"error",'):
        return line
    try:
        event = json.loads(line)
        on_event(Event(event["event"], event["text"], event.get("stream")))
    except (ValueError, KeyError, TypeError) as error:
        raise NotHttp(f"no event: {line[:80]!r}") from error
    return None
