"""Workers of one machine share memory: the weights of runs by gloo, sums within rounding, and how much memory it takes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from exchange_cases import FEW, GRID, STEPS, Case
from runs import DIGITS_MLP, TIMES, Run, assert_same_run, attempt, merged, recipe, write_recipe
from shared import (ALL, GLOO, allocated, assert_exchanged, mapped_files, replicas, shared_memory_of, told_device,
                    train_gloo, train_shared, wide_model)
from started import Started
from tensors import differing

UNIT = 2.0**-24  # the relative error of one rounding to float32
CASES = GRID if ALL else FEW


# ---- whole runs beside those by gloo --------------------------------------------------------------------------------

def assert_same_replicas(a: Run, b: Run, case: Case) -> None:
    """Every worker's weights, buffers and optimizer state, bit for bit."""
    for of_a, of_b in zip(replicas(a, STEPS, case.workers), replicas(b, STEPS, case.workers)):
        assert differing(of_a, of_b) == []


def assert_same_but_for_sums(a: Run, b: Run) -> None:
    """Metrics of workers with the same weights, which are added up in another order. Losses are float32 numbers added up in
    float64, which rounds nothing. Those of the average are taken at weights that differ in their last bits.
    """
    assert list(a.losses) == list(b.losses)
    assert len(a.metrics) == len(b.metrics)
    for of_a, of_b in zip(a.metrics, b.metrics):
        assert of_a.keys() == of_b.keys()
        for key in of_a.keys() - TIMES:
            limit = {"accuracy": 0.006, "consensus_distance": 1e-5}.get(key, 0)  # two samples at a border; |x| times UNIT
            of_numbers = isinstance(of_a[key], float)
            assert of_a[key] == (pytest.approx(of_b[key], rel=1e-5, abs=limit) if of_numbers else of_b[key]), key


def check_average(run: Run, case: Case) -> None:
    """model.safetensors is the average of the replicas: N - 1 sums and one product of parameters are rounded. Buffers are added
    up in float64, without any error, and rounded once.
    """
    of_all = replicas(run, STEPS, case.workers)
    for name, average in run.weights.items():
        values = [replica.get(f"model.{name}", replica.get(f"buffer.{name}")) for replica in of_all]
        if average.dtype != np.float32:
            assert average == values[0]
            continue
        mean = np.mean([value.astype(np.float64) for value in values], axis=0)
        if f"buffer.{name}" in of_all[0]:
            assert average.tobytes() == mean.astype(np.float32).tobytes(), name
        else:
            assert (np.abs(average - mean) <= case.workers * UNIT * np.mean(np.abs(values), axis=0)).all(), name


def apart(a: Run, b: Run, case: Case) -> float:
    """How far the weights of two runs are apart, at most, in lengths of a tensor."""
    return max(float(np.linalg.norm(of_a[name] - of_b[name]) / np.linalg.norm(of_a[name]))
               for of_a, of_b in zip(replicas(a, STEPS, case.workers), replicas(b, STEPS, case.workers))
               for name in of_a if name.startswith("model."))


@pytest.mark.parametrize("case", [case for case in CASES if not case.adds_up], ids=lambda case: case.name)
def test_same_bits_as_gloo(case: Case, tmp_path: Path) -> None:
    shared = train_shared(tmp_path / "shared", case.recipe(), workers=case.workers)
    gloo = train_gloo(tmp_path / "gloo", case.recipe(), workers=case.workers)
    assert_same_replicas(shared, gloo, case)
    assert [ended.err for ended in shared.ended] == [ended.err for ended in gloo.ended]
    check_average(shared, case)
    if case.workers == 2:
        assert_same_run(shared, gloo)  # also of what all workers add up
    else:
        assert_same_but_for_sums(shared, gloo)


@pytest.mark.parametrize("case", [case for case in CASES if case.adds_up], ids=lambda case: case.name)
def test_sums_as_near_to_gloo_as_rounding(case: Case, tmp_path: Path) -> None:
    """Gloo adds up in an order of its own, and the runs train on from weights that differ in their last bits: seen are 4e-7 of
    a tensor's length. The model is smooth, as is the optimizer: with ReLU or Adam such a bit may turn a gradient around.
    """
    own = case.recipe(model={"path": str(DIGITS_MLP)}, optimizer={"name": "sgd", "lr": 0.02})
    shared, again = (train_shared(tmp_path / name, own, workers=case.workers) for name in ("shared", "again"))
    assert_same_run(shared, again)
    assert_same_replicas(shared, again, case)
    check_average(shared, case)
    gloo = train_gloo(tmp_path / "gloo", own, workers=case.workers)
    assert apart(shared, gloo, case) <= 2e-6
    np.testing.assert_allclose(shared.losses, gloo.losses, rtol=1e-6)


def test_same_bits_in_float64(model, data, tmp_path: Path) -> None:
    own = recipe(model("mlp64"), data("blob64"), parallel={**Case(3, "uneven-pairs", slices=3).parallel, "bucket_mb": 0.001},
                 train={"steps": STEPS}, checkpoint={"every_steps": STEPS})
    shared, gloo = (of(tmp_path / of.__name__, own, workers=3) for of in (train_shared, train_gloo))
    assert_same_replicas(shared, gloo, Case(3, "uneven-pairs"))


# ---- one mixing against its definition ------------------------------------------------------------------------------

def to_bf16(x: np.ndarray) -> np.ndarray:
    """Float32 rounded to the nearest bfloat16, ties to even, as float64."""
    bits = x.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


def mixed(case: Case, xs: list[np.ndarray], rank: int, edge: dict) -> tuple[np.ndarray, np.ndarray]:
    """z of a worker, and how far what is computed in float32 may be from it: n - 1 sums, two coefficients and their products,
    and the sum of these; for bf16 twice as many, because what is added up are differences.
    """
    n, weight, own = len(edge["ranks"]), edge["weight"], xs[rank].astype(np.float64)
    if n == 1:
        return own, np.zeros_like(own)
    other = (1 - weight) / (n - 1)
    if case.comm_dtype == "fp32":
        values = [xs[j].astype(np.float64) for j in edge["ranks"]]
        z = weight * own + other * (np.sum(values, axis=0) - own)
        return z, (n + 4) * UNIT * (other * np.sum(np.abs(values), axis=0) + abs(weight - other) * np.abs(own))
    values, own_value = [to_bf16(xs[j]) for j in edge["ranks"]], to_bf16(xs[rank])
    z = own + other * (np.sum(values, axis=0) - n * own_value)
    return z, 2 * (n + 4) * UNIT * (np.abs(own) + other * (np.sum(np.abs(values), axis=0) + n * np.abs(own_value)))


def phases_of(case: Case) -> list[list[dict]]:
    topology = case.parallel["topology"]
    if isinstance(topology, dict):
        return topology["phases"]
    return [[{"ranks": list(range(case.workers)), "weight": 1 / case.workers}]]


def check_mixing(case: Case, before: list[dict], after: list[dict], phase: list[dict]) -> None:
    moved, limits = 0.0, 0.0
    for name in [name for name in before[0] if name.startswith("model.")]:
        xs = [replica[name] for replica in before]
        for edge in phase:
            for rank in edge["ranks"]:
                z, limit = mixed(case, xs, rank, edge)
                assert (np.abs(after[rank][name] - z) <= limit + 1e-28).all(), (name, rank)  # the update's step
                moved, limits = moved + np.abs(z - xs[rank]).sum(), limits + limit.sum()
    assert moved > 100 * limits  # else copies are too alike for this to show anything


SUMS = [Case(4, "complete"), Case(8, "uneven-groups"), Case(5, "uneven-groups", "bf16")]
MORE_SUMS = [Case(workers, topology, comm_dtype) for workers in (3, 5, 8) for topology in ("complete", "uneven-groups")
             for comm_dtype in ("fp32", "bf16")]


@pytest.mark.parametrize("case", list(dict.fromkeys(SUMS + MORE_SUMS)) if ALL else SUMS, ids=lambda case: case.name)
def test_one_mixing_is_what_the_definition_says(case: Case, tmp_path: Path) -> None:
    """From copies that are apart, at a learning rate that moves no weight."""
    first, last = 6, 6 + len(phases_of(case))
    moving = merged(case.recipe(), {"parallel": {"gamma": 0.3}, "train": {"steps": first},
                                    "checkpoint": {"every_steps": first}})
    still = merged(case.recipe(), {"optimizer": {"lr": 1e-30}, "train": {"steps": last},
                                   "checkpoint": {"every_steps": 1, "keep": 99}})
    begun = train_shared(tmp_path / "first", moving, workers=case.workers)
    run = train_shared(tmp_path / "still", still, "--resume", begun.checkpoint(first), workers=case.workers)
    before = replicas(begun, first, case.workers)
    for step in range(first + 1, last + 1):
        after = replicas(run, step, case.workers)
        check_mixing(case, before, after, phases_of(case)[(step - 2) % len(phases_of(case))])
        before = after
    if case == Case(4, "complete"):  # coefficients without rounding: all have the sum, in the same bits
        for replica in before[1:]:
            assert all(replica[name].tobytes() == before[0][name].tobytes() for name in replica if name.startswith("model."))


# ---- memory ---------------------------------------------------------------------------------------------------------

PARAMETERS = 4_000_000
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def told_memory(text: str) -> dict[str, float]:
    """Bytes a worker of the dry run's lines: all, and of the exchange."""
    number = "([\\d.]+) (B|KiB|MiB|GiB)"
    found = re.search(f"^memory +{number} a worker besides .*\n.* exchange {number},", text, re.MULTILINE)
    assert found, text
    return {"all": float(found[1]) * UNITS[found[2]], "exchange": float(found[3]) * UNITS[found[4]]}


# Two copies of what is sent; bf16 also has the differences of what was received, in float32.
@pytest.mark.parametrize(("parallel", "workers", "exchange"), [
    ({"topology": "ring"}, 2, 8), ({"topology": "complete"}, 3, 8), ({"topology": "ring", "slices": 4}, 2, 2),
    ({"topology": "complete", "comm_dtype": "bf16"}, 3, 4 + 4), ({"topology": "ring", "comm_dtype": "modulo2"}, 2, 0.6),
][:None if ALL else 1], ids=str)
def test_dry_run_tells_exchange_and_memory(parallel: dict, workers: int, exchange: float, tmp_path: Path) -> None:
    own = recipe(wide_model(tmp_path, PARAMETERS), parallel=parallel)
    shared = attempt(tmp_path / "shared", own, "--dry-run", workers=workers)
    gloo = attempt(tmp_path / "gloo", own, "--dry-run", *GLOO, workers=workers)
    assert [e.code for e in shared + gloo] == [0] * 2 * workers, shared + gloo
    assert_exchanged(shared, "shared")
    assert_exchanged(gloo, "gloo")
    more, less = told_memory(shared[0].out), told_memory(gloo[0].out)
    shown = 0.1 * 2**20  # a digit after the point
    assert more["exchange"] == pytest.approx(exchange * PARAMETERS, abs=shown)
    assert more["all"] - less["all"] == pytest.approx(more["exchange"] - less["exchange"], abs=2 * shown)
    assert more["all"] - less["all"] <= 8 * PARAMETERS


@pytest.mark.parametrize(("parallel", "workers", "copies"), [
    ({"topology": "ring"}, 2, 8), ({"topology": "complete"}, 3, 8), ({"topology": "ring", "slices": 4}, 2, 2),
    ({"topology": "complete", "comm_dtype": "bf16"}, 3, 4), ({"topology": "ring", "comm_dtype": "modulo2"}, 2, 0.6)], ids=str)
def test_memory_that_is_shared(parallel: dict, workers: int, copies: float, tmp_path: Path) -> None:
    """Two copies of what is sent, in bytes a parameter. Some MiB are for what is not sent from where it lies."""
    own = recipe(wide_model(tmp_path, PARAMETERS), parallel=parallel, data={"batch_size": 1})
    with Started(workers, tmp_path / "run", False, "--set", "log.every_steps=5", config=write_recipe(tmp_path, own)) as run:
        run.wait_until_it_trains()
        pids = [process.pid for process in run.processes]
        memory = shared_memory_of(pids)
        assert len(memory) == workers  # one each, mapped by all
        assert all(mapped_files(pid, "/memfd:") == memory for pid in pids)
        assert set().union(*(mapped_files(pid, "/dev/shm/") for pid in pids)) == set()  # none of a name
        most = copies * PARAMETERS + 4 * 2**20
        assert all(copies * PARAMETERS <= size <= most for size in allocated(pids)), allocated(pids)


def test_gloo_shares_nothing(tmp_path: Path) -> None:
    with Started(2, tmp_path, False, *GLOO) as run:
        run.wait_until_it_trains()
        assert shared_memory_of([process.pid for process in run.processes]) == set()


# ---- what else a run says -------------------------------------------------------------------------------------------

def test_recipe_keeps_auto(tmp_path: Path) -> None:
    run = train_shared(tmp_path, recipe(DIGITS_MLP, train={"steps": 2}), workers=2)
    assert "  backend: auto" in (run.folder / "recipe.yaml").read_text().splitlines()
    assert "device   cpu, exchange by shared memory" in (run.folder / "run.log").read_text()
    alone = attempt(tmp_path / "alone", recipe(DIGITS_MLP, train={"steps": 2}))[0]
    assert told_device(alone.out) == "cpu"
