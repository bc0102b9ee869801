"""Runs whose workers share memory beside runs that exchange by gloo; workers in surroundings of their own; and what a run
leaves in memory.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from ports import free_port
from program import PROGRAM, Ended, environment, launcher_variables, run_commands
from runs import Run, train, write_recipe
from tensors import read_safetensors

ALL = "DECENT_ALL_COMBINATIONS" in os.environ  # whole grids of cases
GLOO = ("--set", "parallel.backend=gloo")
BY = {"shared": "cpu, exchange by shared memory", "mixed": "cpu, exchange by shared memory and gloo",
      "gloo": "cpu, exchange by gloo"}


def told_device(text: str) -> str:
    """What the first lines of a run or --dry-run say of the device and the exchange."""
    lines = [line for line in text.splitlines() if line.startswith("device ")]
    assert len(lines) == 1, text
    return lines[0].removeprefix("device").strip()


def assert_exchanged(run: Run | list[Ended], by: str) -> None:
    ended = run.ended if isinstance(run, Run) else run
    assert told_device(ended[0].out) == BY[by], ended[0].out


def train_shared(folder: Path, own: dict, *flags: object, workers: int) -> Run:
    """parallel.backend: auto, which takes shared memory."""
    run = train(folder, own, *flags, workers=workers)
    assert_exchanged(run, "shared")
    assert "memory" not in run.ended[0].err, run.ended[0].err
    return run


def train_gloo(folder: Path, own: dict, *flags: object, workers: int) -> Run:
    run = train(folder, own, *flags, *GLOO, workers=workers)
    assert_exchanged(run, "gloo")
    return run


def replicas(run: Run, step: int, workers: int) -> list[dict[str, np.ndarray]]:
    """All that a checkpoint holds of each worker."""
    return [read_safetensors(run.checkpoint(step) / f"rank-{rank:04}.safetensors") for rank in range(workers)]


# ---- surroundings ---------------------------------------------------------------------------------------------------

def in_mounts(*commands: str) -> list[str]:
    """A prefix: in a mount namespace of its own, after these commands."""
    return ["unshare", "-m", "sh", "-c", " && ".join([*commands, 'exec "$@"']), "sh"]


def run_behind(prefixes: list[list[object]], folder: Path, own: dict, *flags: object, local: int | None = None,
               address: str = "127.0.0.1", **variables: object) -> list[Ended]:
    """The recipe with the output folder <folder>/run, the worker of each rank behind a prefix of its own."""
    config, port, workers = write_recipe(folder, own), free_port(), len(prefixes)
    told = [{**launcher_variables(rank, workers, port, local), "MASTER_ADDR": address} for rank in range(workers)]
    return run_commands([[*prefix, PROGRAM, "--config", config, *flags] for prefix in prefixes],
                        [environment(**variables, **own_variables) for own_variables in told], folder)


def train_behind(prefixes: list[list[object]], folder: Path, own: dict, *flags: object, **more: object) -> Run:
    """As run_behind; it must go well."""
    ended = run_behind(prefixes, folder, own, *flags, **more)
    assert [e.code for e in ended] == [0] * len(prefixes), "\n".join(e.err + e.out for e in ended)
    return Run(folder / "run", ended)


# ---- memory ---------------------------------------------------------------------------------------------------------

Inode = tuple[str, int]  # device, as /proc/PID/maps has it, and number


def _inode_of(descriptor: Path) -> Inode:
    status = descriptor.stat()
    return f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}", status.st_ino


def mapped_files(pid: int, part: str) -> set[Inode]:
    """Files with `part` in their name that a process has mapped."""
    found = set()
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and part in fields[5]:
                found.add((fields[3], int(fields[4])))
    return found


def open_files(pid: int, part: str) -> set[Inode]:
    """Files with `part` in their name that a process has open."""
    found = set()
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if part in os.readlink(descriptor):
                    found.add(_inode_of(descriptor))
    return found


def shared_memory_of(pids: list[int]) -> set[Inode]:
    """What these processes have mapped or open that has no name in any folder."""
    return set().union(*(look(pid, "/memfd:") for pid in pids for look in (mapped_files, open_files)))


def allocated(pids: list[int]) -> list[int]:
    """Bytes of memory behind what each process has made for others to map."""
    found = []
    for pid in pids:
        with_name = [d for d in Path(f"/proc/{pid}/fd").iterdir() if "/memfd:" in os.readlink(d)]
        found.append(sum(descriptor.stat().st_blocks * 512 for descriptor in with_name))
    return found


def holders_of(memory: set[Inode]) -> list[int]:
    """Processes of this machine that keep any of it alive."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if shared_memory_of([pid]) & memory]


def wide_model(folder: Path, parameters: int) -> Path:
    """A model of the digits with about so many parameters, most of them in one layer."""
    import torch
    from torch import nn

    hidden = parameters // 75  # 64 weights from the pixels, 1 bias and 10 weights to the classes
    path = folder / "wide.pt"
    torch.manual_seed(0)
    torch.jit.script(nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))).save(str(path))
    return path
