"""HTTP/1.1 as far as the daemon speaks it; no sockets here.

`http.client` takes longer for one exchange than a warm call does.
"""

from __future__ import annotations

from dataclasses import dataclass

END = b"\r\n\r\n"
LONGEST_HEAD = 64 << 10


class NotHttp(ValueError):
    """What came is no answer of a daemon."""


@dataclass(frozen=True)
class Head:
    """The head of an answer, and where its body begins."""

    status: int
    body: int
    length: int
    chunked: bool
    closes: bool
    retry_after: float


def message(path: bytes, body: bytes, accept: bytes) -> bytes:
    """A request with a JSON body."""
    return (
        b"POST %b HTTP/1.1\r\nHost: daemon\r\nContent-Type: application/json\r\n"
        b"Accept: %b\r\nContent-Length: %d\r\n\r\n%b" % (path, accept, len(body), body)
    )


def parse_head(text: bytearray) -> Head | None:
    """The head, or None while there isn't all of it."""
    end = text.find(END)
    if end < 0:
        if len(text) > LONGEST_HEAD:
            raise NotHttp("a head without end")
        return None
    lines = bytes(text[:end]).decode("latin-1").split("\r\n")
    words = lines[0].split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.1") or not words[1].isdigit():
        raise NotHttp(f"it begins with {lines[0][:80]!r}")
    fields = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        fields[name.lower()] = value.strip()
    length = fields.get("content-length", "0")
    retry = fields.get("retry-after", "1")
    if not length.isdigit():
        raise NotHttp(f"a body of {length[:80]!r} bytes")
    return Head(
        status=int(words[1]),
        body=end + len(END),
        length=int(length),
        chunked=fields.get("transfer-encoding", "").lower() == "chunked",
        closes=fields.get("connection", "").lower() == "close",
        retry_after=float(retry) if retry.isdigit() else 1.0,
    )
