"""A model whose forward never ends on one batch, and the recipe in which one worker comes to it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from runs import NO_EVALUATION, recipe
from tensors import write_safetensors

WORKERS, BATCH, HANGS_IN_STEP = 2, 4, 6
SENTINEL = 1e9
STALL_S = 2


class Hangs(nn.Module):
    """A forward that never ends on a batch with the sentinel in it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        rounds = 0
        while bool((x.abs().max() + float(rounds % 2)) > 1e6):
            rounds += 1
        return self.linear(x) + 0 * rounds


def make_recipe(folder: Path, rank: int, where: str, stall_s: float | None) -> Path:
    """Worker `rank` hangs in training step HANGS_IN_STEP, or in the evaluation after it."""
    torch.jit.script(Hangs()).save(str(folder / "hangs.pt"))
    rng = np.random.default_rng(0)
    for name in ("train", "eval"):
        x = rng.normal(size=(400, 8)).astype(np.float32)
        if name == where:  # without shuffling worker r takes every WORKERS-th sample from the r-th on
            x[WORKERS * BATCH * (HANGS_IN_STEP - 1) + rank] = SENTINEL
        write_safetensors(folder / f"{name}.safetensors", {"x": x, "y": rng.integers(0, 10, 400)})
    sources = {name: {"format": "safetensors", "path": str(folder / f"{name}.safetensors")}
               for name in ("train", "eval")}
    config = folder / "recipe.yaml"
    config.write_text(json.dumps(recipe(folder / "hangs.pt", data={**sources, "batch_size": BATCH,
                                              "eval_batch_size": BATCH, "shuffle": False},
                                        eval={"every_steps": HANGS_IN_STEP} if where == "eval" else NO_EVALUATION,
                                        parallel={"stall_s": stall_s})))
    return config
