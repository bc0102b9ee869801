"""data.batch_size with sizes of single hosts and workers. tests/parity compares what such runs train with PyTorch."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from methods import by, distances
from runs import assert_same_run, assert_same_weights, assert_says, attempt, error_message, merged, recipe, refused, train

SIZES = {"default": 8, "ranks": {"1": 3, "2": 5}}
SAMPLES = 1442  # of the digits to train on


@pytest.mark.parametrize("method", ["gossip", "all_reduce"])
def test_a_resumed_run_has_the_bits_of_an_undisturbed_one(method: str, tmp_path: Path) -> None:
    """7 steps, then 7 more."""
    def until(steps: int) -> dict:
        return by(method, data={"batch_size": SIZES}, train={"steps": steps, "grad_accumulation": 2}, eval={"every_steps": 7},
                  checkpoint={"every_steps": 7}, log={"every_steps": 5})

    undisturbed = train(tmp_path / "whole", until(14), workers=3)
    train(tmp_path / "parts", until(7), workers=3)
    assert_same_run(undisturbed, train(tmp_path / "parts", until(14), "--resume", "auto", workers=3))
    assert (distances(undisturbed)[-1] == 0) == (method == "all_reduce")


def test_sizes_that_are_equal_have_the_bits_of_one(tmp_path: Path) -> None:
    for method in ("gossip", "all_reduce"):
        one = train(tmp_path / method / "one", by(method, data={"batch_size": 4}), workers=3)
        sizes = {"ranks": {"0": 4, "1": 4, "2": 4}}
        assert_same_run(one, train(tmp_path / method / "named", by(method, data={"batch_size": sizes}), workers=3))


def test_a_host_is_called_as_it_calls_itself(tmp_path: Path) -> None:
    """With the size of its workers; a rank goes first."""
    hosts = {socket.gethostname(): 5}
    run = train(tmp_path / "host", recipe(data={"batch_size": {"hosts": hosts, "ranks": {"1": 2}}}), workers=2)
    assert_same_weights(run, train(tmp_path / "rank", recipe(data={"batch_size": {"default": 5, "ranks": {"1": 2}}}), workers=2))
    assert_says(run.ended[0].out, "12 updates of 1 x 5 + 1 x 2 samples, 206 an epoch")


def test_speed_and_epochs_count_the_samples_of_all(tmp_path: Path) -> None:
    run = train(tmp_path, recipe(data={"batch_size": SIZES}, train={"grad_accumulation": 2}), workers=3)
    per_update = 2 * (8 + 3 + 5)
    for line in run.lines("train"):
        assert line["epoch"] == line["step"] / (SAMPLES // per_update)
        # Both are rounded to float64 and no further.
        assert line["samples_per_s"] * line["step_ms"] / 1000 == pytest.approx(per_update, rel=1e-12)


def test_a_dry_run_tells(tmp_path: Path) -> None:
    ended = attempt(tmp_path, recipe(data={"batch_size": SIZES}), "--dry-run", workers=3)
    assert [e.code for e in ended] == [0] * 3
    assert_says(ended[0].out, "12 of 16 samples, 90 an epoch (2 samples left out of each)")


def test_other_workers_go_on(tmp_path: Path) -> None:
    """Rank 2 is not there any more, and its size is no mistake."""
    own = recipe(data={"batch_size": SIZES}, train={"steps": 10}, checkpoint={"every_steps": 10})
    train(tmp_path, own, workers=3)
    rest = train(tmp_path, merged(own, {"train": {"steps": 11}}), "--resume", "auto", workers=2)
    assert rest.lines("train")[-1]["epoch"] == (10 * 16 + 11) / (SAMPLES // 11 * 11)
    assert_says(rest.ended[0].out, "the batch size of each worker was 8 3 5, is 8 3")


def test_a_resumed_run_keeps_its_sizes(tmp_path: Path) -> None:
    own = recipe(data={"batch_size": SIZES}, train={"steps": 2}, checkpoint={"every_steps": 2})
    train(tmp_path, own, workers=3)
    other = recipe(data={"batch_size": 8}, train={"steps": 3}, checkpoint={"every_steps": 2})
    message = error_message(attempt(tmp_path, other, "--resume", "auto", workers=3))
    assert_says(message, 'data.batch_size was {default: 8, hosts: {}, ranks: {"1": 3, "2": 5}}, is 8')


MISTAKES = {
    "a host that is not there": ({"hosts": {"no such host": 4}}, "data.batch_size.hosts: no worker runs on 'no such host'; "
                                 f"the hosts of this run are {socket.gethostname()}"),
    "a rank that is not there": ({"ranks": {"2": 4}},
                                 "data.batch_size.ranks: there is no rank 2 among 2 workers, which are counted from 0"),
    "no samples": ({"ranks": {"0": 0}}, "data.batch_size.ranks.0: expected an integer >= 1, got '0'"),
    "more than there are": ({"default": 700, "ranks": {"1": 22}},
                            "the training data has 1442 samples, but one update takes 1444: batch sizes of 2 workers, 722 together, "
                            "x grad_accumulation 2"),
    "more than can be counted": ({"ranks": {"1": 2**31}}, f"data.batch_size: {2**31} is more than decent-train can do"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_sizes_that_cannot_be(name: str, tmp_path: Path) -> None:
    sizes, message = MISTAKES[name]
    assert_says(refused(tmp_path, recipe(data={"batch_size": sizes}, train={"grad_accumulation": 2}), workers=2), message)
