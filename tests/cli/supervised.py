"""Runs that `decent-train RECIPE --workers N` started, and their workers."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import xxhash

from program import PROGRAM, Ended, environment, run_commands
from runs import Run, merged, recipe, write_recipe

TIMEOUT_S = 6  # parallel.timeout_s of the runs below
# An undisturbed run of a second, with a checkpoint every few steps.
SETTINGS = recipe(train={"steps": 400}, parallel={"topology": "ring", "timeout_s": TIMEOUT_S}, eval={"every_steps": 100},
                  checkpoint={"every_steps": 20, "keep": 2}, log={"every_steps": 10})
ENDLESS = merged(SETTINGS, {"train": {"steps": 10_000_000}, "eval": {"every_steps": None}})


def surroundings(**extra: object) -> dict[str, str]:
    """A user's environment: nobody has set the number of threads."""
    variables = environment()
    del variables["OMP_NUM_THREADS"]
    return {**variables, **{name: str(value) for name, value in extra.items()}}


def run_supervised(folder: Path, settings: dict, workers: int, *flags: object, prefix: list[object] | None = None,
                   **variables: object) -> Ended:
    """The recipe with the output folder <folder>/run, whatever comes of it. `prefix` stands before the program."""
    config = write_recipe(folder, settings)
    command = [*(prefix or []), PROGRAM, config, "--workers", workers, *flags]
    return run_commands([command], [surroundings(**variables)], folder)[0]


def train_supervised(folder: Path, settings: dict, workers: int, *flags: object, **more: object) -> Run:
    """As run_supervised; it must go well."""
    ended = run_supervised(folder, settings, workers, *flags, **more)
    assert ended.code == 0, ended
    return Run(folder / "run", [ended])


def processes_of(config: Path) -> list[int]:
    """All processes that work on a recipe, whoever their parent is by now."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if str(config).encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def variables_of(process: int) -> dict[str, str]:
    """The environment that a process was started with."""
    texts = Path(f"/proc/{process}/environ").read_bytes().decode(errors="replace").split("\0")
    return dict(text.split("=", 1) for text in texts if "=" in text)


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def states_of(process: int) -> set[str]:
    """Of its threads, as ps shows them: R, S, T, .."""
    files = Path(f"/proc/{process}/task").glob("*/stat")
    return {file.read_text().rsplit(")", 1)[1].split()[0] for file in files}


def wait_until(condition: Callable[[], object], seconds: float = 60, said: Callable[[], str] = str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, said() or f"{seconds} s went by"
        time.sleep(0.005)


class Supervised:
    """A run that goes on beside the test, in a session of its own. Nothing is left of it."""

    def __init__(self, folder: Path, settings: dict, workers: int, *flags: object, prefix: list[object] | None = None,
                 terminal: bool = False, program: Path = PROGRAM, **variables: object) -> None:
        self.config = write_recipe(folder, settings)
        self.run = Run(folder / "run", [])
        self.workers = workers
        self._said = folder / "said"
        self._said.touch()
        self.terminal: int | None = None
        self._closes = threading.Event()
        command = [str(part) for part in [*(prefix or []), program, self.config, "--workers", workers, *flags]]
        start = self._start_in_terminal if terminal else self._start
        self.process = start(command, surroundings(**variables), folder)

    def _start(self, command: list[str], variables: dict[str, str], folder: Path) -> subprocess.Popen:
        with self._said.open("wb") as said:
            return subprocess.Popen(command, env=variables, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                    start_new_session=True)

    def _start_in_terminal(self, command: list[str], variables: dict[str, str], folder: Path) -> subprocess.Popen:
        """In the foreground of a terminal of its own; what is written to `terminal` are the user's keys."""
        self.terminal, its_end = pty.openpty()
        process = subprocess.Popen(command, env=variables, cwd=folder, stdin=its_end, stdout=its_end, stderr=its_end,
                                   start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(its_end)
        self._reader = threading.Thread(target=self._read_terminal)
        self._reader.start()
        return process

    def _read_terminal(self) -> None:
        """Until it is closed on either side."""
        with self._said.open("wb", buffering=0) as said, suppress(OSError):
            while not self._closes.is_set():
                if select.select([self.terminal], [], [], 0.02)[0]:
                    said.write(os.read(self.terminal, 65536))

    def __enter__(self) -> Supervised:
        return self

    def __exit__(self, *_: object) -> None:
        for process in {self.process.pid, *processes_of(self.config)}:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()
        self.close_terminal()

    def close_terminal(self) -> None:
        if self.terminal is None:
            return
        self._closes.set()
        self._reader.join()
        os.close(self.terminal)
        self.terminal = None

    def type(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def said(self) -> str:
        return self._said.read_text(errors="replace")

    @property
    def errors(self) -> list[str]:
        """The lines in which the program says that something went wrong."""
        return [line for line in self.said().splitlines() if line.startswith("decent-train: error:")]

    def living(self) -> dict[int, int]:
        """Rank -> process id of each worker that lives."""
        found = {}
        for process in processes_of(self.config):
            with suppress(OSError, KeyError):
                found[int(variables_of(process)["RANK"])] = process
        return found

    def silence(self, rank: int) -> int:
        """Stops a worker, like a machine that hangs. Returns its process id."""
        process = self.living()[rank]
        os.kill(process, signal.SIGSTOP)
        self.wait_for(lambda: states_of(process) == {"T"})
        return process

    def wait_for_workers(self) -> None:
        """They exist, and load."""
        self.wait_for(lambda: len(self.living()) == self.workers)

    def wait_until_it_trains(self) -> None:
        """Until it has saved a checkpoint."""
        self.wait_for(lambda: self.run.checkpoints)

    def wait_for_metrics(self) -> None:
        metrics = self.run.folder / "metrics.jsonl"
        self.wait_for(lambda: metrics.exists() and metrics.stat().st_size > 0)

    def wait_for(self, condition: Callable[[], object]) -> None:
        """While the program runs."""
        wait_until(lambda: condition() or self.process.poll() is not None, said=self.said)
        assert self.process.poll() is None, self.said()

    def wait(self, seconds: float) -> int:
        """The exit code of the program; none of its workers is left."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        assert self.process.poll() is not None, f"still there after {seconds} s:\n{self.said()}"
        assert processes_of(self.config) == [], self.said()
        if self.terminal is not None:
            self._reader.join(seconds)  # nobody has the other side open any more
        return self.process.returncode

    def wait_until_none_is_left(self, seconds: float) -> None:
        wait_until(lambda: processes_of(self.config) == [], seconds, self.said)


def assert_whole(run: Run) -> None:
    """Every checkpoint in its place has all its files, byte for byte; there are some."""
    assert run.checkpoints, run.folder
    for step in run.checkpoints:
        folder = run.checkpoint(step)
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["step"] == step and manifest["files"]
        for file in manifest["files"]:
            content = (folder / file["name"]).read_bytes()
            assert len(content) == file["bytes"], folder / file["name"]
            assert xxhash.xxh3_128_hexdigest(content) == file["xxh3_128"], folder / file["name"]


def assert_stopped(text: str, run: Run, by: str) -> None:
    """The last line says why the run stopped, and after which step; that step's checkpoint is there."""
    stopped = re.search(rf"decent-train: stopped after step (\d+) by {by}\. Saved '(.*)'; go on with --resume auto", text)
    assert stopped, text
    assert Path(stopped[2]) == run.checkpoint(int(stopped[1])) and int(stopped[1]) in run.checkpoints, text
    assert_whole(run)
