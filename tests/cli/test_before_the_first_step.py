"""What can be known of the data is known before the first step, not after the first epoch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from runs import DIGITS_MLP, assert_says, attempt, error_message, recipe, refused, train

SAMPLES, LATE = 3000, 2877


def arrays(path: Path, y: np.ndarray, x: np.ndarray | None = None) -> dict:
    np.savez(path, x=np.zeros((len(y), 1, 8, 8), np.float32) if x is None else x, y=y)
    return {"format": "npz", "path": str(path)}


def labels(**wrong: int) -> np.ndarray:
    y = np.arange(SAMPLES, dtype=np.int64) % 10
    for _, value in wrong.items():
        y[LATE] = value
    return y


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("which", ["train", "eval"])
@pytest.mark.parametrize("wrong", [10, -1])
def test_a_class_that_the_model_does_not_have(wrong: int, which: str, workers: int, tmp_path: Path) -> None:
    good = arrays(tmp_path / "good.npz", labels())
    bad = arrays(tmp_path / "bad.npz", labels(late=wrong))
    data = {"train": good, "eval": good, which: bad}
    message = refused(tmp_path / "run", recipe(DIGITS_MLP, data=data), workers=workers)
    assert_says(message, f"data.{which}: sample {LATE} ('{tmp_path / 'bad.npz'}'), counted from 0: the target has class {wrong}, "
                         "the model's output has 10 classes: 0 to 9")


def test_a_row_of_a_file(tmp_path: Path) -> None:
    """Of several files, one is named with the row in it; small types are read as what they are."""
    y = labels().astype(np.uint8)
    for name, part in (("a", y[:1000]), ("b", y[1000:])):
        part = part.copy()
        if name == "b":
            part[LATE - 1000] = 200
        arrays(tmp_path / f"{name}.npz", part.astype(np.int64))
    source = {"format": "npz", "path": str(tmp_path / "*.npz")}
    message = refused(tmp_path / "run", recipe(DIGITS_MLP, data={"train": source, "eval": None}))
    assert_says(message, f"data.train: sample {LATE} ('", f"b.npz', row {LATE - 1000}), counted from 0: ", "class 200")


def test_what_is_no_mistake(tmp_path: Path) -> None:
    """The ignored class, targets that are probabilities, and samples that are not taken."""
    good = arrays(tmp_path / "good.npz", labels())
    ignored = arrays(tmp_path / "ignored.npz", labels(late=-100))
    shares = np.full((SAMPLES, 10), 0.1, np.float32)
    np.savez(tmp_path / "shares.npz", x=np.zeros((SAMPLES, 1, 8, 8), np.float32), y=shares)
    probabilities = {"format": "npz", "path": str(tmp_path / "shares.npz")}
    unused = {**arrays(tmp_path / "unused.npz", labels(late=99)), "limit": 2000}
    for number, source in enumerate((ignored, probabilities, unused)):
        train(tmp_path / str(number), recipe(DIGITS_MLP, data={"train": source, "eval": good}, train={"steps": 2}))


def pictures(folder: Path, count: int) -> Path:
    folder.mkdir()
    for i in range(count):
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(folder / f"{i}.png")
    listed = folder / "list.csv"
    listed.write_text("file,label\n" + "".join(f"{i}.png,{i % 10}\n" for i in range(count)))
    return listed


@pytest.mark.parametrize("which", ["train", "eval"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_picture_that_is_not_there(workers: int, which: str, tmp_path: Path) -> None:
    data = {}
    for name in ("train", "eval"):
        data[name] = {"format": "images", "channels": 1, "path": str(pictures(tmp_path / name, 400))}
    missing = tmp_path / which / "333.png"
    missing.unlink()
    settings = recipe(DIGITS_MLP, data=data, train={"steps": 3})
    assert_says(error_message(attempt(tmp_path / "run", settings, workers=workers)), f"data.{which}: cannot read", missing)
    assert not (tmp_path / "run" / "run").exists()
    train(tmp_path / "skipped", {**settings, "data": {**settings["data"], "on_error": "skip"}}, workers=workers)


def test_a_table(tmp_path: Path) -> None:
    """Whole numbers beyond the classes, of a table that is evaluated without knowing its names."""
    rows = [",".join(["0"] * 64) + f",{i % 10}\n" for i in range(500)]
    header = ",".join(f"p{i}" for i in range(64)) + ",label\n"
    (tmp_path / "train.csv").write_text(header + "".join(rows))
    rows[471] = ",".join(["0"] * 64) + ",11\n"
    (tmp_path / "eval.csv").write_text(header + "".join(rows))
    source = {"format": "csv", "path": str(tmp_path / "train.csv"), "y": "label", "y_type": "class"}
    settings = recipe(DIGITS_MLP, data={"train": source, "eval": {"format": "csv", "path": str(tmp_path / "eval.csv")}})
    message = error_message(attempt(tmp_path / "run", settings))
    assert_says(message, "data.eval", "11")
