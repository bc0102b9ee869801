"""Exchanges with slices and the modulo exchange against their definition in NumPy (modulo_reference.py): step by step, from
the weights that the program itself had before each mixing, and whole runs in float64.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import launch
from modulo_cases import THREES, Bucket, Cosine, ModuloCase, Parameter, layout, result_of, write_cases
from modulo_reference import Mixed, Modulo, Whole
from modulo_training import train
from tensors import same_bits

PROGRAM = Path(os.environ.get("DECENT_PARITY_MODULO", launch.PROGRAM.parent / "parity_modulo")).absolute()
ALL = "DECENT_ALL_COMBINATIONS" in os.environ  # the whole grid
FAST = Cosine(t_max=15)  # its learning rate falls faster than the grid may
SLOW = Cosine(t_max=6000)  # for what begins late: its learning rate is still high then
END = Cosine(warmup_steps=0, t_max=10**6, eta_min=0)
FLOAT64 = (Parameter("a", 150, "F64"), Parameter("b", 300, "F64", 2.0), Parameter("c", 70, "F64", 0.5),
           Parameter("d", 5, "F64", 0.0), Parameter("e", 100, "F64"))
TOPOLOGIES = [(n, topology) for n in (2, 3, 4, 5) for topology in ("ring", "one-peer-exp", "complete", THREES.get(n))
              if topology is not None]
GRID = [ModuloCase(workers, topology, exchange, slices, gamma)
        for (workers, topology), slices, gamma, exchange in itertools.product(
            TOPOLOGIES, (1, 3, 4), (1.0, 0.3), ("modulo2", "modulo4"))]


def chosen(cases: list[ModuloCase], every: int) -> list[ModuloCase]:
    """All of them, or one of so many: still every value, where `every` has no factor in common with their numbers."""
    return cases if ALL else cases[::every]


def recorded_cases() -> list[ModuloCase]:
    """They begin with equal copies, or later and apart, so that 8-bit parts are elsewhere."""
    grid = [replace(case, first=(0, 31, 1000, 4711)[i % 4], schedule=SLOW if i % 4 else FAST,
                    optimizer=("adamw", "lion", "adamw")[i % 3]) for i, case in enumerate(chosen(GRID, 17))]
    # So small a range that codes wrap at random: every difference is met, among them those that become 0.
    wrapped = [ModuloCase(3, "complete", exchange, 3, modulo_range=0.1, first=31, schedule=SLOW)
               for exchange in ("modulo2", "modulo4")]
    whole = [ModuloCase(workers, topology, exchange, slices, gamma=0.3)
             for exchange, slices, (workers, topology) in itertools.product(
                 ("fp32", "bf16"), (1, 3), ((3, THREES[3]), (4, "ring"), (5, "complete")))]
    return grid + wrapped + whole + [AT_THE_END]


def direct_cases() -> list[ModuloCase]:
    """Sizes from a part of a block to a few blocks, alone and with others; more slices than blocks, too."""
    sizes = (1, 33, 45, 321)
    buckets = tuple(Parameter(f"{dtype}-{n}", n, dtype, scale) for (n, dtype), scale in zip(
        itertools.product(sizes, ("F32", "F64")), itertools.cycle((1.0, 0.5, 0.0))))
    return [ModuloCase(workers, topology, exchange, slices, gamma, first=first, steps=18, schedule=SLOW, parameters=buckets,
                       direct=True) for workers, topology, exchange, slices, gamma, first in (
                (2, "ring", "modulo2", 1, 1.0, 0), (2, "ring", "modulo4", 3, 0.3, 200),
                (3, THREES[3], "modulo2", 4, 1.0, 500), (5, "complete", "modulo4", 1, 1.0, 77))]


def whole_cases() -> list[ModuloCase]:
    """The update and the exchange as users have them, joined in one pass."""
    grid = [replace(case, steps=60, recorded=False, parameters=FLOAT64, bucket_mb=0.003,
                    optimizer=("adamw", "lion")[i // 2 % 2]) for i, case in enumerate(chosen(GRID, 23))]
    sliced = [replace(case, exchange=exchange) for case, exchange in zip(grid[1:3], ("fp32", "bf16"))]
    return grid + [case for case in sliced if case not in grid]


# Copies are as far apart as the grid at the end can tell, which is held at 2^-12 of the highest learning rate.
AT_THE_END = ModuloCase(3, "ring", "modulo2", 3, schedule=END, first=10**6 - 10, steps=20, apart=4 * END.lr * 2.0**-12)
SILENT = [ModuloCase(2, topology, "modulo2", 3, gamma, first=31, steps=6, schedule=SLOW)
          for topology, gamma in (("ring", 0.0), ([[([0, 1], 1.0)]], 1.0))]
RECORDED, DIRECT, WHOLE = recorded_cases(), direct_cases(), whole_cases()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Where parity_modulo wrote what became of the cases that were asked for."""
    assert PROGRAM.exists(), f"{PROGRAM} is not there: build it first (target parity_modulo)"
    path = tmp_path_factory.mktemp("modulo")
    asked = [item.callspec.params["case"] for item in request.session.items if item.path == request.node.path]
    for first in range(0, len(asked), 100):  # a launch may take minutes, but not many
        write_cases(path, asked[first:first + 100])
        launch.run_program([str(PROGRAM), str(path)], 1, path)
    return path


# ---- step by step --------------------------------------------------------------------------------------------------

def messages(result: dict[str, np.ndarray], step: int, bucket: int) -> dict[int, bytes]:
    """By peer: what a worker sent of a bucket at the end of `step`, one message after another."""
    prefix, sent = f"sent.{step}.{bucket}.", {}
    for name in sorted(name for name in result if name.startswith(prefix)):
        peer = int(name.split(".")[3])
        sent[peer] = sent.get(peer, b"") + result[name].tobytes()
    return sent


def check_messages(case: ModuloCase, sent: dict[int, bytes], mixed: Mixed | None, rank: int) -> None:
    """Bit for bit. Where weights go through an all-reduce, there are none."""
    largest = {"fp32": 2, "bf16": 4}.get(case.exchange, case.workers)
    if mixed is None or len(mixed.ranks) > largest:
        assert sent == {}
    else:
        assert sent == {peer: mixed.sent for peer in mixed.ranks if peer != rank}


def is_power_of_two(value: float) -> bool:
    return np.frexp(value)[0] == 0.5


def check_sum(actual: np.ndarray, x: np.ndarray, mixed: Mixed, share: np.longdouble) -> None:
    """x + share * unit * total within one rounding of the sum. unit * total is exact; a share that is no power of two adds
    the rounding of the product and those of the coefficient: one to float32, three of float64 in computing it.
    """
    rounding = np.finfo(x.dtype).eps / 2
    of_term = 0 if is_power_of_two(float(share)) else 2 if x.dtype == np.float32 else 4
    finite = np.isfinite(x[mixed.where])
    own, result = x[mixed.where][finite].astype(np.longdouble), actual[mixed.where]
    term = (share * mixed.unit * mixed.total)[finite]
    limit = rounding * (np.abs(own + term) + of_term * np.abs(term)) * 1.001  # products of roundings
    assert (np.abs(result[finite] - (own + term)) <= limit).all()
    assert np.array_equal(result[~finite], x[mixed.where][~finite], equal_nan=True)


def check_whole(actual: np.ndarray, expected: np.ndarray, xs: list[np.ndarray]) -> None:
    """Weights that were sent as they are: within 8 roundings of the values that are added up (two coefficients, their
    products, up to 4 sums).
    """
    limit = 8 * np.finfo(actual.dtype).eps / 2 * np.sum(np.abs(xs), axis=0)
    assert (np.abs(actual - expected) <= limit).all()


def check_mixing(case: ModuloCase, result: dict[str, np.ndarray], at: str, xs: list[np.ndarray], rank: int,
                 mixed: Mixed) -> None:
    """z and what pre_average was shown."""
    z, received, x = result[f"z.{at}"], result[f"received.{at}"], xs[rank]
    assert same_bits(result[f"local.{at}"], x)
    for values in (z, received):
        assert same_bits(np.delete(values, mixed.where), np.delete(x, mixed.where))
    if isinstance(case.reference(), Modulo):
        weight = dict((i, w) for ranks, w in case.reference().edges(int(at.split(".")[0])) for i in ranks)[rank]
        others = len(mixed.ranks) - 1
        check_sum(z, x, mixed, np.longdouble(case.gamma) * (1 - np.longdouble(weight)) / others)
        check_sum(received, x, mixed, np.longdouble(1) / others)
    else:
        seen = [xs[i] for i in mixed.ranks]
        check_whole(z, mixed.z(x), seen)
        check_whole(received, mixed.received(x), seen)


def check_bucket(case: ModuloCase, results: list[dict[str, np.ndarray]], number: int, bucket: Bucket, t: int,
                 exchange: Whole) -> list[Mixed | None]:
    """Update t of one bucket on all workers."""
    at = f"{t}.{number}"
    xs = [result[f"x.{at}"] for result in results]
    assert xs[0].dtype == bucket.kind and xs[0].size == bucket.numel
    met = exchange.meet(xs, t, bucket.scales)
    for rank, (result, mixed) in enumerate(zip(results, met)):
        check_messages(case, messages(result, t - 1, number), mixed, rank)
        if mixed is None:
            assert same_bits(result[f"z.{at}"], xs[rank]) and f"received.{at}" not in result
        else:
            check_mixing(case, result, at, xs, rank, mixed)
    return met


def check_wrap_share(share: float, step: list[Mixed]) -> None:
    wide = sum(mixed.wide for mixed in step)
    assert np.isnan(share) if wide == 0 else share == sum(mixed.wrapped for mixed in step) / wide


def check_steps(case: ModuloCase, folder: Path) -> list[Mixed]:
    """All steps on all workers; returns what was exchanged."""
    results, buckets, exchange = result_of(folder, case), layout(case), case.reference()
    assert len(buckets) >= 3
    everything = []
    for t in range(case.first + 1, case.first + case.steps + 1):
        step = [check_bucket(case, results, number, bucket, t, exchange) for number, bucket in enumerate(buckets)]
        for rank, result in enumerate(results):
            own = [met[rank] for met in step if met[rank] is not None]
            check_wrap_share(float(result[f"wrap_share.{t}"]), own)
            everything += own
    return everything


@pytest.mark.parametrize("case", RECORDED + DIRECT, ids=lambda case: case.name)
def test_every_step_is_what_the_definition_says(case: ModuloCase, folder: Path) -> None:
    everything = check_steps(case, folder)
    # Without this, copies that are the same would agree with anything.
    assert np.mean([(mixed.total != 0).mean() for mixed in everything]) > 0.1


@pytest.mark.parametrize("case", SILENT, ids=lambda case: case.name)
def test_nothing_is_sent_where_nothing_would_move(case: ModuloCase, folder: Path) -> None:
    assert check_steps(case, folder) == []


# ---- end to end ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case.name)
def test_whole_runs_end_where_the_reference_does(case: ModuloCase, folder: Path) -> None:
    """Both round in float64, differently: seen are 2e-15 of the way that the weights went. A single code that is another
    moves them by some 1e-5 of it, most mistakes by more than 1e-2.
    """
    results, buckets, reference = result_of(folder, case), layout(case), train(case)
    for rank, result in enumerate(results):
        ours = [bucket.flat({name: result[f"end.{name}"] for name in bucket.offsets}) for bucket in buckets]
        start = [bucket.flat({name: x[0] for name, x in case.start().items()}) for bucket in buckets]
        theirs = [of_worker[rank] for of_worker in reference]
        error, way = (np.linalg.norm(np.concatenate(x) - np.concatenate(theirs)) for x in (ours, start))
        assert error <= 1e-9 * way
