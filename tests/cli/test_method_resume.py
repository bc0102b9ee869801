"""Runs of parallel.method all_reduce and none that were stopped and go on: the same bits; other numbers of workers and other
methods begin with the average.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from methods import ALL, STILL, WAYS, by, distances, files_of, mean, part
from runs import Run, assert_same_run, merged, train
from started import stop_on_the_way
from tensors import differing, read_safetensors, same_bits

# Keeps what an optimizer remembers: a step changes it by 1e-9 of itself and of the gradient or its square. Adam's second state
# is about 1e-2 of that square after 10 steps, and a gradient may be a few times as large as those before.
REMEMBER = {"betas": [1 - 1e-9, 1 - 1e-9]}


def assert_same_files(a: Run, b: Run, step: int) -> None:
    """Parameters, optimizer states and every worker's buffers in the checkpoint after the last step."""
    assert [differing(of_a, of_b) for of_a, of_b in zip(files_of(a, step), files_of(b, step), strict=True)] == [[]] * len(files_of(a, step))


# ---- the same bits -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("method", "way", "workers"),
                         [(method, way, workers) for method in ("all_reduce", "none") for way in WAYS for workers in (2, 3, 4)
                          if method == "all_reduce" or way != "bf16"] if ALL else
                         [("all_reduce", "fp32", 3), ("all_reduce", "bf16", 2), ("all_reduce", "fp16", 2),
                          ("all_reduce", "accumulation", 2), ("none", "fp32", 2)])
def test_more_steps(method: str, way: str, workers: int, tmp_path: Path) -> None:
    """7 steps, then 7 more."""
    def until(steps: int) -> dict:
        own = merged(by(method, eval={"every_steps": 7}, checkpoint={"every_steps": 7}), WAYS[way])
        return merged(own, {"train": {"steps": steps}})

    undisturbed = train(tmp_path / "whole", until(14), workers=workers)
    train(tmp_path / "parts", until(7), workers=workers)
    resumed = train(tmp_path / "parts", until(14), "--resume", "auto", workers=workers)
    assert_same_run(undisturbed, resumed)
    assert_same_files(undisturbed, resumed, 14)
    assert (distances(resumed)[-1] == 0) == (method == "all_reduce")
    if way == "fp16":
        scales = [line["loss_scale"] for line in resumed.lines("train")]
        assert scales[-1] != scales[0] and scales[7] != 2.0**22  # there were overflows, and the scale was resumed


def test_stopped_by_a_signal(tmp_path: Path) -> None:
    """SIGTERM to one worker: 75, and the same run afterwards."""
    whole = by("all_reduce", train={"steps": 60, "grad_accumulation": 2}, data={"batch_size": 4}, log={"every_steps": 7},
               eval={"every_steps": 20})
    undisturbed = train(tmp_path / "whole", whole, workers=3)
    step = stop_on_the_way(tmp_path / "stopped", whole, 3, 3, rank=2)
    assert 0 < step < 60
    assert_same_run(undisturbed, train(tmp_path / "stopped", whole, "--resume", "auto", workers=3))


# ---- from the average ----------------------------------------------------------------------------------------------

def saved(folder: Path, method: str, workers: int) -> Run:
    """A checkpoint after step 10."""
    return train(folder, by(method, train={"steps": 10}, parallel={"topology": "ring"}, checkpoint={"every_steps": 10}),
                 workers=workers)


def gone_on(run: Run, method: str, workers: int) -> Run:
    """One step that moves no weight, and its checkpoint."""
    own = by(method, train={"steps": 11}, parallel={"topology": "ring"}, optimizer={**STILL["optimizer"], **REMEMBER},
             checkpoint={"every_steps": 11}, eval={"every_steps": 11})
    return train(run.folder.parent, own, "--resume", run.checkpoint(10), workers=workers)


def check_average(before: list[dict[str, np.ndarray]], after: dict[str, np.ndarray]) -> None:
    """Averages of weights, bit for bit; of optimizer states, but for what a step adds (REMEMBER)."""
    assert part(after, "model.") and part(after, "optimizer.")
    for name, tensor in after.items():
        holders = [tensors for tensors in before if name in tensors]
        if name.startswith("model."):
            assert same_bits(tensor, mean(holders, name)), name
        elif name.endswith(".step"):
            assert tensor == 1 + max(tensors[name] for tensors in holders), name
        elif name.startswith("optimizer."):
            expected = mean(holders, name)
            assert np.abs(tensor - expected).max() <= 1e-5 * np.abs(expected).max(), name


FROM = ["gossip", "none"]


@pytest.mark.parametrize(("method", "before", "after"), [(method, *numbers) for method in FROM for numbers in ((2, 2), (3, 2), (2, 4))]
                         if ALL else [("gossip", 2, 2), ("none", 2, 3)])
def test_all_reduce_begins_with_the_average(method: str, before: int, after: int, tmp_path: Path) -> None:
    run = saved(tmp_path, method, before)
    of_before = files_of(run, 10)
    name = "model.head.weight"
    assert not same_bits(of_before[0][name], of_before[1][name])
    again = gone_on(run, "all_reduce", after)
    check_average(of_before, files_of(again, 11)[0])
    assert f"changed since: parallel.method was {method}, is all_reduce" in again.ended[0].out
    assert distances(again)[-1] == 0


@pytest.mark.parametrize(("method", "before", "after"), [(method, *numbers) for method in ("all_reduce", "gossip", "none")
                                                         for numbers in ((2, 2), (3, 2), (2, 4))]
                         if ALL else [("all_reduce", 3, 2), ("all_reduce", 2, 3), ("gossip", 2, 2), ("none", 2, 2)])
def test_all_go_on_from_the_weights_of_all_reduce(method: str, before: int, after: int, tmp_path: Path) -> None:
    """Bit for bit, on every worker, as the average of one thing is that thing."""
    run = saved(tmp_path, "all_reduce", before)
    of_before = files_of(run, 10)
    again = gone_on(run, method, after)
    of_after = files_of(again, 11)
    with_weights = [tensors for tensors in of_after if part(tensors, "model.")]
    assert len(with_weights) == (1 if method == "all_reduce" else after) and len(of_after) == after
    for tensors in with_weights:
        check_average(of_before, tensors)
    if before != after:
        said = f"the checkpoint is of {before} workers, this run has {after}"
        assert said in again.ended[0].out
    # Buffers of a worker that was there go on; with another number of workers all begin with their average.
    counter = "buffer.norm1.num_batches_tracked"
    assert {int(tensors[counter]) for tensors in of_after} == {int(of_before[0][counter]) + 1}


def test_learns_on_by_another_method(tmp_path: Path) -> None:
    """gossip, all_reduce with more workers, none, all_reduce: one run, whose loss falls."""
    losses = []
    for steps, method, workers in ((40, "gossip", 2), (80, "all_reduce", 3), (110, "none", 3), (150, "all_reduce", 2)):
        own = by(method, train={"steps": steps}, eval={"every_steps": 500}, checkpoint={"every_steps": 500})
        run = train(tmp_path, own, "--resume", "auto", workers=workers)
        losses.append(run.evaluation["loss"])
    assert [line["step"] for line in run.lines("train")] == list(range(1, 151))
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.5 * losses[0]


def test_model_files_are_the_same(tmp_path: Path) -> None:
    """Not of safetensors alone: what model.pt holds."""
    import torch

    states = []
    for name, parts in (("whole", (12,)), ("parts", (5, 12))):
        for steps in parts:
            own = by("all_reduce", train={"steps": steps}, checkpoint={"every_steps": steps})
            run = train(tmp_path / name, own, "--resume", "auto", workers=2)
        states.append({key: t.numpy() for key, t in torch.jit.load(str(run.folder / "model.pt")).state_dict().items()})
        assert differing(states[-1], read_safetensors(run.folder / "model.safetensors")) == []
    assert differing(*states) == []
