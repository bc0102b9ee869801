"""Texts that spreadsheets take for formulas: a ' stands in front in tables that are written, and is no part of the text read."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from runs import attempt, recipe, train

# Bytewise sorted, as classes are. The last two begin like none.
MARKED = ["\tin", "\rin", "'quoted'", "+more", "-less", "=1+1", "@sum"]
NAMES = [*MARKED, "plain", "x=1"]


class Same(nn.Module):
    """Gives its input; what it trains is a factor."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * x


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "same.pt"
    torch.jit.script(Same()).save(str(path))
    return path


def write_rows(path: Path, rows: list[list[object]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_NONNUMERIC).writerows(rows)  # in quotes blanks count
    return path


def read_rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def table(path: Path, names: list[str]) -> Path:
    """A row for each class, whose highest number is at the class's place."""
    numbers = np.eye(len(names)) - 0.5
    return write_rows(path, [[*(f"x{i}" for i in range(len(names))), "what"],
                             *([*row.tolist(), name] for row, name in zip(numbers, names, strict=True))])


def source_of(path: Path, **keys: object) -> dict:
    return {"format": "csv", "path": str(path), **keys}


def classes_of(run: Path) -> list[str]:
    return json.loads((run / "data.json").read_text())["train"]["classes"]


def settings(model: Path, source: dict) -> dict:
    return recipe(model, data={"train": source, "eval": source, "predict": source, "batch_size": 9}, train={"steps": 2},
                  checkpoint={"every_steps": 2})


def test_there_and_back(model: Path, tmp_path: Path) -> None:
    """A run's predictions and tables are marked; read as data, or by Python and without the mark, they have the names again."""
    own = settings(model, source_of(table(tmp_path / "table.csv", NAMES), y="what"))
    run = train(tmp_path, own).folder
    assert classes_of(run) == NAMES
    (ended,) = attempt(tmp_path, own, "--eval-only", "--predict", tmp_path / "predicted.csv")
    assert (ended.code, ended.err) == (0, "")
    head, *rows = read_rows(tmp_path / "predicted.csv")
    written = [row[head.index("class")] for row in rows]
    assert written == [*("'" + name for name in MARKED), *NAMES[len(MARKED):]]
    numbers = [cell for row in rows for cell in row[head.index("output_0"):]]
    assert any(cell.startswith("-") for cell in numbers) and not any(cell.startswith("'") for cell in numbers)
    for name in ("eval-classes.csv", "eval-confusion.csv"):
        assert [row[0] for row in read_rows(run / name)][1:len(NAMES) + 1] == written, name
    again = source_of(tmp_path / "predicted.csv", y="class", x=[f"output_{i}" for i in range(len(NAMES))])
    assert classes_of(train(tmp_path / "again", settings(model, again)).folder) == NAMES


def test_names_of_columns_and_categories(model: Path, tmp_path: Path) -> None:
    """All words of a table lose one mark, and one only; what follows no mark keeps its '."""
    words = ["'=a", "'b", "''=c"]
    path = write_rows(tmp_path / "t.csv", [["'=word", "'y"], *([word, "ab"[i % 2]] for i, word in enumerate(words * 4))])
    run = train(tmp_path, settings(model, source_of(path, one_hot=["=word"], y="'y"))).folder
    learned = json.loads((run / "data.json").read_text())["train"]
    assert set(map(tuple, find_lists(learned))) >= {tuple(sorted(["=a", "'b", "'=c"]))}, learned


def find_lists(value: object) -> list[list[str]]:
    """All lists of texts in it, at any depth."""
    if isinstance(value, dict):
        return [found for each in value.values() for found in find_lists(each)]
    if not isinstance(value, list):
        return []
    if value and all(isinstance(each, str) for each in value):
        return [value]
    return [found for each in value for found in find_lists(each)]


def test_list_of_images(tmp_path: Path) -> None:
    """Predictions name images as their list has them, so that a list may be made of those."""
    random = np.random.default_rng(0)
    names = ["=a.png", "-b.png", "c.png"]
    for name in names:
        Image.fromarray(random.integers(0, 256, (8, 8), np.uint8)).save(tmp_path / name)
    labels = {"=a.png": "@x", "-b.png": "=y", "c.png": "z"}
    runs = []
    for kind, mark in (("plain", ""), ("marked", "'")):
        rows = [[name if name == "c.png" else mark + name, labels[name] if name == "c.png" else mark + labels[name]] for name in names]
        path = write_rows(tmp_path / f"{kind}.csv", rows)
        source = {"format": "images", "path": str(path), "channels": 1}
        own = recipe(data={"train": source, "eval": source, "predict": source, "batch_size": 3}, train={"steps": 2}, checkpoint={"every_steps": 2})
        runs.append(train(tmp_path / kind, own))
        (ended,) = attempt(tmp_path / kind, own, "--predict", tmp_path / f"{kind}-predicted.csv")
        assert ended.code == 0, ended
    assert classes_of(runs[0].folder) == classes_of(runs[1].folder) == ["=y", "@x", "z"]
    predicted = [read_rows(tmp_path / f"{kind}-predicted.csv") for kind in ("plain", "marked")]
    assert predicted[0] == predicted[1]
    assert [row[predicted[0][0].index("file")] for row in predicted[0][1:]] == ["'=a.png", "'-b.png", "c.png"]
