"""docs/slurm.md under Open MPI's mpirun and under Hydra, the mpiexec of MPICH: no wrapper, exit codes, what outlives them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from pages import block
from program import PROGRAM, Ended, environment, run_commands
from runs import Run, assert_same_run, assert_says, merged, with_default_farewell, write_recipe
from supervised import (ENDLESS, SETTINGS, assert_stopped, assert_whole, parent_of, processes_of, train_supervised, variables_of,
                        wait_until)

PAGE = "slurm.md"
WORKERS = 3
GONE_S = 30
SHORT = merged(SETTINGS, {"train": {"steps": 100}, "eval": {"every_steps": 50}})


@dataclass(frozen=True)
class Launcher:
    """`line` is the page's; `command` is what it begins with, spelt so that the other one's mpirun is not taken for it."""

    name: str
    package: str
    line: str
    command: tuple[str, ...]
    port: tuple[str, ...]  # sets MASTER_PORT for all workers
    rank: str  # the variable
    code_of_sigkill: int  # its exit code when a worker is killed
    patience: tuple[str, ...] | None  # gives the others time to save then; nothing: they are killed at once

    def start(self, *arguments: object) -> list[object]:
        begin, _, flags = block(PAGE, self.line).partition(" -n ")
        count, program, *_ = flags.split()
        assert self.command[0].startswith(begin) and (int(count), program) == (WORKERS, "decent-train"), flags
        return [*self.command, "-n", count, *arguments]

    def run(self, folder: Path, settings: dict, *flags: object, port: int | None = None) -> Ended:
        config = write_recipe(folder, settings)
        chosen = [part.format(port) for part in self.port] if port else []
        return run_commands([self.start(*chosen, PROGRAM, config, *flags)], [surroundings(folder)], folder)[0]


LAUNCHERS = [
    # Root, and more workers than processors.
    Launcher("Open MPI", "openmpi-bin", "mpirun", ("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"),
             ("-x", "MASTER_PORT={}"), "OMPI_COMM_WORLD_RANK", 137, ("--mca", "odls_base_sigkill_timeout", "4")),
    Launcher("Hydra", "mpich", "mpiexec", ("mpiexec.hydra",), ("-genv", "MASTER_PORT", "{}"), "PMI_RANK", 9, None),
]


def surroundings(folder: Path) -> dict[str, str]:
    """Open MPI leaves files in the folder for temporary ones when it is killed, and asks for ssh unless it is to stay alone."""
    return environment(TMPDIR=folder, OMPI_MCA_plm="isolated")


@pytest.fixture(params=LAUNCHERS, ids=lambda launcher: launcher.command[0])
def launcher(request: pytest.FixtureRequest) -> Launcher:
    if not shutil.which(request.param.command[0]):
        pytest.skip(f"the Debian package {request.param.package} is not installed")
    return request.param


class Started:
    """A run that goes on beside the test."""

    def __init__(self, launcher: Launcher, folder: Path, settings: dict, *flags: object) -> None:
        self.launcher = launcher
        self.config = write_recipe(folder, settings)
        self.run = Run(folder / "run", [])
        self._said = folder / "said"
        with self._said.open("wb") as said:
            self.process = subprocess.Popen([str(part) for part in launcher.start(*flags, PROGRAM, self.config)], cwd=folder,
                                            env=surroundings(folder), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                            start_new_session=True)

    def said(self) -> str:
        return self._said.read_text(errors="replace")

    def workers(self) -> dict[int, int]:
        """Rank -> process id of each worker that lives."""
        found = {}
        for process in processes_of(self.config):
            with suppress(OSError, KeyError):
                found[int(variables_of(process)[self.launcher.rank])] = process
        return found

    def wait_until_it_trains(self) -> None:
        """Until it has saved a checkpoint."""
        wait_until(lambda: self.run.checkpoints, said=self.said)

    def wait_until_none_is_left(self) -> None:
        wait_until(lambda: not self.workers(), GONE_S, self.said)
        assert_whole(self.run)


@contextmanager
def started(launcher: Launcher, folder: Path, *flags: object, settings: dict = ENDLESS) -> Iterator[Started]:
    """Nothing is left of it. `flags`: of the launcher."""
    run = Started(launcher, folder, settings, *flags)
    try:
        run.wait_until_it_trains()
        yield run
    finally:
        for process in {run.process.pid, *processes_of(run.config)}:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        run.process.wait()


def test_same_run(launcher: Launcher, tmp_path: Path) -> None:
    """Bit for bit that of --workers."""
    ended = launcher.run(tmp_path / launcher.name, SHORT)
    assert ended.code == 0 and f"workers  {WORKERS}, " in ended.out, ended
    by_itself = train_supervised(tmp_path / "workers", SHORT, WORKERS, OMP_NUM_THREADS=1)
    assert_same_run(by_itself, Run(tmp_path / launcher.name / "run", [ended]))


@pytest.mark.parametrize(("changes", "code", "says"), [({"optimizer": {"lrr": 1}}, 2, "did you mean 'lr'?"),
                                                       ({"optimizer": {"lr": 1e30}}, 5, "training diverged")])
def test_one_message_and_its_exit_code(launcher: Launcher, changes: dict, code: int, says: str, tmp_path: Path) -> None:
    ended = launcher.run(tmp_path, merged(SHORT, changes), "--quiet")
    said = ended.err + ended.out
    assert ended.code == code and said.count("decent-train: error:") == 1, ended
    assert_says(said, says)


def test_port_that_is_taken(launcher: Launcher, tmp_path: Path) -> None:
    """The message says how to choose another one."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))  # nobody listens there
        port = other.getsockname()[1]
        ended = launcher.run(tmp_path, merged(SHORT, {"parallel": {"timeout_s": 2}}), port=port)
    assert ended.code == 3, ended
    assert_says(ended.err + ended.out, f"worker 0 cannot host the store at 127.0.0.1:{port}: ",
                "MASTER_PORT chooses another")


def test_signal_to_the_launcher(launcher: Launcher, tmp_path: Path) -> None:
    """SIGUSR1 reaches the workers, and nobody kills them while they save."""
    with started(launcher, tmp_path) as run:
        run.process.send_signal(signal.SIGUSR1)
        assert run.process.wait(GONE_S) == 75, run.said()
        run.wait_until_none_is_left()
        assert_stopped(run.said(), run.run, r"SIGUSR1 to worker \d")


def test_worker_is_killed(launcher: Launcher, tmp_path: Path) -> None:
    """The launcher's exit code is not the workers' 3. Open MPI lets the others save; Hydra kills them before they can say anything."""
    with started(launcher, tmp_path, *launcher.patience or (), settings=with_default_farewell(ENDLESS)) as run:
        os.kill(run.workers()[2], signal.SIGKILL)
        assert run.process.wait(GONE_S) == launcher.code_of_sigkill, run.said()
        run.wait_until_none_is_left()
        end = run.run.lines("end")
        assert [line["status"] for line in end] == (["failed"] if launcher.patience else []), run.said()
        assert not end or end[0]["step"] == run.run.checkpoints[-1], end


def test_launcher_is_killed(launcher: Launcher, tmp_path: Path) -> None:
    """The process that started the workers: mpirun itself, or Hydra's proxy. They save."""
    with started(launcher, tmp_path) as run:
        os.kill(parent_of(run.workers()[0]), signal.SIGKILL)
        run.wait_until_none_is_left()
        end = run.run.lines("end")
        assert [line["status"] for line in end] == ["stopped"] and end[0]["step"] == run.run.checkpoints[-1], end


def test_command_is_killed(launcher: Launcher, tmp_path: Path) -> None:
    """Hydra's proxy then kills the workers, which cannot save any more: what they have saved is whole."""
    with started(launcher, tmp_path) as run:
        run.process.kill()
        run.wait_until_none_is_left()
