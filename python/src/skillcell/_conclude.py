"""From an envelope to a result, or to what is raised."""

from __future__ import annotations

import warnings

from ._request import Request
from ._transport import Envelope
from ._warnings import DenialWarning, denial_message
from .errors import error_of
from .result import Result, result_of


def conclude(request: Request, envelope: Envelope, level: int) -> Result:
    """`level` is how many frames above this one the caller of the package is."""
    if envelope.get("status") != "ok":
        raise error_of(request.skill, envelope)
    result = result_of(envelope)
    if result.denials:
        message = denial_message(result.skill.id or request.skill, result.denials)
        warnings.warn(message, DenialWarning, stacklevel=level)
    return result
