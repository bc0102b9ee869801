"""How many trials run side by side, and what of the machine each of them has."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .sweep import Sweep


def slots_of(sweep: Sweep, recipe: Mapping[str, Any]) -> list[dict[str, str]]:
    """For each trial that may run at a time the environment variables of its program: threads, and GPUs where there are
    any.

    On the CPU as many trials run as have a core for each thread. With GPUs each trial has one for each worker, and
    trials share them if `parallel` asks for more.
    """
    gpus = [] if recipe["model"]["device"] == "cpu" else visible_gpus()
    threads = _threads(sweep, recipe)
    count = sweep.parallel or max(1, len(gpus) // sweep.workers if gpus else cores() // (sweep.workers * threads))
    return [{"OMP_NUM_THREADS": str(threads), **_share(gpus, sweep.workers, slot)} for slot in range(count)]


def cores() -> int:
    """The cores that this process may use: those that it is bound to, and no more than a container's quota allows."""
    return max(1, min(len(os.sched_getaffinity(0)), _quota()))


def _quota() -> int:
    """Whole processors that the control group of this process may use."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return int(quota) // int(period) if quota != "max" else sys.maxsize
    except (OSError, ValueError):
        return sys.maxsize


def visible_gpus() -> list[str]:
    """The GPUs of this machine as CUDA_VISIBLE_DEVICES names them."""
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    lines = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    if listed.returncode != 0 or not lines:
        return []
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return [str(i) for i in range(len(lines))]
    # As CUDA reads it: up to the first that is no GPU.
    return list(itertools.takewhile(lambda each: each and not each.startswith("-"), map(str.strip, chosen.split(","))))


def _threads(sweep: Sweep, recipe: Mapping[str, Any]) -> int:
    """Of each worker. What the sweep file says, then OMP_NUM_THREADS; else trials side by side share the cores."""
    if sweep.threads is not None:
        return sweep.threads
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    return 1 if sweep.parallel is None else max(1, cores() // (sweep.parallel * sweep.workers))


def _share(gpus: list[str], workers: int, slot: int) -> dict[str, str]:
    if not gpus:
        return {}
    first = slot * workers
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpus[(first + i) % len(gpus)] for i in range(min(workers, len(gpus))))}
