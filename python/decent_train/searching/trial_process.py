"""The program as it trains one trial."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..child import start
from ..program import TrainingError, message_of, program
from ..run_folder import is_held

_FREE_AFTER_S = 60.0  # a run that was told to stop saves first


class TrialProcess:
    """One start of the program on a trial's folder, with the end of this process as its signal to save and stop."""

    def __init__(self, arguments: Sequence[object], cwd: Path, variables: Mapping[str, str]) -> None:
        self._errors = tempfile.TemporaryFile()
        self._asked_to_stop = False
        self._process = start([str(program()), *map(str, arguments)], cwd=cwd, variables=variables,
                              stdout=subprocess.DEVNULL, stderr=self._errors)

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


def wait_until_free(folder: Path) -> None:
    """Waits for the end of a run in this folder that an earlier search, which was killed, has left behind.

    Raises TrainingError (code 2) if the run goes on for longer than it takes to stop.
    """
    deadline = time.monotonic() + _FREE_AFTER_S
    while is_held(folder):
        if time.monotonic() > deadline:
            raise TrainingError(f"a run in '{folder}' goes on, which this search has not started: end it first", 2)
        time.sleep(0.05)
