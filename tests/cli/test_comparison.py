"""tools/bench/compare.py without what it starts: which training comes next, time to a loss, going on after a stop."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "bench"))

import losses
from comparison import FP32, LENGTHS, METHODS, MODULO2, RATES, STEPS, TARGET, best_rate, length_to, next_length, seconds
from contender_schedule import rate
from results import Results

GRID = (100, 110, 120, 150, 200)


def search(needed: int, grid: tuple[int, ...] = GRID) -> tuple[int | None, int]:
    """Where trainings from `needed` steps on reach the target: what is found, and with how many trainings."""
    ended: dict[int, float] = {}
    while (steps := next_length(ended, 1.0, grid)) is not None:
        assert steps not in ended
        ended[steps] = 1.0 if steps >= needed else 1.1
    return length_to(ended, 1.0), len(ended)


@pytest.mark.parametrize(("needed", "found"), [(1, 100), (100, 100), (101, 110), (120, 120), (121, 150), (200, 200),
                                               (201, None)])
def test_the_shortest_length_that_reaches_the_target(needed: int, found: int | None) -> None:
    shortest, trainings = search(needed)
    assert shortest == found
    assert trainings == (len(GRID) if found is None else GRID.index(found) + 1)


def test_the_search_takes_what_is_there() -> None:
    assert next_length({100: 0.9}, 1.0, GRID) is None
    assert next_length({100: 1.1, 200: 1.1}, 1.0, GRID) is None  # none reaches it where the longest does not
    assert next_length({100: 1.1, 200: 1.0}, 1.0, GRID) == 110
    assert next_length({100: 1.1, 110: 1.1, 120: 1.0}, 1.0, GRID) is None
    assert next_length({120: 1.0, 150: 1.1}, 1.0, GRID) == 100  # a longer one that ends higher changes nothing


def test_every_length_ends_with_an_evaluation() -> None:
    assert all(steps % losses.EVALUATIONS == 0 for steps in LENGTHS)


def test_time_to_a_loss() -> None:
    assert length_to({300: 2.5, 330: 2.4, 450: 2.3}, 2.4) == 330
    assert length_to({300: 2.5}, 2.4) is None
    assert seconds(330, 200.0) == pytest.approx(66.0)
    assert seconds(None, 200.0) is None and seconds(330, None) is None
    assert best_rate({1e-3: 2.5, 5e-4: 2.4}) == 5e-4


def test_a_result_is_measured_once(tmp_path: Path) -> None:
    results, measured = Results(tmp_path), []

    def measure(value: int) -> dict:
        measured.append(value)
        return {"ms": value}

    assert results.get("a, b", {"steps": 1}, lambda: measure(1)) == {"ms": 1}
    assert Results(tmp_path).get("a, b", {"steps": 1}, lambda: measure(2)) == {"ms": 1}
    assert results.get("a, b", {"steps": 2}, lambda: measure(3)) == {"ms": 3}  # of something else under the same name
    assert measured == [1, 3]


def test_a_measurement_that_fails_leaves_nothing(tmp_path: Path) -> None:
    results = Results(tmp_path)
    with pytest.raises(ZeroDivisionError):
        results.get("a", {}, lambda: {"ms": 1 / 0})
    assert results.find("a", {}) is None and not list(tmp_path.iterdir())


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """(method, workers, steps, rate) of each training; all_reduce ends at 2.0, gossip from 1.2 times its steps on."""
    done: list[tuple] = []

    def train(section: dict, workers: int, steps: int, of_rate: float) -> list[list[float]]:
        name = section.get("method", section.get("comm_dtype", "fp32"))
        done.append((name, workers, steps, of_rate))
        late = name != "all_reduce" and steps < 1.2 * STEPS
        return [[steps, 2.0 + 0.01 * late + abs(of_rate - RATES[1])]]

    monkeypatch.setattr(losses, "_train_ours", train)
    monkeypatch.setattr(losses, "version_of_ours", lambda: "a program")
    return done


def test_trainings_go_on_where_they_were_stopped(tmp_path: Path, trainings: list[tuple]) -> None:
    first = losses.Losses(tmp_path, measuring=True)
    first.trained(METHODS[TARGET], 4)
    assert trainings == [("all_reduce", 4, STEPS, rate) for rate in RATES]
    found = first.trained(METHODS[FP32], 4)
    assert found.length == LENGTHS[2] and found.rate == RATES[1]
    count = len(trainings)
    again = losses.Losses(tmp_path, measuring=True)
    assert again.trained(METHODS[FP32], 4) == found
    assert again.target(4) == 2.0
    assert len(trainings) == count


def test_nothing_is_trained_where_only_results_are_shown(tmp_path: Path, trainings: list[tuple]) -> None:
    shown = losses.Losses(tmp_path, measuring=False)
    assert shown.trained(METHODS[MODULO2], 4) is None and shown.target(4) is None
    assert not trainings


def test_two_workers_take_the_rate_of_four(tmp_path: Path, trainings: list[tuple]) -> None:
    both = losses.Losses(tmp_path, measuring=True)
    both.trained(METHODS[TARGET], 4)
    trainings.clear()
    both.trained(METHODS[TARGET], 2)
    assert trainings == [("all_reduce", 2, STEPS, RATES[1])]


def test_the_schedule_of_pytorch_programs() -> None:
    """As lib/decent/optim/schedule.h defines cosine_warmup."""
    assert rate(1, 300, 1.0, 30) == pytest.approx(0.01)
    assert rate(31, 300, 1.0, 30) == pytest.approx(1.0)
    assert rate(166, 300, 1.0, 30) == pytest.approx((1.0 + 1e-6) / 2)
