"""The processes below this one, as the kernel shows them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def descendants() -> dict[int, str]:
    """Ids and names of all processes below this one, zombies left out."""
    parents: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(") ")
            except OSError:
                continue
            state, parent = rest.split()[:2]
            if state != "Z":
                parents[int(folder.name)] = (int(parent), name)
    found: dict[int, str] = {}
    below = {os.getpid()}
    while below:
        below = {pid for pid, (parent, _) in parents.items() if parent in below}
        found.update({pid: parents[pid][1] for pid in below})
    return found


def alive(pids: dict[int, str]) -> dict[int, str]:
    """Those that still run. A number that another program has got meanwhile isn't counted."""
    running: dict[int, str] = {}
    for pid, name in pids.items():
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        now, _, rest = text.partition("(")[2].rpartition(") ")
        if now == name and not rest.startswith("Z"):
            running[pid] = name
    return running


def command_lines() -> str:
    """All command lines below this process, as anybody on the host can read them."""
    lines = []
    for pid in descendants():
        try:
            lines.append(Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(lines)


def in_cell() -> bool:
    """Whether the skill's interpreter runs."""
    return any(name.startswith("python") for name in descendants().values())


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it did not happen; running: {descendants()}"
        time.sleep(0.02)
