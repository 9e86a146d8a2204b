"""How a request gets to Skillcell, and an envelope back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ._request import Request

Envelope = Mapping[str, Any]


class Transport(Protocol):
    """Whoever leaves one of these early (an exception, a cancelled task) ends the call."""

    def run(self, request: Request) -> Envelope:
        """Makes the call and waits for it."""
        ...

    async def arun(self, request: Request) -> Envelope:
        """Makes the call without blocking the event loop."""
        ...

    def explain(self, request: Request) -> Envelope:
        """What the call would be. Nothing of the skill is run."""
        ...
