"""optimizer.name: adafactor, as a user meets it; its updates against PyTorch's are cases of tests/parity, and tests/cli/test_resume.py
resumes it with gossip.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from runs import DIGITS_CNN, assert_same_run, assert_says, merged, recipe, refused, train
from tensors import read_safetensors

ADAFACTOR = {"name": "adafactor", "lr": 0.02}


def settings(**changes: object) -> dict:
    return merged(recipe(DIGITS_CNN, optimizer=ADAFACTOR, train={"steps": 12}, checkpoint={"every_steps": 6, "keep": 9}), changes)


@pytest.mark.parametrize("workers", [2, 3])
def test_all_reduce_goes_on_after_a_resume(workers: int, tmp_path: Path) -> None:
    """In one bucket, of which workers of one machine sum up parts that end inside a parameter."""
    own = settings(parallel={"method": "all_reduce", "bucket_mb": 25})
    wanted = train(tmp_path / "wanted", own, workers=workers)
    train(tmp_path / "parts", own, "--set", "train.steps=6", workers=workers)
    assert_same_run(train(tmp_path / "parts", own, "--resume", "auto", workers=workers), wanted)


def test_checkpoints_have_its_small_states(tmp_path: Path) -> None:
    """Of kernels, too, a row and a column for each pair of channels; other numbers of workers begin with their means."""
    own = settings(parallel={"topology": "ring"})
    run = train(tmp_path, own, workers=2)
    state = read_safetensors(run.checkpoint(12) / "rank-0000.safetensors")
    weights = {name.removeprefix("model."): tensor for name, tensor in state.items() if name.startswith("model.")}
    for name, tensor in weights.items():
        shape = tensor.shape
        wanted = {"variance": shape} if len(shape) < 2 else {"row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, shape[-1])}
        prefix = f"optimizer.{name}."
        got = {key.removeprefix(prefix): value.shape for key, value in state.items() if key.startswith(prefix)}
        assert got == {**wanted, "step": ()}
    more = train(tmp_path, merged(own, {"train": {"steps": 18}}), "--resume", "auto", workers=3)
    assert more.lines("train")[-1]["step"] == 18


def test_mistakes(tmp_path: Path) -> None:
    assert_says(refused(tmp_path, settings(optimizer={"d": 0.5})), "optimizer.d", ">= 1")
    assert_says(refused(tmp_path, settings(optimizer={"beta2_decay": 0.8})), "optimizer.beta2_decay", "<= 0")
    of_codes = settings(parallel={"comm_dtype": "modulo2"})
    assert_says(refused(tmp_path, of_codes), "parallel.comm_dtype", "does not bound the steps of adafactor")
    assert_says(refused(tmp_path, settings(optimizer={"clip_threshold": 1.0})), "optimizer.clip_threshold", "here it is 'optimizer.d'")
