"""A model in which numbers have been lost is never exported as if it were well, and a NaN is shown without a sign."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from program import Ended, run_workers
from runs import NO_CHECKPOINTS, NO_EVALUATION, Run, assert_says, attempt, error_message, recipe, train
from tensors import read_safetensors

FAR = {"name": "sgd", "lr": 1e39, "momentum": 0.0}  # further than float32 goes, by one update
FILES = ("model.pt", "model.safetensors", "model.pt.tmp", "model.safetensors.tmp")


def failure(ended: list[Ended]) -> str:
    """The one message of a run that diverged."""
    text = "\n".join(f"exit {e.code}: {e.err}{e.out}" for e in ended)
    assert [e.code for e in ended] == [5] * len(ended), text
    assert "-nan" not in text
    errors = [e.err for e in ended if e.err]
    assert len(errors) == 1 and errors[0].count("error:") == 1 and len(errors[0].splitlines()) <= 5, text
    return errors[0]


def assert_not_exported(folder: Path) -> None:
    assert not [name for name in FILES if (folder / name).exists()]
    end = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert (end["kind"], end["status"]) == ("end", "failed")


# ---- at the end of training ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("checkpoint", [NO_CHECKPOINTS, {"every_steps": 1}])
@pytest.mark.parametrize("evaluation", [NO_EVALUATION, {"every_steps": 1}])
def test_last_update_loses_weights(evaluation: dict, checkpoint: dict, workers: int, tmp_path: Path) -> None:
    """The loss before it is finite, and there is none after it."""
    settings = recipe(train={"steps": 1}, optimizer=FAR, checkpoint=checkpoint, eval=evaluation)
    message = failure(attempt(tmp_path, settings, workers=workers))
    assert_says(message, "training diverged", "after step 1", "parameter '", "not finite")
    if checkpoint is NO_CHECKPOINTS:
        assert_says(message, " of its ", " values)", "not exported", "optimizer.lr")
    assert_not_exported(tmp_path / "run")
    assert not list((tmp_path / "run").glob("checkpoints/step-*"))


def overflowing(model, data) -> dict:
    return recipe(model("overflowing_buffer"), data("blob"), train={"steps": 2}, checkpoint={"every_steps": 2})


@pytest.mark.parametrize("workers", [1, 2])
def test_buffer_that_overflows(workers: int, model, data, tmp_path: Path) -> None:
    """Its -inf is in the model's file, another element's inf is not."""
    message = failure(attempt(tmp_path, overflowing(model, data), workers=workers))
    assert_says(message, "training diverged", "after step 2", "buffer 'seen' (1 of its 3 values)")
    assert_not_exported(tmp_path / "run")


def test_infinities_of_the_file_are_well(model, data, tmp_path: Path) -> None:
    """Masks that are buffers, and one that is a frozen parameter."""
    settings = recipe(model("masked"), data("blob"), train={"steps": 2}, checkpoint={"every_steps": 2})
    run = train(tmp_path, settings)
    ended = use(tmp_path, "--export", "x.safetensors", "--eval-only")
    assert ended[0].code == 0 and ended[0].err == "", ended
    assert read_safetensors(tmp_path / "x.safetensors").keys() == run.weights.keys()


# ---- --export and --eval-only --------------------------------------------------------------------------------------

def use(folder: Path, *flags: object, workers: int = 1) -> list[Ended]:
    return run_workers(workers, "--config", folder / "recipe.yaml", *flags, cwd=folder)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["x.pt", "x.safetensors"])
def test_export_of_a_checkpoint(name: str, workers: int, model, data, tmp_path: Path) -> None:
    failure(attempt(tmp_path, overflowing(model, data), workers=2))
    message = failure(use(tmp_path, "--export", name, workers=workers))
    assert_says(message, "the average of 2 replicas", "step-00000002", "'seen' (1 of its 3 values)", "not exported")
    assert {path.name for path in tmp_path.iterdir()} == {"recipe.yaml", "run"}


def test_evaluation_of_a_checkpoint_warns(model, data, tmp_path: Path) -> None:
    failure(attempt(tmp_path, overflowing(model, data)))
    ended = use(tmp_path, "--eval-only")
    assert ended[0].code == 0 and "eval at step 2" in ended[0].out, ended
    assert_says(ended[0].err, "warning: ", "buffer 'seen' (1 of its 3 values)")


def test_model_file(model, data, tmp_path: Path) -> None:
    """--checkpoint none: the file as it is, with a NaN in it."""
    settings = recipe(model("lost_weight"), data("blob"))
    message = error_message(attempt(tmp_path, settings, "--checkpoint", "none", "--export", "x.pt"), code=5)
    assert_says(message, model("lost_weight"), "parameter 'fc2.bias' (1 of its 3 values)", "not exported")
    assert {path.name for path in tmp_path.iterdir()} == {"recipe.yaml"}
    ended = use(tmp_path, "--checkpoint", "none", "--eval-only")
    assert ended[0].code == 0, ended
    assert_says(ended[0].err, "warning: ", "parameter 'fc2.bias' (1 of its 3 values)")
    assert_says(ended[0].out, "loss nan")
    assert "-nan" not in ended[0].out + ended[0].err


# ---- what is shown -------------------------------------------------------------------------------------------------

def test_loss_that_is_no_number(tmp_path: Path) -> None:
    settings = recipe(train={"steps": 5}, optimizer=FAR, eval={"every_steps": 1})
    message = failure(attempt(tmp_path, settings))
    assert_says(message, "the loss of step 2 is nan;")
    log = (tmp_path / "run" / "run.log").read_text()
    assert "loss nan" in log and "-nan" not in log
    assert log.splitlines()[-2][24:].startswith("E training diverged: the loss of step 2 is nan;"), log


def test_run_that_is_well_says_nothing_of_it(tmp_path: Path) -> None:
    run: Run = train(tmp_path, recipe(train={"steps": 1}), workers=2)
    assert "".join(e.err for e in run.ended) == ""
