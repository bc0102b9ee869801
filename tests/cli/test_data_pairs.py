"""Pairs of a training source and another one, made at random from the same data: what is evaluated or predicted comes out as
Python has it from the rows, or is refused; nothing is silently wrong. DECENT_DATA_PAIRS=200 makes so many.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import numpy as np
import pytest
import torch
from PIL import Image

from learned_runs import Bright
from predictions import predict, read_predictions
from runs import attempt, error_message, merged, recipe, train

PAIRS = int(os.environ.get("DECENT_DATA_PAIRS", "20"))
WORDS = ["ape", "bee", "cat", "dog"]


@dataclass
class Case:
    """What a pair is expected to give."""

    settings: dict
    wanted: object            # predictions or an accuracy, as Python has it; None: only an error is right
    must_work: bool           # else an error is right, too
    evaluates: bool = False
    said: list[str] = field(default_factory=list)


def save(path: Path, module: torch.nn.Module) -> str:
    torch.jit.script(module).save(str(path))
    return str(path)


def write_rows(path: Path, rows: list[list[object]], separator: str = ",") -> str:
    path.write_text("".join(separator.join(str(cell) for cell in row) + "\n" for row in rows))
    return str(path)


def settings(file: str, source: dict, other: dict, use: str, **changes: object) -> dict:
    base = recipe(Path(file), data={"train": source, "eval": None, use: other, "batch_size": 2}, train={"steps": 1},
                  optimizer={"name": "sgd", "lr": 1e-30}, checkpoint={"every_steps": 1}, eval={"every_steps": 1})
    return merged(base, changes)


# ---- tables ---------------------------------------------------------------------------------------------------------

def table(folder: Path, random: np.random.Generator) -> Case:
    """x is two numbers and a word; the model is linear in them and in the word's place among those of training."""
    weight = random.integers(-5, 6, 2 + len(WORDS)).astype(float)
    net = torch.nn.Linear(len(weight), 1, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor(weight[None]))
    order = list(random.permutation(["a", "b", "c", "id", "y"]))
    has_header = bool(random.integers(4))  # a table of training without names is read by numbers

    def rows(count: int, words: list[str]) -> list[dict]:
        return [{"a": int(random.integers(9)), "b": int(random.integers(9)), "c": words[i % len(words)], "id": i, "y": int(random.integers(9))}
                for i in range(count)]

    def text(file: str, columns: list[str], data: list[dict], header: bool, names: dict[str, str] | None = None) -> str:
        head = [[(names or {}).get(name, name) for name in columns]] if header else []
        return write_rows(folder / file, head + [[row.get(name, 0) for name in columns] for row in data])

    def name(column: str) -> str:
        return column if has_header else str(order.index(column))

    source = {"format": "csv", "path": text("train.csv", order, rows(8, WORDS), has_header), "one_hot": name("c"), "y": name("y")}
    inputs = [column for column in order if column in "abc"]
    if random.integers(2):
        source["drop"] = name("id")
    else:
        source["x"] = [name(column) for column in inputs]
    new = rows(5, list(random.permutation(WORDS)[:random.integers(1, 5)]))
    columns, header, names, must_work, possible = list(order), has_header, {}, True, True
    change = random.choice(["none", "permuted", "without target", "extra", "missing", "renamed", "word", "no header", "copied keys"])
    if change == "permuted" and has_header:
        columns = list(random.permutation(order))
    elif change == "without target":
        columns.remove("y")
    elif change == "extra":
        columns, must_work, possible = [*columns, "more"], has_header, has_header
    elif change in ("missing", "renamed"):
        gone = str(random.choice(inputs))
        possible = False if has_header or change == "missing" else possible
        must_work = possible
        columns = [column for column in columns if column != gone] if change == "missing" else columns
        names = {gone: "other"} if change == "renamed" else {}
    elif change == "word":
        new[-1]["c"], must_work, possible = "eel", False, False
    elif change == "no header" and has_header:
        header = False
    other = {"format": "csv", "path": text("new.csv", columns, new, header, names)}
    if change == "copied keys" and has_header:
        other |= {key: source[key] for key in ("drop", "y", "one_hot", "x") if key in source}
    at, start = {}, 0
    for column in inputs:
        at[column], start = start, start + (len(WORDS) if column == "c" else 1)
    wanted = [[weight[at["a"]] * row["a"] + weight[at["b"]] * row["b"] + weight[at["c"] + WORDS.index(row["c"])]] if row["c"] in WORDS else [0]
              for row in new]
    own = settings(save(folder / "net.pt", net), source, other, "predict", model={"loss": "mse"})
    return Case(own, wanted if possible else None, must_work, said=[f"csv {change}"])


# ---- pairs of texts -------------------------------------------------------------------------------------------------

class Ids(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(32, 32)
        with torch.no_grad():
            self.table.weight.copy_(torch.eye(32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table(x)


def texts(folder: Path, random: np.random.Generator) -> Case:
    """The model gives the numbers of the words back."""
    rows = [[" ".join(random.choice(WORDS, 2)), " ".join(random.choice(WORDS[:2], 2))] for _ in range(9)]
    counts = {word: sum(text.split().count(word) for row in rows for text in row) for word in WORDS}
    known = sorted((word for word in WORDS if counts[word]), key=lambda word: (-counts[word], word))
    has_header = bool(random.integers(2))
    source = {"format": "pairs", "path": write_rows(folder / "train.tsv", ([["en", "de"]] if has_header else []) + rows, "\t"),
              "length": 3, "header": has_header}
    new = [" ".join(random.choice([*WORDS, "eel"], 2)) for _ in range(4)]
    swapped, alone = has_header and bool(random.integers(2)), bool(random.integers(2))
    written = [[text] if alone else ["ape ape", text] if swapped else [text, "ape ape"] for text in new]
    head = [["en"] if alone else ["de", "en"] if swapped else ["en", "de"]] if has_header else []
    other = {"format": "pairs", "path": write_rows(folder / "new.tsv", head + written, "\t")}
    wanted = [[4 + known.index(word) if word in known else 3 for word in text.split()] + [0] for text in new]
    own = settings(save(folder / "net.pt", Ids()), source, other, "predict")
    return Case(own, wanted, True, said=["pairs"])


# ---- images and arrays ----------------------------------------------------------------------------------------------

def images(folder: Path, random: np.random.Generator) -> Case:
    """Folders or a list, of words or numbers; the class of an image is that of its name in training."""
    as_numbers = bool(random.integers(2))
    names = [str(number) for number in random.permutation(14)[:12]] if as_numbers else [f"{WORDS[i % 4]}{i}" for i in range(12)]
    ordered = sorted(names, key=int) if as_numbers else sorted(names)

    def image(path: Path, name: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        place = ordered.index(name) if name in ordered else 0
        Image.fromarray((255 * (np.arange(12) == place)).astype(np.uint8)[None]).save(path)

    for name in names:
        image(folder / "train" / name / "0.png", name)
    chosen = list(random.permutation(names)[:random.integers(1, 13)])
    new_class = not random.integers(4)
    if new_class:
        chosen.append("99" if as_numbers else "eel")
    for name in chosen:
        image(folder / "eval" / name / "0.png", name)
    path = str(folder / "eval")
    if random.integers(2):
        blank = " " if random.integers(2) else ""
        path = write_rows(folder / "eval" / "list.csv", [["file", "label"], *([f"{name}/0.png", blank + name] for name in chosen)])
    own = settings(save(folder / "net.pt", Bright()), {"format": "images", "path": str(folder / "train"), "channels": 1},
                   {"format": "images", "path": path}, "eval")
    return Case(own, None if new_class else 1.0, not new_class, evaluates=True, said=["images"])


def arrays(folder: Path, random: np.random.Generator) -> Case:
    """Arrays have names, in any order and with others beside them; numbers of classes stay."""
    def write(file: str, count: int, others: bool) -> str:
        y = random.integers(0, 12, count)
        x = (np.arange(12) == y[:, None]).astype(np.float32)[:, None, None]
        found = {"y": y, "x": x, **({"z": np.zeros((count, 3), np.float32)} if others else {})}
        keys = list(random.permutation(list(found)))
        np.savez(folder / file, **{key: found[key] for key in keys})
        return str(folder / file)

    own = settings(save(folder / "net.pt", Bright()), {"format": "npz", "path": write("train.npz", 8, False)},
                   {"format": "npz", "path": write("eval.npz", 5, bool(random.integers(2)))}, "eval")
    return Case(own, 1.0, True, evaluates=True, said=["npz"])


KINDS: list[Callable[[Path, np.random.Generator], Case]] = [table, texts, table, images, table, arrays]


@pytest.mark.parametrize("number", range(PAIRS))
def test_pair(number: int, tmp_path: Path) -> None:
    case = KINDS[number % len(KINDS)](tmp_path, np.random.default_rng(number))
    if case.evaluates:
        ended = attempt(tmp_path / "run", case.settings)
        if ended[0].code == 0:
            assert case.wanted is not None, f"{case.said}: silently wrong"
            found = train(tmp_path / "again", case.settings).evaluation["accuracy"]
            assert found == case.wanted, case.said
    else:
        predicts = case.settings["data"].pop("predict")
        run = train(tmp_path, case.settings)
        ended = predict(tmp_path / "p", merged(case.settings, {"output": str(run.folder), "data": {"predict": predicts}}))
        if ended[0].code == 0:
            assert case.wanted is not None, f"{case.said}: silently wrong"
            found = read_predictions(tmp_path / "p" / "out.npz")
            key = "class" if "class" in found else "output"
            assert found[key].tolist() == case.wanted, case.said
    if ended[0].code != 0:
        assert not case.must_work, ended[0].err
        error_message(ended)
