"""One answer, from the bytes as they come. No sockets here, so it serves threads and asyncio."""

from __future__ import annotations

from collections.abc import Callable

from ._events import Event, tell
from ._http import Head, NotHttp, parse_head

OnEvent = Callable[[Event], object]


class Exchange:
    """Takes bytes until the answer is whole; then `head` and `body` are."""

    def __init__(self, on_event: OnEvent | None) -> None:
        self.head: Head | None = None
        self.body = b""
        self._text = bytearray()
        self._on_event = on_event
        self._ended = False

    def feed(self, more: bytes) -> bool:
        """True when there is all of it."""
        if not more:
            raise ConnectionResetError("the connection was closed")
        self._text += more
        if self.head is None:
            self.head = parse_head(self._text)
            if self.head is None:
                return False
            del self._text[: self.head.body]
        if self.head.chunked:
            return self._chunks()
        if len(self._text) < self.head.length:
            return False
        self.body = bytes(self._text)
        return True

    @property
    def reusable(self) -> bool:
        """Whether another request can follow."""
        return self.head is not None and not self.head.closes

    def _chunks(self) -> bool:
        while True:
            at = self._text.find(b"\r\n")
            if at < 0:
                return False
            try:
                size = int(self._text[:at], 16)
            except ValueError as error:
                raise NotHttp("a chunk without its size") from error
            end = at + 2 + size
            if len(self._text) < end + 2:
                return False
            chunk = bytes(self._text[at + 2 : end])
            del self._text[: end + 2]
            if size == 0:
                if not self._ended:
                    raise NotHttp("a stream without its end")
                return True
            if self._on_event is None:
                raise NotHttp("a stream that nobody asked for")
            last = tell(chunk, self._on_event)
            if last is not None:
                self.body, self._ended = last, True
