"""Trains the MLP with decent-optim-wrapper, step by step as optim_wrapper.cpp, its twin, does, with N workers:

    python optim_wrapper.py N PORT FOLDER CASE...

Each worker writes a case's result before the next begins: the package aborts now and then while it is torn down, and
what is written stays.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from loguru import logger
from torch import optim
from torch.optim.lr_scheduler import StepLR

sys.path.append(str(Path(__file__).resolve().parent.parent / "support"))  # pytest.ini does it for the tests

from decent_optim_wrapper.wrapper import DecentOptimWrapper
from forked import fork_workers
from models import MLP
from tensors import read_safetensors, write_safetensors

STEPS = 24
BATCH = 8
AVERAGE_AND_REVERT_AFTER = 8  # steps: as in an evaluation
AVERAGE_FOR_GOOD_AFTER = 16
BUCKET_MB = 0.001  # several buckets
WEIGHT_DECAY = 0.05  # of matrices
OPTIMIZERS = {
    "sgd": (optim.SGD, {"lr": 0.05, "momentum": 0.9}),
    "adam": (optim.Adam, {"lr": 3e-3, "betas": (0.8, 0.99)}),
    "adamw": (optim.AdamW, {"lr": 3e-3}),
    "rmsprop": (optim.RMSprop, {"lr": 1e-3, "alpha": 0.95, "momentum": 0.5}),
    "adagrad": (optim.Adagrad, {"lr": 2e-2, "lr_decay": 0.01}),
}
CASES = [f"{optimizer}-{topology}" for optimizer in OPTIMIZERS for topology in ("ring", "complete")]


def result_file(folder: Path, case: str, side: str, rank: int) -> Path:
    """side: cpp or python."""
    return folder / f"{case}.{side}.{rank}.safetensors"


class Twin:
    """One case on one worker."""

    def __init__(self, case: str, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.model = MLP()
        with torch.no_grad():  # every worker begins elsewhere: rank 0's values must become everyone's
            for name, parameter in self.model.named_parameters():
                parameter.copy_(torch.tensor(arrays[f"start/{name}"]) + dist.get_rank())
        name, topology = case.split("-")
        kind, options = OPTIMIZERS[name]
        parameters = list(self.model.parameters())
        self.inner = kind([
            {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": WEIGHT_DECAY},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}], **options)
        world = dist.get_world_size()
        self.optimizer = DecentOptimWrapper(self.inner, dist.get_rank(), world, world, topology, BUCKET_MB)
        assert len(self.optimizer._param_buckets) >= 3
        self.losses: list[float] = []
        self.moments: dict[str, list[np.ndarray]] = {name: [] for name, _ in self.model.named_parameters()}

    def note(self) -> None:
        for name, parameter in self.model.named_parameters():
            self.moments[name].append(parameter.detach().numpy().copy())

    def average(self, step: int) -> None:
        if step == AVERAGE_AND_REVERT_AFTER:
            self.optimizer.global_avg()
            self.note()
            self.optimizer.revert_global_avg()
            self.note()
        elif step == AVERAGE_FOR_GOOD_AFTER:
            self.optimizer.global_avg(may_revert=False)
            self.note()

    def train(self) -> dict[str, np.ndarray]:
        schedule = StepLR(self.inner, 8, 0.5)
        x, y = torch.tensor(self.arrays["x"]), torch.tensor(self.arrays["y"])
        for t in range(1, STEPS + 1):
            first = ((t - 1) * dist.get_world_size() + dist.get_rank()) * BATCH
            batch = slice(first, first + BATCH)
            loss = F.cross_entropy(self.model(x[batch]), y[batch])
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            schedule.step()
            self.losses.append(loss.item())
            self.note()
            self.average(t)
        self.optimizer.global_avg(may_revert=False)
        return {"losses": np.array(self.losses, dtype=np.float32),
                **{name: np.stack(moments) for name, moments in self.moments.items()}}


def main(folder: Path, cases: list[str]) -> None:
    logger.remove()  # the package narrates at debug level
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    arrays = read_safetensors(folder / "input.safetensors")
    for case in cases:
        result = Twin(case, arrays).train()
        path = result_file(folder, case, "python", dist.get_rank())
        write_safetensors(path.with_suffix(".tmp"), result)
        os.replace(path.with_suffix(".tmp"), path)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    fork_workers(main)
