"""A training thread that hangs while its worker's heartbeats go on: parallel.stall_s."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from runs import NO_EVALUATION, recipe
from started import Started
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


@pytest.mark.parametrize(("where", "doing"), [("train", "in forward"), ("eval", "evaluating")])
@pytest.mark.parametrize("rank", range(WORKERS))
def test_hanging_worker_is_named(rank: int, where: str, doing: str, tmp_path: Path) -> None:
    config = make_recipe(tmp_path, rank, where, STALL_S)
    with Started(WORKERS, tmp_path / "out", False, "--set", "log.every_steps=1", config=config) as run:
        run.wait_until_it_trains()
        assert run.wait(STALL_S + 10) == [3, 3], run.said()
        errors = [line for line in run.said().splitlines() if line.startswith("decent-train: error:")]
        host = os.uname().nodename
        assert len(errors) == 1, run.said()
        assert errors[0].startswith(
            f"decent-train: error: worker {rank} on '{host}' has been {doing} (step {HANGS_IN_STEP}) for "), run.said()
        assert f"parallel.stall_s: {STALL_S} s" in errors[0]
        assert '"status":"failed"' in run.last_metrics_line()


def test_a_single_worker_is_watched_too(tmp_path: Path) -> None:
    config = make_recipe(tmp_path, 0, "train", STALL_S)
    with Started(1, tmp_path / "out", False, "--set", "log.every_steps=1", config=config) as run:
        assert run.wait(STALL_S + 20) == [3], run.said()
        assert "worker 0 on" in run.said() and "in forward" in run.said()


def test_without_a_limit_it_is_waited_for(tmp_path: Path) -> None:
    """What the README says of the default: heartbeats go on, so that timeout_s does not end the run."""
    config = make_recipe(tmp_path, 1, "train", None)
    with Started(WORKERS, tmp_path / "out", False, "--set", "log.every_steps=1", "--set", "parallel.timeout_s=1",
                 config=config) as run:
        run.wait_until_it_trains()
        time.sleep(4)
        assert [process.poll() for process in run.processes] == [None, None], run.said()
