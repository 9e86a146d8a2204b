"""The transport that has a daemon make the calls."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from pathlib import Path
from typing import Any

from ._body import request_body
from ._exchange import Exchange, OnEvent
from ._http import NotHttp, message
from ._params import decode_json
from ._request import Request
from ._transport import Envelope
from .errors import (
    Busy,
    DaemonUnavailable,
    Denied,
    InternalError,
    InvalidInput,
    InvalidResult,
    SkillcellError,
    SkillNotFound,
)

GRACE = 10.0
"""Seconds in which the daemon clears up a call that is ended; nobody waits longer for it."""

JSON = b"application/json"
LINES = b"application/x-ndjson"
LONGEST_PATH = 100
PIECE = 64 << 10


class DaemonTransport:
    """Calls over a unix socket. Connections are kept, and any thread may call."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._idle: list[tuple[socket.socket, bool]] = []
        self._pid = os.getpid()
        self.was_lost = False

    def run(self, request: Request, on_event: OnEvent | None = None) -> Envelope:
        return _envelope(request, self._exchange(b"/v1/run", request, on_event))

    def explain(self, request: Request) -> Envelope:
        return _envelope(request, self._exchange(b"/v1/explain", request, None))

    async def arun(self, request: Request, on_event: OnEvent | None = None) -> Envelope:
        return _envelope(request, await self._aexchange(b"/v1/run", request, on_event))

    def close(self) -> None:
        """Lets the connections go."""
        while self._idle:
            self._idle.pop()[0].close()

    def _exchange(self, path: bytes, request: Request, on_event: OnEvent | None) -> Exchange:
        wire, guest = self._wire()
        try:
            text = message(path, request_body(request, guest=guest), LINES if on_event else JSON)
            exchange = Exchange(on_event)
            _send(wire, text)
            while not exchange.feed(wire.recv(PIECE)):
                pass
        except (OSError, NotHttp) as error:
            wire.close()
            raise self._lost(error) from error
        except BaseException:
            _end(wire)
            raise
        self._keep(wire, guest, exchange)
        return exchange

    async def _aexchange(self, path: bytes, request: Request, on_event: OnEvent | None) -> Exchange:
        loop = asyncio.get_running_loop()
        wire, guest = self._wire()
        wire.setblocking(False)
        try:
            text = message(path, request_body(request, guest=guest), LINES if on_event else JSON)
            exchange = Exchange(on_event)
            await loop.sock_sendall(wire, text)
            while not exchange.feed(await loop.sock_recv(wire, PIECE)):
                pass
        except (OSError, NotHttp) as error:
            wire.close()
            raise self._lost(error) from error
        except BaseException:
            await _aend(wire)
            raise
        wire.setblocking(True)
        self._keep(wire, guest, exchange)
        return exchange

    def _lost(self, error: Exception) -> SkillcellError:
        self.was_lost = True
        return InternalError(
            f"the daemon at {self.path} went away before it answered: {error}",
            hint="whether the call was made is in the audit log: `skillcell audit list`",
        )

    def _wire(self) -> tuple[socket.socket, bool]:
        """A connection that nobody else uses, and whether we are a guest there."""
        if self._pid != os.getpid():
            # After a fork these are the parent's conversations.
            self._idle, self._pid = [], os.getpid()
        while True:
            try:
                wire, guest = self._idle.pop()
            except IndexError:
                return _connect(self.path)
            try:
                wire.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except BlockingIOError:
                return wire, guest
            except OSError:
                pass
            wire.close()

    def _keep(self, wire: socket.socket, guest: bool, exchange: Exchange) -> None:
        if exchange.reusable and self._pid == os.getpid():
            self._idle.append((wire, guest))
        else:
            wire.close()


def _connect(path: str) -> tuple[socket.socket, bool]:
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if len(os.fsencode(path)) < LONGEST_PATH:
            wire.connect(path)
        else:
            # A path of a socket has 107 bytes at most; its folder's descriptor makes it short.
            folder = os.open(Path(path).parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                wire.connect(f"/proc/self/fd/{folder}/{Path(path).name}")
            finally:
                os.close(folder)
        credentials = wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except OSError as error:
        wire.close()
        raise DaemonUnavailable(
            f"no daemon answers at {path}: {error.strerror or error}",
            hint="start one with `skillcell serve`, or use Runtime() without a socket",
        ) from error
    except BaseException:
        wire.close()
        raise
    owner = struct.unpack("3i", credentials)[1]
    guest = owner != os.geteuid()
    if guest and os.geteuid() == 0:
        wire.close()
        raise DaemonUnavailable(
            f"the daemon at {path} is user {owner}'s, who would choose what root is told",
            hint="use a daemon of your own: `skillcell serve`",
        )
    return wire, guest


def _send(wire: socket.socket, text: bytes) -> None:
    # A daemon that refuses may do so before it has read everything: its answer counts.
    with contextlib.suppress(BrokenPipeError):
        wire.sendall(text)


def _end(wire: socket.socket) -> None:
    """Ends a call, and waits until nothing of it runs, unless somebody loses patience."""
    try:
        wire.settimeout(GRACE)
        wire.shutdown(socket.SHUT_WR)
        while wire.recv(PIECE):
            pass
    except OSError:
        pass
    finally:
        wire.close()


async def _aend(wire: socket.socket) -> None:
    async def wait() -> None:
        loop = asyncio.get_running_loop()
        while await loop.sock_recv(wire, PIECE):
            pass

    try:
        wire.shutdown(socket.SHUT_WR)
        await asyncio.wait_for(wait(), GRACE)
    except (OSError, asyncio.TimeoutError):
        pass
    finally:
        wire.close()


def _envelope(request: Request, exchange: Exchange) -> Envelope:
    head = exchange.head
    status = head.status if head else 0
    try:
        answer: Any = decode_json(exchange.body)
    except (ValueError, RecursionError) as error:
        if status == 200:
            raise InvalidResult(
                f"{request.skill}: the result can't be read: {error}",
                hint="have the skill give such numbers as text",
            ) from error
        answer = None
    failure = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(answer, dict) and status == 200 and answer.get("event") != "error":
        return answer
    if not isinstance(failure, dict):
        raise InternalError(f"{request.skill}: the daemon answers {status} and says nothing")
    raise _refused(request, failure, head.retry_after if head else 1.0)


def _refused(request: Request, failure: dict[str, Any], retry_after: float) -> SkillcellError:
    message, hint = f"{request.skill}: {failure.get('message')}", failure.get("hint")
    code = failure.get("code")
    if code in ("busy", "draining"):
        return Busy(message, hint=hint, retry_after=retry_after)
    kinds: dict[object, type[SkillcellError]] = {
        "forbidden": Denied,
        "unauthorized": Denied,
        "not_found": SkillNotFound,
        "internal": InternalError,
    }
    return kinds.get(code, InvalidInput)(message, hint=hint)
