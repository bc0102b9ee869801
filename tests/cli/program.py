"""Starts the built program as a user or a launcher would, and cleans up after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("DECENT_TRAIN", ROOT / "build" / "bin" / "decent-train")).absolute()
TORCHRUN = Path(sys.executable).with_name("torchrun")
TIMEOUT_S = 120
OUT_OF_TIME = 124  # exit code of a process that did not end by itself

LAUNCHER_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                      "DECENT_SUPERVISOR", "DECENT_STORE_LISTENER")
# torchrun, Slurm, Open MPI, Hydra and PMI: the tests may run inside a job.
LAUNCHER_PREFIXES = ("TORCHELASTIC_", "PET_", "GLOO_", "SLURM_", "OMPI_", "PMI_", "PMIX_", "MPI_LOCAL")


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    code: int
    out: str
    err: str
    seconds: float  # from the start of all processes to the end of this one


def environment(**extra: object) -> dict[str, str]:
    """This process's environment without a launcher's variables. One thread: fast on the few cores of a test. No GPU:
    the same results on every machine; tests of the GPU give CUDA_VISIBLE_DEVICES.
    """
    def foreign(name: str) -> bool:
        return name in LAUNCHER_VARIABLES or name.startswith(LAUNCHER_PREFIXES)

    kept = {name: value for name, value in os.environ.items() if not foreign(name)}
    fixed = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return {**kept, **fixed, **{name: str(value) for name, value in extra.items()}}


def launcher_variables(rank: int, workers: int, port: int, local: int | None = None) -> dict[str, object]:
    """What a launcher tells the worker `rank`; local: workers per node."""
    local = local or workers
    return {"RANK": rank, "WORLD_SIZE": workers, "LOCAL_RANK": rank % local, "LOCAL_WORLD_SIZE": local,
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}


def run_alone(*arguments: object, cwd: Path | None = None, **variables: object) -> Ended:
    """One worker, without a launcher."""
    return run_commands([[PROGRAM, *arguments]], [environment(**variables)], cwd)[0]


def run_workers(workers: int, *arguments: object, local: int | None = None, cwd: Path | None = None,
                own: Sequence[Mapping[str, object]] | None = None, **variables: object) -> list[Ended]:
    """The workers of one run, each with a launcher's variables; in the order of ranks. Rank r has the variables own[r], too."""
    return run_each([list(arguments)] * workers, local=local, cwd=cwd, own=own, **variables)


def run_each(arguments: list[list[object]], local: int | None = None, cwd: Path | None = None,
             own: Sequence[Mapping[str, object]] | None = None, **variables: object) -> list[Ended]:
    """As run_workers, rank r with arguments[r]."""
    workers, port = len(arguments), free_port()
    commands = [[PROGRAM, *its] for its in arguments]
    environments = [environment(**{**variables, **(own[rank] if own else {})}, **launcher_variables(rank, workers, port, local))
                    for rank in range(workers)]
    return run_commands(commands, environments, cwd)


def run_torchrun(*arguments: object, cwd: Path) -> Ended:
    """torchrun with exactly these arguments; its port comes by environment variable, as others may use the default."""
    return run_commands([[TORCHRUN, *arguments]], [environment(PET_MASTER_PORT=free_port())], cwd)[0]


def run_commands(commands: list[list[object]], environments: list[dict[str, str]], cwd: Path | None) -> list[Ended]:
    """Runs the processes side by side and leaves none behind, whatever happens."""
    assert PROGRAM.exists(), f"{PROGRAM} is not there: build it first, or set DECENT_TRAIN to the program"
    processes: list[subprocess.Popen] = []
    with tempfile.TemporaryDirectory() as folder:
        outs = [Path(folder, f"{i}.out") for i in range(len(commands))]
        errs = [Path(folder, f"{i}.err") for i in range(len(commands))]
        begin = time.monotonic()
        try:
            for command, variables, out, err in zip(commands, environments, outs, errs):
                with out.open("wb") as o, err.open("wb") as e:
                    processes.append(subprocess.Popen([str(part) for part in command], env=variables, cwd=cwd or folder,
                                                      stdin=subprocess.DEVNULL, stdout=o, stderr=e,
                                                      start_new_session=True))
            seconds = _wait_for_all(processes, begin)
            codes = [OUT_OF_TIME if p.returncode is None else p.returncode for p in processes]
        finally:
            for process in processes:
                _stop(process)
        return [Ended(code, out.read_text(errors="replace"), err.read_text(errors="replace"), time_)
                for code, out, err, time_ in zip(codes, outs, errs, seconds)]


def _wait_for_all(processes: list[subprocess.Popen], begin: float) -> list[float]:
    """When each process ended, in seconds since `begin`. Gives up after TIMEOUT_S."""
    ends = [float(TIMEOUT_S)] * len(processes)
    left = set(range(len(processes)))
    while left and time.monotonic() < begin + TIMEOUT_S:
        for i in [i for i in left if processes[i].poll() is not None]:
            ends[i] = time.monotonic() - begin
            left.remove(i)
        time.sleep(0.01)
    return ends


def _stop(process: subprocess.Popen) -> None:
    """SIGTERM first: torchrun's workers are not in its process group, it ends them itself, if need be after 30 s."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(40)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
