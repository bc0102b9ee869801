"""What a model does behind calls counts as much as what its forward does itself: submodules at any depth, branches,
loops, lists, forks, functions, interfaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs import assert_says, assert_same_weights, recipe, refused, train

PLACES = ("itself", "depth 1", "depth 2", "depth 3", "branch", "loop", "method", "list", "fork", "interface",
          "interface of an interface", "choice from a list", "choice by a branch", "functions")


@pytest.fixture(scope="module")
def deep(zoo):
    import deep

    assert {*deep.PLACES, "functions"} == set(PLACES)
    return deep


@pytest.mark.parametrize("place", PLACES)
def test_weight_used_through_data(place: str, deep, zoo, data, tmp_path: Path) -> None:
    """However small the buckets, no weight changes before backward is done with it."""
    zoo.save_scripted(deep.stopped(place), tmp_path / "model.pt")
    own = recipe(tmp_path / "model.pt", data("blob"), train={"steps": 6}, parallel={"bucket_mb": 0.0001})
    message = refused(tmp_path / "refused", {**own, "parallel": {"update": "in_backward"}}, "--dry-run")
    assert_says(message, "parallel.update: after_backward", ".data")
    runs = [train(tmp_path / update, {**own, "parallel": {"bucket_mb": 0.0001, "update": update}})
            for update in ("auto", "after_backward")]
    assert "updated after backward" in runs[0].ended[0].out
    assert list(runs[0].losses) == list(runs[1].losses)
    assert_same_weights(*runs)


@pytest.mark.parametrize("place", PLACES)
def test_mode_that_is_baked_in(place: str, deep, zoo, data, tmp_path: Path) -> None:
    zoo.save_scripted(deep.fixed(place), tmp_path / "model.pt")
    run = train(tmp_path, recipe(tmp_path / "model.pt", data("blob"), train={"steps": 1}))
    times = 2 if place == "loop" else 1  # before the loop and in it
    found = [f"{times} x dropout"] if place == "functions" else [f"{times} x batch_norm", f"{times} x dropout"]
    if place == "choice by a branch":  # every method that it may call counts, though one calls another
        found = ["2 x batch_norm", "2 x dropout"]
    assert_says(run.ended[0].err, f"baked in ({', '.join(found)})")
