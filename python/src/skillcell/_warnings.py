"""What is said beside a result."""

from __future__ import annotations

from .result import Denial

MOST_SHOWN = 10


class DenialWarning(UserWarning):
    """A call succeeded although things were denied to it; its answer may be wrong for that."""


class BundleWarning(UserWarning):
    """Something in a skill's folder is likely not what its author meant."""


def denial_message(subject: str, denials: tuple[Denial, ...]) -> str:
    """Each denial in a line, with what would allow it."""
    lines = [f"{subject} answered, but was denied:"]
    lines += [f"  {denial}" for denial in denials[:MOST_SHOWN]]
    if len(denials) > MOST_SHOWN:
        lines.append(f"  {len(denials) - MOST_SHOWN} more, in `denials`")
    return "\n".join(lines)
