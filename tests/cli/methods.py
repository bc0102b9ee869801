"""Runs by each parallel.method, and what their checkpoints hold."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from runs import DIGITS_CNN, DIGITS_MLP, Run, merged, recipe
from tensors import read_safetensors

ALL = "DECENT_ALL_COMBINATIONS" in os.environ  # whole grids of cases
# float16 in which some steps overflow and most do not. Convolutions in it take long on a CPU.
FP16 = {"model": {"path": str(DIGITS_MLP)}, "amp": {"dtype": "fp16", "init_scale": 2.0**22, "growth_interval": 3}}
STILL = {"optimizer": {"lr": 1e-30}}  # moves no weight: a weight is at least 1e-8 apart from the next one, or 0
# What each way of training by all_reduce is.
WAYS: dict[str, dict[str, Any]] = {
    "fp32": {}, "bf16": {"parallel": {"comm_dtype": "bf16"}}, "fp16": FP16, "accumulation": {"train": {"grad_accumulation": 3}},
    "clip": {"parallel": {"grad_clip_norm": 0.5}},
}


def by(method: str, model_file: Path = DIGITS_CNN, data_file: Path | None = None, /, **changes: Any) -> dict:
    """A recipe with several buckets, for a model with batch norm: buffers differ from worker to worker."""
    own = recipe(model_file, data_file, parallel={"method": method, "bucket_mb": 0.02})
    return merged(own, changes)


def files_of(run: Run, step: int) -> list[dict[str, np.ndarray]]:
    """What is in the file of each worker, in order."""
    return [read_safetensors(file) for file in sorted(run.checkpoint(step).glob("rank-*.safetensors"))]


def part(tensors: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Those whose names begin with model., buffer. or optimizer., without it."""
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


def mean(files: list[dict[str, np.ndarray]], name: str) -> np.ndarray:
    """In float64, rounded once."""
    values = [tensors[name] for tensors in files]
    return np.mean([value.astype(np.float64) for value in values], axis=0).astype(values[0].dtype)


def distances(run: Run) -> list[float]:
    return [line["consensus_distance"] for line in run.lines("eval")]
