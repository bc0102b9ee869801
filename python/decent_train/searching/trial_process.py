"""The program as it trains one trial."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..program import TrainingError, message_of, program

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_FREE_AFTER_S = 60.0  # a run that was told to stop saves first


class TrialProcess:
    """One start of the program on a trial's folder, with the end of this process as its signal to save and stop."""

    def __init__(self, arguments: Sequence[object], cwd: Path, variables: Mapping[str, str]) -> None:
        self._errors = tempfile.TemporaryFile()
        self._asked_to_stop = False
        parent = os.getpid()
        # A process group of its own: Ctrl-C in a terminal goes to the search alone, which sends one signal on. A second
        # one would end the run before it has saved.
        self._process = subprocess.Popen([str(program()), *map(str, arguments)], cwd=cwd,
                                         env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=self._errors, process_group=0,
                                         preexec_fn=lambda: _stop_with(parent))

    def code(self) -> int | None:
        """The exit code, negative for the signal that ended it; None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Has the program save and end, once."""
        if not self._asked_to_stop and self.code() is None:
            self._process.terminate()
        self._asked_to_stop = True

    def kill(self) -> None:
        """Ends the program and its workers at once."""
        if self.code() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def message(self) -> str:
        """What it said of an error."""
        self._errors.seek(0)
        return message_of(self._errors.read().decode(errors="replace"))


def _stop_with(parent: int) -> None:
    """In the new process, before it becomes the program: it gets SIGTERM when the search ends, even by kill -9."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before
        os.kill(os.getpid(), signal.SIGTERM)


def wait_until_free(folder: Path) -> None:
    """Waits for the end of a run in this folder that an earlier search, which was killed, has left behind.

    Raises TrainingError (code 2) if the run goes on for longer than it takes to stop.
    """
    deadline = time.monotonic() + _FREE_AFTER_S
    while _is_locked(folder / ".lock"):
        if time.monotonic() > deadline:
            raise TrainingError(f"a run in '{folder}' goes on, which this search has not started: end it first", 2)
        time.sleep(0.05)


def _is_locked(path: Path) -> bool:
    try:
        with path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
