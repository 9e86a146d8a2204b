"""A daemon of one's own: started on a private socket, and ended with whoever started it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import weakref
from pathlib import Path

from ._binary import find_binary
from .errors import InternalError

GRACE = 40.0
"""Seconds in which it may finish its calls before it is killed."""


class OwnedDaemon:
    """Runs from its making to `close`, or to the end of this process, whatever that is."""

    def __init__(self, flags: tuple[str, ...] = ()) -> None:
        folder = tempfile.mkdtemp(prefix="skillcell-")
        self.socket = str(Path(folder) / "daemon.sock")
        self._log = Path(folder) / "daemon.log"
        # Its standard input is a pipe of ours: when we are gone, however, it drains.
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [find_binary(), "serve", f"--socket={self.socket}", "--stop-with-stdin", *flags],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._finalizer = weakref.finalize(self, _end, self._process, folder, os.getpid())
        try:
            self._await_ready()
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def settle(self) -> None:
        """Waits a moment for a daemon that seems to be dying."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2)

    def close(self) -> None:
        self._finalizer()

    def _await_ready(self) -> None:
        said = self._process.stdout
        for line in said or ():
            if line == b"ready\n":
                return
        complaint = self._log.read_text(errors="replace").strip()[-500:]
        raise InternalError(
            f"the daemon did not begin: {complaint}",
            hint="`skillcell doctor` tells what this host lacks; is SKILLCELL_BIN another program?",
        )


def _end(process: subprocess.Popen[bytes], folder: str, owner: int) -> None:
    if os.getpid() != owner:
        return  # a forked child; the daemon is its parent's
    try:
        process.terminate()
        process.wait(GRACE)
    except BaseException:  # the grace is over, or somebody lost patience
        process.kill()
        process.wait()
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()
        shutil.rmtree(folder, ignore_errors=True)
