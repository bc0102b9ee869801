"""Python scripts that use the package decent_train, in processes of their own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from program import PROGRAM, ROOT, Ended, environment, run_commands
from runs import merged, recipe, write_recipe
from supervised import processes_of

PYTHON = sys.executable
WAIT_S = 60
# A second or two.
LONG = recipe(train={"steps": 600}, parallel={"topology": "ring"}, eval={"every_steps": 200},
              checkpoint={"every_steps": 100, "keep": 2}, log={"every_steps": 10, "tensorboard": False})
ENDLESS = merged(LONG, {"train": {"steps": 10_000_000}, "eval": {"every_steps": None}, "checkpoint": {"every_steps": 20}})
STARTS = "import decent_train, sys\n"


# Tests that were started in the background, or by nohup, ignore these signals, and so would the scripts that they start.
for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, default)


def surroundings(**extra: object) -> dict[str, str]:
    """Of a user of the clone; the tests' program."""
    return environment(PYTHONPATH=ROOT / "python", DECENT_TRAIN=PROGRAM, **extra)


def run_script(folder: Path, text: str, **extra: object) -> Ended:
    return run_commands([[PYTHON, "-c", text]], [surroundings(**extra)], folder)[0]


def training(folder: Path, settings: dict, more: str = "") -> str:
    """A script that trains the recipe with two workers; its recipe file is what marks the processes."""
    return f"{STARTS}run = decent_train.train({str(write_recipe(folder, settings))!r}, workers=2{more})\nprint(run.status)\n"


class Script:
    """A script that goes on beside the test, perhaps in a terminal of its own. Nothing is left of it or of its training.

    mark: an argument that the processes of its training have, such as the path of the recipe. prefix: stands before Python.
    """

    def __init__(self, folder: Path, text: str, mark: object, terminal: bool = False, prefix: tuple[str, ...] = ()) -> None:
        self.mark = Path(str(mark))
        self._said = folder / "said"
        self._said.touch()
        self.terminal: int | None = None
        command = [*prefix, PYTHON, "-c", text]
        if terminal:
            self.terminal, its_end = pty.openpty()
            self.process = subprocess.Popen(command, cwd=folder, env=surroundings(TERM="xterm"), stdin=its_end, stdout=its_end,
                                            stderr=its_end, start_new_session=True,
                                            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
            os.close(its_end)
            self._reader = threading.Thread(target=self._read_terminal, daemon=True)
            self._reader.start()
        else:
            with self._said.open("wb") as said:
                self.process = subprocess.Popen(command, cwd=folder, env=surroundings(), stdin=subprocess.DEVNULL, stdout=said,
                                                stderr=said, start_new_session=True)

    def _read_terminal(self) -> None:
        with self._said.open("wb", buffering=0) as said, suppress(OSError):
            while True:
                if select.select([self.terminal], [], [], 0.05)[0]:
                    said.write(os.read(self.terminal, 65536))

    def __enter__(self) -> Script:
        return self

    def __exit__(self, *_: object) -> None:
        for process in {self.process.pid, *processes_of(self.mark)}:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()
        if self.terminal is not None:
            self._reader.join(WAIT_S)
            os.close(self.terminal)

    def said(self) -> str:
        return self._said.read_text(errors="replace")

    def type(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def wait_for(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + WAIT_S
        while not condition():
            assert self.process.poll() is None and time.monotonic() < end, self.said()
            time.sleep(0.02)

    def wait(self, seconds: float = WAIT_S) -> int:
        """Its exit code; nothing of the training is left."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        assert self.process.poll() is not None, f"still there after {seconds} s:\n{self.said()}"
        self.wait_until_none_is_left(1)
        return self.process.returncode

    def wait_until_none_is_left(self, seconds: float = WAIT_S) -> None:
        end = time.monotonic() + seconds
        while processes_of(self.mark):
            assert time.monotonic() < end, f"{processes_of(self.mark)} left:\n{self.said()}"
            time.sleep(0.02)
