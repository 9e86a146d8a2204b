"""Where the `skillcell` binary is."""

import os
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from .errors import BinaryNotFound

NAME = "skillcell"
VARIABLE = "SKILLCELL_BIN"


def find_binary() -> str:
    """`SKILLCELL_BIN`, then the one that was installed with this package, then `PATH`."""
    named = os.environ.get(VARIABLE)
    if named:
        if not _is_program(Path(named)):
            raise BinaryNotFound(
                f"{VARIABLE} is {named!r}, and there is no program",
                hint=f"set {VARIABLE} to the skillcell binary, or unset it",
            )
        return os.path.abspath(named)
    for folder in _script_folders():
        if _is_program(folder / NAME):
            return str(folder / NAME)
    found = shutil.which(NAME)
    if found is None:
        raise BinaryNotFound(
            "there is no skillcell binary: not beside this package, and not on PATH",
            hint=f"install the wheel, which has it inside, or set {VARIABLE} to one that you built",
        )
    return os.path.abspath(found)


def _script_folders() -> Iterator[Path]:
    """Where installers put a wheel's programs: the environment, the user's own, `--target`."""
    yield Path(sysconfig.get_path("scripts"))
    yield Path(sysconfig.get_path("scripts", scheme=sysconfig.get_preferred_scheme("user")))
    yield Path(__file__).parent.parent / "bin"


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
