"""Text that a skill may have chosen, made safe to print."""

LONGEST = 2000


def printable(text: str) -> str:
    """Line ends, control and direction characters are escaped, and very long text is cut."""
    shown = text[:LONGEST]
    safe = "".join(c if c.isprintable() else _escaped(c) for c in shown)
    return safe if len(text) <= LONGEST else safe + "…"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
