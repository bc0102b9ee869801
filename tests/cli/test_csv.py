"""Tables of separated text and pairs of texts, against Python's csv module: the same samples give the same bits."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pytest
import torch

from runs import Run, assert_same_weights, assert_says, attempt, merged, recipe, refused, train
from tensors import write_safetensors
from translator import Translator

WORDS = ("ant", "Bee", 'the "cat"', "dog, wet", "égal", "two\nlines", "")
CLASSES = ("no", "Yes", "per, haps")
NUMBERS = 5
MISSING = -2.0


def write_table(path: Path, rows: list[list[str]], random: np.random.Generator, names: list[str]) -> None:
    """In one of the ways in which programs write tables."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=",\t;|"[random.integers(4)], lineterminator=("\n", "\r\n")[random.integers(2)],
                        quoting=(csv.QUOTE_MINIMAL, csv.QUOTE_ALL)[random.integers(2)])
    writer.writerows([names, *rows])
    content = (b"", b"\xef\xbb\xbf")[random.integers(2)] + text.getvalue().encode()
    if random.integers(2):
        content = content.rstrip(b"\r\n")
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def number_text(value: np.float32, random: np.random.Generator) -> str:
    """The value, or a missing one, as programs write it."""
    if random.random() < 0.05:
        return ("", "NA", "nan", "-inf", "NULL")[random.integers(5)]
    text = (repr(float(value)), f"{value:.9g}", f"{value:.8e}", np.format_float_positional(value))[random.integers(4)]
    return ("", " ", "+")[random.integers(3) if value > 0 else 0] + text


def random_rows(count: int, random: np.random.Generator) -> list[list[str]]:
    scales = 10.0 ** random.integers(-6, 6, (count, NUMBERS))
    values = (random.normal(size=(count, NUMBERS)) * scales).astype(np.float32)
    return [[WORDS[random.integers(len(WORDS))], *(number_text(value, random) for value in row),
             CLASSES[random.integers(len(CLASSES))]] for row in values]


def number_of(text: str) -> float:
    value = float(text) if text not in ("", "NA", "NULL") else np.nan
    return value if np.isfinite(value) else MISSING


def python_reads(path: Path) -> tuple[list[str], list[list[str]]]:
    """The names and the rows, by Python's csv module."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8-sig")
    dialect = csv.Sniffer().sniff(text.splitlines()[0], delimiters=",\t;|")
    names, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=dialect.delimiter)
    return names, [row for row in rows if row]


class Net(torch.nn.Module):
    """Numbers of many sizes, each to a class."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(torch.asinh(x))


def model(folder: Path, inputs: int, outputs: int) -> str:
    torch.manual_seed(3)
    torch.jit.script(Net(inputs, outputs)).save(str(folder / "model.pt"))
    return str(folder / "model.pt")


def settings(model_file: str, source: dict, **changes: object) -> dict:
    return recipe(Path(model_file), data={"train": source, "eval": None, "batch_size": 16}, train={"steps": 20}, **changes)


@pytest.fixture
def tables(tmp_path: Path) -> list[Path]:
    random = np.random.default_rng(5)
    names = ["note", *(f"n{i}" for i in range(NUMBERS)), "class"]
    paths = [tmp_path / f"part-{i:02}.csv{'.gz' if i % 4 == 3 else ''}" for i in range(16)]
    for path in paths:
        write_table(path, random_rows(int(random.integers(1, 60)), random), random, names)
    return paths


def trained_from_arrays(folder: Path, model_file: str, arrays: dict[str, np.ndarray], **changes: object) -> Run:
    write_safetensors(folder / "wanted.safetensors", arrays)
    source = {"format": "safetensors", "path": str(folder / "wanted.safetensors")}
    return train(folder / "wanted", settings(model_file, source, **changes))


def test_same_as_python_reads(tables: list[Path], tmp_path: Path) -> None:
    """Separators, quotes, line ends, blanks, missing numbers, words of any kind, compressed files: one source."""
    rows = [row for path in tables for row in python_reads(path)[1]]
    words = sorted({row[0] for row in rows} - {""}, key=str.encode)
    classes = sorted({row[-1] for row in rows}, key=str.encode)
    assert len(words) == len(WORDS) - 1 and len(classes) == len(CLASSES)
    one_hot = [[float(row[0] == word) for word in words] for row in rows]
    x = np.array([hot + [number_of(text) for text in row[1:-1]] for hot, row in zip(one_hot, rows)], dtype=np.float32)
    y = np.array([classes.index(row[-1]) for row in rows])
    file = model(tmp_path, x.shape[1], len(classes))
    wanted = trained_from_arrays(tmp_path, file, {"x": x, "y": y})
    source = {"format": "csv", "path": str(tmp_path / "part-*"), "one_hot": "note", "missing": MISSING}
    run = train(tmp_path / "run", settings(file, source))
    assert list(run.losses) == list(wanted.losses)
    assert_same_weights(run, wanted)


def test_regression(tmp_path: Path) -> None:
    """Numbers without a header, as numpy writes them; the mean where one is missing."""
    random = np.random.default_rng(6)
    values = random.normal(size=(64, 4)).astype(np.float32)
    np.savetxt(tmp_path / "a.csv", values, fmt="%.9g", delimiter=",")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    lines[7] = "," + lines[7].split(",", 1)[1]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    known = np.delete(values[:, 0], 7)
    values[7, 0] = np.float32(known.astype(np.float64).sum() / len(known))
    file = model(tmp_path, 3, 1)
    wanted = trained_from_arrays(tmp_path, file, {"x": values[:, :3].copy(), "y": values[:, 3:].copy()}, model={"loss": "mse"})
    source = {"format": "csv", "path": str(tmp_path / "a.csv"), "missing": "mean"}
    assert_same_weights(train(tmp_path / "run", settings(file, source, model={"loss": "mse"})), wanted)


def test_evaluation_knows_the_classes_of_training(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("a,y\n" + "1,no\n2,yes\n3,never\n" * 16)
    (tmp_path / "eval.csv").write_text("a,y\n1,yes\n2,yes\n")
    file = model(tmp_path, 1, 3)
    source = {"format": "csv", "path": str(tmp_path / "eval.csv"), "reference": str(tmp_path / "train.csv")}
    data = {"train": {"format": "csv", "path": str(tmp_path / "train.csv")}, "eval": source, "batch_size": 16}
    run = train(tmp_path / "good", recipe(Path(file), data=data, eval={"every_epochs": 1}))
    assert run.evaluation["samples"] == 2
    alone = train(tmp_path / "alone", recipe(Path(file), data={**data, "eval": {**source, "reference": None}}, eval={"every_epochs": 1}))
    assert alone.evaluation == run.evaluation
    (tmp_path / "eval.csv").write_text("a,y\n1,yes\n2,yess\n")
    message = refused(tmp_path / "unseen", recipe(Path(file), data=data))
    assert_says(message, "data.eval: ", "eval.csv:3: column 'y': expected one of the classes of", "'never', 'no', 'yes'",
                "got 'yess'; did you mean 'yes'?")


def test_wrong_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,y\n1,2,3\n4,x,6\n")
    file = model(tmp_path, 2, 1)
    source = {"format": "csv", "path": str(tmp_path / "a.csv")}
    assert_says(refused(tmp_path / "0", settings(file, source)), "data.train: ", "a.csv:3: column 'b': expected a number, got 'x'")
    assert_says(refused(tmp_path / "1", settings(file, {**source, "x": "c"})), "names a column 'c'", "'a', 'b', 'y'")
    assert_says(refused(tmp_path / "2", settings(file, {**source, "target": "y"})), "target", "recipe.yaml:")
    assert_says(refused(tmp_path / "3", settings(file, {**source, "path": str(tmp_path / "b.csv")})), "b.csv", "No such file")


# ---- tables as other programs write them ---------------------------------------------------------------------------

GERMAN = "# Messwerte\r\nid;2019;2020;wert\r\n" + "".join(f"{i};{i},5;-{i},25;{i * 2},75\r\n" for i in range(1, 33))


def test_decimal_commas_of_all_data(tmp_path: Path) -> None:
    """Evaluation and prediction read as training does; the bits are those of the arrays."""
    i = np.arange(1, 33, dtype=np.float32)
    file = model(tmp_path, 2, 1)
    wanted = trained_from_arrays(tmp_path, file, {"x": np.stack([i + 0.5, -i - 0.25], 1), "y": (2 * i + 0.75)[:, None]},
                                 model={"loss": "mse"})
    (tmp_path / "t.csv").write_text(GERMAN, newline="")
    (tmp_path / "new.csv").write_text("id;2019;2020\n1;1,5;-1,25\n", newline="")
    source = {"format": "csv", "path": str(tmp_path / "t.csv"), "decimal": ",", "comment": "#", "header": "true", "drop": "id"}
    made = merged(settings(file, source, model={"loss": "mse"}, eval={"every_epochs": 1}, checkpoint={"every_epochs": 1}), {"data": {
        "eval": {"format": "csv", "path": str(tmp_path / "t.csv")},
        "predict": {"format": "csv", "path": str(tmp_path / "new.csv")}}})
    run = train(tmp_path / "run", made)
    assert list(run.losses) == list(wanted.losses)
    assert_same_weights(run, wanted)
    assert run.evaluation["samples"] == 32
    ended = attempt(tmp_path / "run", made, "--predict", tmp_path / "out.npz")[0]
    assert ended.code == 0, ended
    net = torch.jit.load(str(run.folder / "model.pt"))
    assert np.load(tmp_path / "out.npz")["output"] == net(torch.tensor([[1.5, -1.25]])).detach().numpy()


# content -> keys, what is said
OTHERS = {
    "decimal commas": ("a;y\n1,5;2\n", {}, ["t.csv:2: column 'a'", "got '1,5'", 'say `decimal: ","`']),
    "decimal commas without a header": ("1,5;2,5\n", {}, ["t.csv:1: column 0", 'say `decimal: ","`']),
    "decimal commas in the target": ("a;y\n1;2,5\n", {}, ["t.csv:2: column 'y'", 'say `decimal: ","`', "`y_type: class`"]),
    "thousands": ("a;y\n1.234,5;2\n", {"decimal": ","}, ["t.csv:2: column 'a'", "separators of thousands are not read"]),
    "a header with numbers": ("id,2019,y\n1,2,3\n", {}, ["t.csv:1: column 0", "got 'id'", "say `header: true`"]),
    "a header of numbers": ("2019,2020,y\n1,2,3\n4,5,6\n", {}, ["t.csv:1: column 2", "got 'y'", "say `header: true`"]),
    "a title": ("# made by hand\n1,2,3\n", {}, ["t.csv'", 'say `comment: "#"`']),
    "comments": ("1,2\n# made by hand, yesterday, at home\n", {}, ["t.csv:2", "say `comment: \"#\"`"]),
    "no such mark": ("1,2\n", {"decimal": "'"}, ["data.train.decimal", 'expected one of ".", ","']),
    "Latin-1 in classes": ("a,y\n1,ok\n2,M\xfcnchen\n", {}, ["t.csv:3: column 'y'", "is not UTF-8 (Latin-1", "iconv -f"]),
    "Latin-1 in names": ("gr\xf6\xdfe,y\n1,2\n", {}, ["t.csv:1: column 0", "is not UTF-8 (Latin-1", "iconv -f"]),
    "Latin-1 in categories": ("a,y\nM\xfcnchen,2\n", {"one_hot": "a"}, ["t.csv:2: column 'a'", "is not UTF-8", "iconv -f"]),
    "Latin-1 in pairs": ("a\tM\xfcnchen\n", {"format": "pairs", "length": 4}, ["t.csv:1: column 1", "is not UTF-8", "iconv -f"]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_other_programs_write_is_explained(name: str, tmp_path: Path) -> None:
    content, keys, said = OTHERS[name]
    (tmp_path / "t.csv").write_bytes(content.encode("latin-1"))
    source = {"format": "csv", "path": str(tmp_path / "t.csv"), **keys}
    assert_says(refused(tmp_path / "run", settings(model(tmp_path, 1, 1), source)), "data.train", *said)


def test_latin_1_in_a_list_of_images_and_a_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_bytes("a.png,ok\nb.png,M\xfcnchen\n".encode("latin-1"))
    images = {"format": "images", "path": str(tmp_path / "list.csv"), "size": 8}
    file = model(tmp_path, 1, 1)
    assert_says(refused(tmp_path / "images", settings(file, images)), "list.csv', line 2", "is not UTF-8 (Latin-1", "iconv -f")
    (tmp_path / "words").write_bytes("ok\nM\xfcnchen\n".encode("latin-1"))
    (tmp_path / "pairs.tsv").write_text("ok\tok\n")
    pairs = {"format": "pairs", "path": str(tmp_path / "pairs.tsv"), "length": 4, "vocabulary": str(tmp_path / "words")}
    assert_says(refused(tmp_path / "pairs", settings(file, pairs)), "words:2", "is not UTF-8 (Latin-1", "iconv -f")


def test_pairs(tmp_path: Path) -> None:
    """Words by frequency, padding, masks, the shifted target: as in a few lines of Python."""
    random = np.random.default_rng(7)
    letters = list("abcdefghij")
    texts = [[" ".join(random.choice(letters, random.integers(1, 6))) for _ in range(2)] for _ in range(80)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in texts))
    counts: dict[str, int] = {}
    for pair in texts:
        for word in " ".join(pair).split():
            counts[word] = counts.get(word, 0) + 1
    number = {word: 4 + i for i, word in enumerate(sorted(counts, key=lambda word: (-counts[word], word)))}
    source_length, target_length = 5, 7

    def padded(tokens: list[int], length: int, pad: int) -> list[int]:
        return tokens + [pad] * (length - len(tokens))

    pairs = [([number[w] for w in a.split()], [number[w] for w in b.split()]) for a, b in texts]
    x = np.array([padded(a, source_length, 0) for a, _ in pairs])
    y_in = np.array([padded([1, *b], target_length, 0) for _, b in pairs])
    y = np.array([padded([*b, 2], target_length, -100) for _, b in pairs])
    arrays = {"x": x, "x_mask": x != 0, "y_in": y_in, "y": y, "y_mask": y != -100}
    torch.manual_seed(3)
    torch.jit.script(Translator(4 + len(number))).save(str(tmp_path / "model.pt"))
    changes = {"model": {"inputs": ["x", "x_mask", "y_in", "y_mask"]}}
    wanted = trained_from_arrays(tmp_path, str(tmp_path / "model.pt"), arrays, **changes)
    source = {"format": "pairs", "path": str(tmp_path / "pairs.tsv"), "length": [source_length, target_length]}
    run = train(tmp_path / "run", settings(str(tmp_path / "model.pt"), source, **changes))
    assert_same_weights(run, wanted)
