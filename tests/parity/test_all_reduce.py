"""parallel.method: all_reduce where test_parity.py's comparison does not do: float16 with a loss scale, gradients that are sent
in bfloat16; and what one worker makes of all workers' samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import all_reduce
import launch
from all_reduce import loss_at
from cases import CASES, Case
from compare import check_that_training_moved, compare_losses, compare_tensors, tensors_of, way_apart
from reference import Batches, load_model, trained

# Rounding in another order takes a weight over the border between two numbers of float16 now and then (a difference of 1e-7 of
# each of a thousand weights, against a distance of 2^-11: less than one of them a step), and training makes more of it. So two
# programs may be as far apart as the reference is from itself where one weight a step goes over such a border, and twice that, as
# a few courses do not show the worst: usually 1e-4 of a loss and 4e-4 of a tensor's way, more where Adam divides by next to
# nothing. It must stay far below what a mistake does: with float32 in forward, losses differ by 0.3 and tensors by 0.2.
COURSES = 4
FACTOR = 2.0
MOST_OF_LOSS, MOST_OF_WAY = 5e-3, 2e-2


def names(chosen) -> list[str]:
    return [name for name, case in CASES.items() if case.method == "all_reduce" and chosen(case)]


def tensors(run: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of the trained model that decent-train wrote."""
    return {key.removeprefix("tensor/"): t for key, t in run.items() if key.startswith("tensor/")}


# ---- the reference by itself ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", names(lambda case: case.unused))
def test_branches_are_used_by_all_by_some_and_by_none(name: str, reference_result) -> None:
    case = CASES[name]
    used = reference_result(case)["used"]
    branches = used[:, :4]
    assert ((branches > 0) & (branches < case.workers)).any() and (branches == case.workers).any()
    assert (branches == 0).any() or case.accumulation > 1
    assert (used[:, 4:6] == 0).all() and (used[:, 6:] == case.workers).all()


def one_worker(case: Case) -> Case:
    """The same samples in each update. Without other workers there is no one to average with."""
    return replace(case, name=f"{case.name}-alone", workers=1, batch_size=sum(case.sizes), batch_sizes=(), method="gossip")


WITHOUT_BATCH_NORM = [name for name in names(lambda case: not case.scaler and case.comm_dtype == "fp32")
                      if CASES[name].model in ("mlp", "gpt")]


@pytest.mark.parametrize("name", WITHOUT_BATCH_NORM)
def test_is_one_worker_with_all_samples(name: str, folder, tmp_path, reference_result) -> None:
    case = CASES[name]
    theirs = reference_result(one_worker(case))
    runs = [reference_result(case), launch.run_decent_train(case, folder, tmp_path)]
    for losses, of_model in zip([run["losses"] for run in runs], [tensors_of(runs[0]), tensors(runs[1])]):
        compare_losses(losses, theirs["losses"])
        compare_tensors(of_model, theirs)


# ---- float16 -------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Borders:
    """How far a run may be from the reference: of each loss, and of the way that a tensor was trained."""

    losses: float
    tensors: float


def borders_of(case: Case, folder: Path, theirs: dict[str, np.ndarray]) -> Borders:
    losses, tensors = [], []
    for seed in range(COURSES):
        nudged = all_reduce.train(case, folder, np.random.default_rng(seed))
        same_steps(nudged, theirs)
        losses.append(np.nanmax(np.abs(nudged["losses"] / theirs["losses"] - 1)))
        tensors += [way_apart(tensor, theirs[f"param/{name}"], theirs[f"start/{name}"]) for name, tensor in tensors_of(nudged).items()]
    borders = Borders(FACTOR * max(losses), FACTOR * max(tensors))
    assert 0 < borders.losses < MOST_OF_LOSS and 0 < borders.tensors < MOST_OF_WAY, borders
    return borders


def same_steps(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> None:
    """Which overflow, and what each does to the scale."""
    np.testing.assert_array_equal(ours["scales"], theirs["scales"])
    np.testing.assert_array_equal(np.isnan(ours["losses"]), np.isnan(theirs["losses"]))


def compare_scaled(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], of_model: dict[str, np.ndarray], borders: Borders) -> None:
    same_steps(ours, theirs)
    np.testing.assert_allclose(ours["losses"], theirs["losses"], rtol=borders.losses)
    compare_tensors(of_model, theirs, borders.tensors)


@pytest.mark.parametrize("name", names(lambda case: case.scaler))
def test_an_overflow_anywhere_is_one_everywhere(name: str, folder, tmp_path, reference_result, peer_result) -> None:
    """All skip the step, and their scales stay the same."""
    case = CASES[name]
    theirs = reference_result(case)
    some = (theirs["overflows"] > 0) & (theirs["overflows"] < case.workers)
    finite = np.isfinite(theirs["losses"])
    assert (some & finite).any() and (some & ~finite).any() and (theirs["overflows"] == case.workers).any()
    assert (np.diff(theirs["scales"]) > 0).any()
    check_that_training_moved(case, theirs)
    borders = borders_of(case, folder, theirs)
    peer = peer_result(case, case.peers[0])
    compare_scaled(peer, theirs, tensors_of(peer), borders)
    run = launch.run_decent_train(case, folder, tmp_path)
    compare_scaled(run, theirs, tensors(run), borders)


# ---- gradients in bfloat16 -----------------------------------------------------------------------------------------

ROUNDING = 2.0**-8  # the relative error of one rounding to bfloat16
ROUNDING32 = 2.0**-24


def gradients(case: Case, folder: Path) -> list[dict[str, np.ndarray]]:
    """Of the first step, by worker."""
    of_all = []
    for rank in range(case.workers):
        model = load_model(case, folder)
        loss_at(case, model, Batches(case, folder), 1, rank, 0).backward()
        of_all.append({name: p.grad.double().numpy() for name, p in trained(case, model)})
    return of_all


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_one_step_in_bf16(workers: int, folder, tmp_path) -> None:
    """Each worker's share of the average is rounded before it is sent, and each of the sums; the update is in float32."""
    sgd = {"name": "sgd", "lr": 1.0, "momentum": 0.0, "weight_decay": 0.0}
    case = replace(CASES["all-reduce-bf16-mlp-n2"], name="one-step", workers=workers, steps=1, optimizer=sgd)
    after = tensors(launch.run_decent_train(case, folder, tmp_path))
    start, of_all = dict(load_model(case, folder).named_parameters()), gradients(case, folder)
    rounded = 0
    for name, parameter in start.items():
        before = parameter.detach().double().numpy()
        values = [own[name] for own in of_all]
        moved, mean = before - after[name], np.mean(values, axis=0)
        of_float32 = (workers + 4) * ROUNDING32 * (np.abs(before) + np.mean(np.abs(values), axis=0))
        limit = workers * ROUNDING * (1 + ROUNDING) ** workers * np.mean(np.abs(values), axis=0)  # a share, workers - 1 sums
        assert (np.abs(moved - mean) <= limit + of_float32).all(), name
        rounded += int((np.abs(moved - mean) > 4 * of_float32).sum())
    assert rounded > 1000  # it is not float32 that was sent


def distance(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> float:
    return float(np.sqrt(sum(((a[name].astype(np.float64) - b[name]) ** 2).sum() for name in b)))


@pytest.mark.parametrize("name", names(lambda case: case.comm_dtype == "bf16"))
def test_bf16_is_as_near_to_float32_as_pytorch(name: str, folder, tmp_path, reference_result, peer_result) -> None:
    """PyTorch's hook rounds a gradient, its share of the average, and every sum. With the gradients alone rounded, a run ends as
    far from one in float32 with two workers, and half as far with three. A loss is a single number, so that chance is more in it.
    """
    case = CASES[name]
    exact = reference_result(replace(case, name=f"{name}-exact", comm_dtype="fp32"))
    theirs, run = peer_result(case, case.peers[0]), launch.run_decent_train(case, folder, tmp_path)
    parameters = {key.removeprefix("param/"): t for key, t in exact.items() if key.startswith("param/")}
    of_theirs, of_ours = distance(tensors_of(theirs), parameters), distance(tensors(run), parameters)
    assert 0.2 * of_theirs <= of_ours <= 1.5 * of_theirs
    worst_of_theirs, worst_of_ours = (np.abs(losses / exact["losses"] - 1).max() for losses in (theirs["losses"], run["losses"]))
    assert 0 < worst_of_ours <= 2 * worst_of_theirs
