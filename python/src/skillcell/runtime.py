"""A daemon that makes the calls of an agent."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._conclude import conclude
from ._daemon import DaemonTransport
from ._exchange import OnEvent
from ._owned import OwnedDaemon
from ._request import Options, Request, make_request
from ._transport import Envelope
from .result import Result

if TYPE_CHECKING:
    from ._request import Path


class Runtime:
    """Makes calls through a daemon: one of its own, or the one at `socket`.

    One of its own is started at the first call, serves this process alone, and ends with it, or at
    the end of the `with` block. Any thread and any event loop may call.

    >>> with skillcell.Runtime() as runtime:
    ...     runtime.run("examples/skills/hello", {"name": "world"}).value
    {'greeting': 'Hello, world!'}

    Args:
        socket: The socket of a daemon that runs: `skillcell serve` names it.
        max_running: Calls at once, for a daemon of its own.
        max_waiting: Calls that may wait for a place, for a daemon of its own.
    """

    def __init__(
        self,
        socket: Path | None = None,
        *,
        max_running: int | None = None,
        max_waiting: int | None = None,
    ) -> None:
        self._flags = tuple(
            f"--{name}={value}"
            for name, value in (("max-running", max_running), ("max-waiting", max_waiting))
            if value is not None
        )
        if socket is not None and self._flags:
            raise ValueError("max_running and max_waiting are for a daemon of one's own")
        self._lock = threading.Lock()
        self._daemon: OwnedDaemon | None = None
        self._given = None if socket is None else DaemonTransport(os.fspath(socket))
        self._own: DaemonTransport | None = None
        self._closed = False

    def run(
        self,
        skill: Path,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | str | None = 30,
        on_event: OnEvent | None = None,
        **options: Any,
    ) -> Result:
        """As `skillcell.run`, with the same keywords.

        `on_event` is called with each `Event` while the call runs: what is done for it, and what
        the skill prints. What it raises ends the call.
        """
        request = make_request(skill, params, Options(timeout=timeout, **options))
        return conclude(request, self._transport().run(request, on_event), 3)

    async def arun(
        self,
        skill: Path,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | str | None = 30,
        on_event: OnEvent | None = None,
        **options: Any,
    ) -> Result:
        """As `run`, without blocking the event loop. Cancelling the task ends the call."""
        request = make_request(skill, params, Options(timeout=timeout, **options))
        return conclude(request, await (await self._ready()).arun(request, on_event), 3)

    def close(self) -> None:
        """Ends a daemon of its own, after the calls that run. Nothing can be called any more."""
        with self._lock:
            self._closed = True
            daemon, self._daemon = self._daemon, None
            for transport in (self._given, self._own):
                if transport:
                    transport.close()
        if daemon:
            daemon.close()

    def call(self, request: Request) -> Envelope:
        """The envelope of a request that was checked already."""
        return self._transport().run(request)

    async def acall(self, request: Request) -> Envelope:
        """As `call`, without blocking the event loop."""
        return await (await self._ready()).arun(request)

    def explain(self, request: Request) -> Envelope:
        """What the call would be. Nothing of the skill is run."""
        return self._transport().explain(request)

    async def _ready(self) -> DaemonTransport:
        if self._given or self._own:
            return self._transport()
        # A daemon takes a moment to begin.
        return await asyncio.to_thread(self._transport)

    def _transport(self) -> DaemonTransport:
        if self._given and not self._closed:
            return self._given
        with self._lock:
            if self._closed:
                raise RuntimeError("this Runtime is closed")
            if self._daemon and self._own and self._own.was_lost:
                self._own.was_lost = False
                self._daemon.settle()
            if self._daemon is None or self._own is None or not self._daemon.alive:
                # None yet, or somebody has killed it: the next call has a new one.
                if self._own:
                    self._own.close()
                if self._daemon:
                    self._daemon.close()
                self._daemon = OwnedDaemon(self._flags)
                self._own = DaemonTransport(self._daemon.socket)
            return self._own

    def __enter__(self) -> Runtime:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
