"""Pairs of a training source and another one, made at random from the same data: what is evaluated or predicted comes out as
Python has it from the rows, or is refused; nothing is silently wrong. DECENT_DATA_PAIRS=200 makes so many.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import numpy as np
import pytest
import torch
from PIL import Image

from learned_runs import Bright
from predictions import predict, read_predictions
from program import Ended
from runs import Run, attempt, error_message, merged, recipe, train

PAIRS = int(os.environ.get("DECENT_DATA_PAIRS", "24"))
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


def idx(folder: Path, random: np.random.Generator) -> Case:
    """Images and labels of their own files; evaluation names its two, or one of another count."""
    def write(name: str, count: int) -> tuple[str, str]:
        y = random.integers(0, 12, count).astype(np.uint8)
        x = (255 * (np.arange(12) == y[:, None])).astype(np.uint8)[:, None]
        paths = folder / f"{name}-images", folder / f"{name}-labels"
        for path, array in zip(paths, (x, y)):
            path.write_bytes(struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes())
        return str(paths[0]), str(paths[1])

    of_train, of_eval, short = write("train", 8), write("eval", 5), write("short", 4)
    wrong = not random.integers(4)
    own = settings(save(folder / "net.pt", Bright()), {"format": "idx", "images": of_train[0], "labels": of_train[1]},
                   {"format": "idx", "images": of_eval[0], "labels": (short if wrong else of_eval)[1]}, "eval")
    return Case(own, None if wrong else 1.0, not wrong, evaluates=True, said=["idx"])


class Bytes(Ids):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(256, 256)
        with torch.no_grad():
            self.table.weight.copy_(torch.eye(256))


def bytes_of_text(folder: Path, random: np.random.Generator) -> Case:
    """Windows as training has them, unless the source says otherwise where it may."""
    length, stride = int(random.integers(2, 6)), int(random.integers(1, 4))
    (folder / "train.txt").write_bytes(random.bytes(40))
    new = random.bytes(int(random.integers(12, 30)))
    (folder / "new.txt").write_bytes(new)
    source = {"format": "text", "path": str(folder / "train.txt"), "length": length, "stride": stride}
    other = {"format": "text", "path": str(folder / "new.txt")}
    must_work = True
    if random.integers(2):
        other["length"] = length + int(random.integers(2))
        must_work = other["length"] == length
    length = other.get("length", length)
    wanted = [list(new[at:at + length]) for at in range(0, len(new) - length, stride)]
    return Case(settings(save(folder / "net.pt", Bytes()), source, other, "predict"), wanted, must_work, said=["text"])


KINDS: list[Callable[[Path, np.random.Generator], Case]] = [table, texts, table, images, idx, table, arrays, bytes_of_text]


def look_at(run: Run, case: Case, by_model: bool) -> tuple[list[str], dict]:
    """Flags and recipe that take the run's averaged model: of its checkpoint, or of the exported file with the run gone."""
    if not by_model:
        return [], merged(case.settings, {"output": str(run.folder)})
    model = run.folder.parent / "alone.pt"
    (run.folder / "model.pt").rename(model)
    shutil.rmtree(run.folder)
    return ["--checkpoint", "none"], merged(case.settings, {"model": {"path": str(model)}})


def evaluated(folder: Path, case: Case, random: np.random.Generator) -> tuple[list[Ended], float | None]:
    """While it trains, or later."""
    if random.integers(3) == 0:
        ended = attempt(folder, case.settings)
        return ended, Run(folder / "run", ended).evaluation["accuracy"] if ended[0].code == 0 else None
    source = case.settings["data"].pop("eval")
    run = train(folder, merged(case.settings, {"data": {"eval": None}, "eval": {"every_steps": None}}))
    flags, own = look_at(run, case, bool(random.integers(2)))
    ended = attempt(folder / "later", merged(own, {"data": {"eval": source}}), "--eval-only", *flags)
    said = re.search(r"accuracy ([\d.]+)%", ended[0].out)
    return ended, float(said[1]) / 100 if said else None


def predictions(folder: Path, case: Case, random: np.random.Generator) -> tuple[list[Ended], list | None]:
    source = case.settings["data"].pop("predict")
    run = train(folder, case.settings)
    flags, own = look_at(run, case, bool(random.integers(2)))
    ended = predict(folder / "p", merged(own, {"data": {"predict": source}}), "out.npz", *flags)
    if ended[0].code != 0:
        return ended, None
    found = read_predictions(folder / "p" / "out.npz")
    return ended, found["class" if "class" in found else "output"].tolist()


@pytest.mark.parametrize("number", range(PAIRS))
def test_pair(number: int, tmp_path: Path) -> None:
    random = np.random.default_rng(number)
    case = KINDS[number % len(KINDS)](tmp_path, random)
    ended, found = (evaluated if case.evaluates else predictions)(tmp_path, case, random)
    if ended[0].code == 0:
        assert case.wanted is not None, f"{case.said}: silently wrong"
        assert found == case.wanted, case.said
    else:
        assert not case.must_work, ended[0].err
        error_message(ended)
