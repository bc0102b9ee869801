"""A data file that changes while it is in use: exit code 2 and its name, not the end by a signal."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from program import ROOT
from runs import DIGITS_MLP, NO_EVALUATION, recipe
from started import Started
from tensors import write_safetensors

CHAR_GPT = ROOT / "models" / "char_gpt.pt"
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


# How each file is written of numbers, and what of it comes to which words.
def labelled(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"x": rng.normal(size=(SAMPLES, 1, 8, 8)).astype(np.float32), "y": rng.integers(0, 10, SAMPLES)}


def write_npz(path: Path, rng: np.random.Generator) -> dict:
    np.savez(path, **labelled(rng))
    return {"format": "npz"}


def write_tensors(path: Path, rng: np.random.Generator) -> dict:
    write_safetensors(path, labelled(rng))
    return {"format": "safetensors"}


def write_csv(path: Path, rng: np.random.Generator) -> dict:
    rows = np.column_stack([rng.integers(0, 9, (SAMPLES, 64)), rng.integers(0, 10, SAMPLES)])
    np.savetxt(path, rows, fmt="%d", delimiter=",")
    return {"format": "csv", "y_type": "class"}


def write_tokens(path: Path, rng: np.random.Generator) -> dict:
    rng.integers(0, 97, 16 * SAMPLES).astype("<u2").tofile(path)
    return {"format": "tokens", "length": 16, "dtype": "uint16"}


CASES = {"npz": (write_npz, DIGITS_MLP, "the target has class"), "safetensors": (write_tensors, DIGITS_MLP, "the target has class"),
         "csv": (write_csv, DIGITS_MLP, "the file was changed while it was in use"),
         "tokens": (write_tokens, CHAR_GPT, "counted from 0")}


@pytest.mark.parametrize("kind", CASES)
def test_garbage_in_place_of_data(kind: str, tmp_path: Path) -> None:
    """Written over it while a run trains: what it makes of the data is told with the file's name."""
    write, model, words = CASES[kind]
    file = tmp_path / f"data.{kind if kind != 'tokens' else 'bin'}"
    source = {**write(file, np.random.default_rng(0)), "path": str(file)}
    config = tmp_path / "recipe.yaml"
    config.write_text(json.dumps(recipe(model, data={"train": source, "eval": None}, eval=NO_EVALUATION)))
    with Started(1, tmp_path / "out", False, config=config) as run:
        run.wait_until_it_trains()
        size = file.stat().st_size
        with file.open("r+b") as opened:
            opened.seek(size // 4)
            opened.write(b"," * (size // 4 * 3))  # as float32 a small number, as an integer no class
        assert run.wait(20) == [2], run.said()
        errors = run.said()[run.said().index("decent-train: error:"):]
        assert str(file) in errors and words in errors, errors
