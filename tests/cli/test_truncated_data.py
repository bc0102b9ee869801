"""A data file that becomes shorter while it is in use: exit code 2 and its name, not the end by a signal."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from runs import NO_EVALUATION, recipe
from started import Started
from tensors import write_safetensors

SAMPLES = 4000


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("used_for", ["train", "eval"])
def test_truncated_while_training(used_for: str, workers: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    files = {name: tmp_path / f"{name}.safetensors" for name in ("train", "eval")}
    for file in files.values():
        write_safetensors(file, {"x": rng.normal(size=(SAMPLES, 1, 8, 8)).astype(np.float32),
                                 "y": rng.integers(0, 10, SAMPLES)})
    sources = {name: {"format": "safetensors", "path": str(file)} for name, file in files.items()}
    config = tmp_path / "recipe.yaml"
    evaluation = {"every_steps": 20} if used_for == "eval" else NO_EVALUATION
    config.write_text(json.dumps(recipe(data=sources, eval=evaluation)))
    with Started(workers, tmp_path / "out", False, config=config) as run:
        run.wait_until_it_trains()
        os.truncate(files[used_for], files[used_for].stat().st_size // 2)
        assert run.wait(20) == [2] * workers, run.said()
        errors = [line for line in run.said().splitlines() if line.startswith("decent-train: error:")]
        assert len(errors) == 1, run.said()
        assert f"'{files[used_for]}' has lost its bytes from " in errors[0]
        assert "it was truncated while it was in use" in errors[0]
