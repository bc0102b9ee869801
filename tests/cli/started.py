"""Runs that go on until something is done to them, and what their workers say then."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ports import free_port
from program import PROGRAM, ROOT, TORCHRUN, environment, launcher_variables
from runs import Run, write_recipe

CONFIG = ROOT / "configs" / "digits.yaml"
TIMEOUT_S = 5
GRACE_S = 2  # beyond it: two cores, with other tests beside this one
MASTER_ADDR = "127.0.0.1"
# Without a farewell: a loss ends all workers at once (test_farewell.py has what comes of it by default).
SLOW = ("--set", "train.steps=1000000", "--set", f"parallel.timeout_s={TIMEOUT_S}", "--set", "log.every_steps=100",
        "--set", "parallel.farewell_s=0")


class Started:
    """The workers of a run that goes on until something is done to it, with or without torchrun."""

    def __init__(self, workers: int, folder: Path, torchrun: bool = False, *flags: str, config: Path = CONFIG,
                 outputs: tuple[str, ...] = ()) -> None:
        """`outputs`: of each worker, as on machines without a shared file system."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        command = ["--config", str(config), "--set", f"output={folder / 'run'}", *SLOW, *flags]
        self.files = []
        self.processes = []
        if torchrun:
            self._start([str(TORCHRUN), "--nproc-per-node", str(workers), str(PROGRAM), *command],
                        environment(PET_MASTER_PORT=free_port()))
        else:
            port = free_port()
            for rank in range(workers):
                variables = launcher_variables(rank, workers, port) | {"MASTER_ADDR": MASTER_ADDR}
                own = ["--set", f"output={folder / outputs[rank]}"] if outputs else []
                self._start([str(PROGRAM), *command, *own], environment(**variables))

    def _start(self, command: list[str], variables: dict[str, str]) -> None:
        files = [(self.folder / f"{len(self.processes)}.{stream}").open("w+") for stream in ("out", "err")]
        self.files.append(files)
        self.processes.append(subprocess.Popen(command, env=variables, cwd=self.folder, stdin=subprocess.DEVNULL,
                                               stdout=files[0], stderr=files[1]))

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in [p.pid for p in self.processes if p.poll() is None] + self.workers_of_torchrun():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process, files in zip(self.processes, self.files):
            process.wait()
            for file in files:
                file.close()

    def workers_of_torchrun(self) -> list[int]:
        """Process ids of this run's workers, by what they write: torchrun's children."""
        mark = f"output={self.folder / 'run'}".encode()
        pids = {}
        for entry in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
                if mark in arguments and arguments[0].endswith(b"decent-train"):
                    rank = re.search(rb"(?:^|\0)RANK=(\d+)\0", (entry / "environ").read_bytes())
                    pids[int(rank.group(1)) if rank else 0] = int(entry.name)
        return [pids[rank] for rank in sorted(pids)]

    def wait_until_it_trains(self) -> None:
        metrics = self.folder / "run" / "metrics.jsonl"
        deadline = time.monotonic() + 60
        while not (metrics.exists() and metrics.stat().st_size):
            assert all(p.poll() is None for p in self.processes), self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.01)

    def wait(self, seconds: float, without: int | None = None) -> list[int]:
        """Exit codes of all processes but one, which must have ended in that time."""
        deadline = time.monotonic() + seconds
        codes = []
        for rank, process in enumerate(self.processes):
            if rank == without:
                continue
            try:
                codes.append(process.wait(max(0.01, deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                pytest.fail(f"process {rank} still runs after {seconds} s:\n{self.said()}")
        return codes

    def said(self, stream: int = 1) -> str:
        return "".join(Path(files[stream].name).read_text(errors="replace") for files in self.files)

    def last_metrics_line(self) -> str:
        return (self.folder / "run" / "metrics.jsonl").read_text().splitlines()[-1]


def check_names(text: str, rank: int) -> None:
    """One message, which says who was lost, where, and what it was at."""
    errors = [line for line in text.splitlines() if line.startswith("decent-train: error:")]
    assert len(errors) == 1, text
    host = os.uname().nodename
    assert errors[0].startswith(f"decent-train: error: lost worker {rank} on '{host}': "), text
    doing = ("starting|running|waiting for data|in forward|in backward|averaging|evaluating|adding up scores|writing metrics|"
             "saving a checkpoint")
    assert re.search(rf"It was last heard of [\d.]+ s ago, in step \d+, ({doing})", errors[0]), text


def stop_on_the_way(folder: Path, recipe: dict, workers: int, local: int, rank: int) -> int:
    """Starts the recipe, sends SIGTERM to one worker once it trains, and returns the step that it stopped after."""
    config = write_recipe(folder, recipe)
    port, metrics = free_port(), folder / "run" / "metrics.jsonl"
    with (folder / "err").open("w+") as err:
        processes = [subprocess.Popen([str(PROGRAM), "--config", str(config)], cwd=folder, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=err,
                                      env=environment(**launcher_variables(i, workers, port, local)))
                     for i in range(workers)]
        try:
            deadline = time.monotonic() + 60
            while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
                time.sleep(0.002)
            os.kill(processes[rank].pid, signal.SIGTERM)
            codes = [p.wait(60) for p in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        said = (folder / "err").read_text()
    assert codes == [75] * workers, said
    run = Run(folder / "run", [])
    step = run.metrics[-1]["step"]
    assert run.metrics[-1] == {**run.metrics[-1], "kind": "end", "status": "stopped"}
    assert said == (f"decent-train: stopped after step {step} by SIGTERM to worker {rank}. Saved "
                    f"'{run.checkpoint(step)}'; go on with --resume auto\n")
    assert run.checkpoint(step).is_dir()
    return step
