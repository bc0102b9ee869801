"""--predict: data of every format opens without a target, and says which file or row a prediction came from."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from idx_files import idx
from predictions import FORMATS, metadata_of, outputs_of, predict, predicted
from runs import assert_says, error_message, merged, recipe, refused, train
from tensors import same_bits, write_safetensors

COLUMNS = ["a", "b", "c"]
NAMES = ["bird, small", 'cat "Tom"', "dog"]
ROWS = 17


class Means(nn.Module):
    """[B, 1, H, W] or [B, n] to [B, 3]."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.fc = nn.Linear(inputs, len(NAMES))

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x.flatten(1) if x.dim() == 2 else x.mean((1, 2, 3)).unsqueeze(1))


class NextId(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(256, 256)

    def forward(self, x: Tensor) -> Tensor:
        return self.words(x)


class Lengths(nn.Module):
    """[B, T] ids and their mask to [B, T, 2]; [B, T] is padded to the longest of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 2)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.words(x) * mask.unsqueeze(2)


def save(folder: Path, net: nn.Module) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    torch.jit.script(net).save(str(folder / "net.pt"))
    return folder / "net.pt"


def settings(folder: Path, net: nn.Module, source: dict, train_source: dict | None = None, **changes: object) -> dict:
    gone = {"format": "npz", "path": str(folder / "gone.npz")}
    base = recipe(save(folder, net), data={"train": train_source or gone, "predict": source, "eval": None, "eval_batch_size": 5})
    return merged(base, changes)


def as_it_is(folder: Path, made: dict, name: str = "out.npz", workers: int = 1) -> dict[str, np.ndarray]:
    return predicted(folder, made, name, "--checkpoint", "none", workers=workers)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(4)


# ---- tables ---------------------------------------------------------------------------------------------------------

def write_table(path: Path, names: list[str] | None, columns: list[list]) -> dict:
    with path.open("w", newline="") as text:
        csv.writer(text).writerows(([names] if names else []) + [list(row) for row in zip(*columns)])
    return {"format": "csv", "path": str(path)}


def numbers() -> list[list[float]]:
    return np.random.default_rng(0).normal(size=(3, ROWS)).astype(np.float32).tolist()


def outputs(folder: Path, columns: list[list[float]]) -> np.ndarray:
    return outputs_of(folder / "net.pt", np.array(columns, np.float32).T.copy(), batch=5)


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("target", [0, 1, 3], ids=["first", "in between", "last"])
def test_a_table_has_the_columns_of_the_training_data(target: int, header: bool, tmp_path: Path) -> None:
    """With the target, without it, and where there are names in any order and with more columns."""
    x = numbers()
    labels = [NAMES[i % 3] for i in range(ROWS)]

    def with_target(columns: list) -> list:
        return [*columns[:target], labels if isinstance(columns[0], list) else "kind", *columns[target:]]

    of_train = write_table(tmp_path / "train.csv", with_target(COLUMNS) if header else None, with_target(x))
    of_train["y"] = ["kind"] if header else [str(target)]
    new = {"whole": write_table(tmp_path / "whole.csv", with_target(COLUMNS) if header else None, with_target(x)),
           "bare": write_table(tmp_path / "bare.csv", COLUMNS if header else None, x)}
    if header:
        new["mixed"] = write_table(tmp_path / "mixed.csv", ["c", "id", "a", "b"], [x[2], labels, x[0], x[1]])
    for source in new.values():
        for keys in ({}, {"reference": of_train["path"], "y": of_train["y"]}):
            made = settings(tmp_path, Means(3), {**source, **keys}, of_train if not keys else None)
            found = as_it_is(tmp_path, made)
            assert same_bits(found["output"], outputs(tmp_path, x)), (source, keys)
            assert found["class_names"].tolist() == NAMES


def test_a_table_by_itself(tmp_path: Path) -> None:
    """Where nothing tells the columns: y is the last one, or as it says, there or not."""
    x = numbers()
    bare = write_table(tmp_path / "bare.csv", COLUMNS, x)
    whole = write_table(tmp_path / "whole.csv", [*COLUMNS, "kind"], [*x, ["?"] * ROWS])
    for source in ({**bare, "y": "none"}, {**bare, "y": "kind"}, whole, {**whole, "y": "kind"}, {**bare, "x": COLUMNS}):
        assert same_bits(as_it_is(tmp_path, settings(tmp_path, Means(3), source))["output"], outputs(tmp_path, x)), source


def test_a_table_of_other_columns(tmp_path: Path) -> None:
    x = numbers()
    of_train = write_table(tmp_path / "train.csv", [*COLUMNS, "kind"], [*x, [0.5] * ROWS])
    other = write_table(tmp_path / "other.csv", ["a", "b", "sea"], x)
    message = error_message(predict(tmp_path, settings(tmp_path, Means(3), other, of_train), "out.csv", "--checkpoint", "none"))
    assert_says(message, "data.predict", "other.csv", "'c'")
    few = write_table(tmp_path / "few.csv", None, x[:2])
    message = error_message(predict(tmp_path, settings(tmp_path, Means(3), few, of_train), "out.csv", "--checkpoint", "none"))
    assert_says(message, "few.csv' has 2 columns; expected 4", "or 3 without the target")


def test_names_of_classes(tmp_path: Path) -> None:
    """Of the run that was trained on them, in every format; the new table has none."""
    x = numbers()
    of_train = write_table(tmp_path / "train.csv", [*COLUMNS, "kind"], [*x, [NAMES[i % 3] for i in range(ROWS)]])
    new = write_table(tmp_path / "new.csv", COLUMNS, x)
    made = settings(tmp_path, Means(3), new, of_train, train={"steps": 2}, checkpoint={"every_steps": 2}, data={"batch_size": 4})
    run = train(tmp_path, made, workers=2)
    own = merged(made, {"output": str(run.folder)})
    found = {name: predicted(tmp_path, own, "out" + name) for name in FORMATS}
    numbers_ = found[".npz"]["class"]
    assert found[".npz"]["class_names"].tolist() == NAMES and found[".safetensors"]["class_names"].tolist() == NAMES
    assert numbers_.tolist() == found[".safetensors"]["class"].tolist() == found[".npz"]["output"].argmax(1).tolist()
    for name in (".csv", ".jsonl"):
        assert found[name]["class"].tolist() == [NAMES[number] for number in numbers_]
    elsewhere = predicted(tmp_path / "b", {**own, "output": "none"}, "out.csv", "--checkpoint", run.checkpoint(2))
    assert elsewhere["class"].tolist() == found[".csv"]["class"].tolist()


def test_shards(tmp_path: Path) -> None:
    x = numbers()
    for number, part in enumerate((slice(0, 6), slice(6, None))):
        write_table(tmp_path / f"part{number}.csv", COLUMNS, [column[part] for column in x])
    source = {"format": "csv", "path": str(tmp_path / "part*.csv"), "y": "none"}
    for name in FORMATS:
        found = as_it_is(tmp_path, settings(tmp_path, Means(3), source), "out" + name, workers=2)
        assert found["row"].tolist() == list(range(ROWS))
        assert found["file_row"].tolist() == [*range(6), *range(ROWS - 6)]
        assert [Path(file).name for file in found["file"]] == ["part0.csv"] * 6 + ["part1.csv"] * (ROWS - 6)


# ---- images ---------------------------------------------------------------------------------------------------------

def picture(path: Path, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(number).integers(0, 256, (6, 6), np.uint8)).save(path)


def pixels(folder: Path, names: list[str]) -> np.ndarray:
    return np.stack([np.asarray(Image.open(folder / name))[None].astype(np.float32) / 255 for name in names])


FLAT = ["1.png", "10.png", "ä, \"2\".png", "é.png"]
TREE = ["cat/1.png", "cat/deep/2.png", "cat-b/1.png", "z.png"]


@pytest.mark.parametrize("names", [FLAT, TREE], ids=["flat", "tree"])
def test_a_folder_of_images(names: list[str], tmp_path: Path) -> None:
    for number, name in enumerate(names):
        picture(tmp_path / "new" / name, number)
    (tmp_path / "new" / "empty").mkdir()
    (tmp_path / "new" / "notes.txt").write_text("not an image")
    source = {"format": "images", "path": str(tmp_path / "new"), "channels": 1}
    made = settings(tmp_path, Means(1), source)
    for name in FORMATS:
        found = as_it_is(tmp_path, made, "out" + name, workers=2)
        assert sorted(found["file"].tolist()) == sorted(names) and found["row"].tolist() == list(range(4))
        assert same_bits(found["output"].astype(np.float32),
                         outputs_of(tmp_path / "net.pt", pixels(tmp_path / "new", found["file"].tolist()), batch=5))
        assert found["file"].tolist() == names, "in the order of the folders' names, then of the paths"


def test_transforms_are_those_of_evaluation(tmp_path: Path) -> None:
    """Images of two sizes; what training would draw is left out."""
    Image.fromarray(np.full((6, 6), 51, np.uint8)).save(tmp_path / "a.png")
    Image.fromarray(np.full((9, 4), 102, np.uint8)).save(tmp_path / "b.png")
    transforms = [{"resize": [4, 4]}, {"color_jitter": {"brightness": 0.9}}, {"normalize": {"mean": 0.1, "std": 0.5}}]
    source = {"format": "images", "path": str(tmp_path), "channels": 1}
    found = as_it_is(tmp_path, settings(tmp_path, Means(1), source, data={"transforms": transforms}))
    x = (np.array([51, 102], np.float32) / 255 - 0.1) / 0.5
    wanted = outputs_of(tmp_path / "net.pt", np.broadcast_to(x[:, None, None, None], (2, 1, 4, 4)).astype(np.float32))
    np.testing.assert_allclose(found["output"], wanted, rtol=1e-5)


@pytest.mark.parametrize("rows", ["2.png\n1.png\n", "file\n2.png\n1.png\n", "file,label\n2.png,\n1.png,dog\n"])
def test_a_list_of_images(rows: str, tmp_path: Path) -> None:
    for number in (1, 2):
        picture(tmp_path / f"{number}.png", number)
    (tmp_path / "list.csv").write_text(rows)
    source = {"format": "images", "path": str(tmp_path / "list.csv"), "channels": 1}
    found = as_it_is(tmp_path, settings(tmp_path, Means(1), source), "out.jsonl")
    assert found["file"].tolist() == ["2.png", "1.png"]


def test_a_folder_without_images(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    made = settings(tmp_path, Means(1), {"format": "images", "path": str(tmp_path / "new")})
    assert_says(error_message(predict(tmp_path, made, "out.csv", "--checkpoint", "none")), "data.predict", "new' has no images")
    made = settings(tmp_path, Means(1), {"format": "images", "path": str(tmp_path / "nowhere")})
    assert_says(error_message(predict(tmp_path, made, "out.csv", "--checkpoint", "none")), "expected a folder of images")


@pytest.mark.parametrize("workers", [1, 3])
def test_images_that_cannot_be_read(workers: int, tmp_path: Path) -> None:
    """on_error: skip leaves their rows out and names one; fail ends the run, and no file appears."""
    for number in range(12):
        picture(tmp_path / "new" / f"{number:02}.png", number)
    for number in (3, 7):
        (tmp_path / "new" / f"{number:02}.png").write_bytes(b"no image")
    source = {"format": "images", "path": str(tmp_path / "new"), "channels": 1}
    made = settings(tmp_path, Means(1), source, data={"on_error": "skip"})
    ended = predict(tmp_path, made, "out.csv", "--checkpoint", "none", workers=workers)
    assert [e.code for e in ended] == [0] * workers, ended
    assert_says("".join(e.err for e in ended), "2 samples of data.predict cannot be read", "sample 3", "03.png")
    assert_says(ended[0].out, "predicted 10 samples of data.predict")
    for name in FORMATS:
        found = as_it_is(tmp_path, made, "out" + name, workers=workers)
        assert found["row"].tolist() == [n for n in range(12) if n not in (3, 7)]
        assert found["file"].tolist() == [f"{n:02}.png" for n in range(12) if n not in (3, 7)]
    failing = predict(tmp_path, merged(made, {"data": {"on_error": "fail"}}), "new.csv", "--checkpoint", "none", workers=workers)
    assert_says(error_message(failing), "data.predict", "03.png")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("new.csv")]


@pytest.mark.parametrize("broken", [range(5), [10], range(10), range(11)], ids=["first", "last", "all but one", "all"])
def test_batches_that_cannot_be_read(broken: object, tmp_path: Path) -> None:
    """Of 11 images in batches of 5."""
    for number in range(11):
        picture(tmp_path / "new" / f"{number:02}.png", number)
    for number in broken:
        (tmp_path / "new" / f"{number:02}.png").write_bytes(b"no image")
    source = {"format": "images", "path": str(tmp_path / "new"), "channels": 1}
    made = settings(tmp_path, Means(1), source, data={"on_error": "skip"})
    if len(broken) == 11:
        message = error_message(predict(tmp_path, made, "out.csv", "--checkpoint", "none", workers=2))
        assert_says(message, "data.predict: no sample can be read")
    else:
        found = as_it_is(tmp_path, made, "out.npz", workers=2)
        assert found["row"].tolist() == [number for number in range(11) if number not in broken]


# ---- the other formats ----------------------------------------------------------------------------------------------

def test_idx_without_labels(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (ROWS, 6, 6)).astype(np.uint8)
    (tmp_path / "images").write_bytes(idx(images))
    made = settings(tmp_path, Means(1), {"format": "idx", "images": str(tmp_path / "images")})
    wanted = outputs_of(tmp_path / "net.pt", images[:, None].astype(np.float32) / 255, batch=5)
    assert same_bits(as_it_is(tmp_path, made)["output"], wanted)
    trains = merged(made, {"data": {"train": made["data"]["predict"]}})
    assert_says(refused(tmp_path / "train", trains), "data.train has no field 'y'", "model.target")


def test_npz_without_a_target(tmp_path: Path) -> None:
    x = np.array(numbers(), np.float32).T
    np.savez(tmp_path / "new.npz", x=x)
    made = settings(tmp_path, Means(3), {"format": "npz", "path": str(tmp_path / "new.npz")})
    assert same_bits(as_it_is(tmp_path, made)["output"], outputs_of(tmp_path / "net.pt", x.copy(), batch=5))


def test_text(tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_bytes(bytes(range(50)))
    made = settings(tmp_path, NextId(), {"format": "text", "path": str(tmp_path / "new.txt"), "length": 4})
    found = as_it_is(tmp_path, made)
    x = np.arange(48).reshape(12, 4)
    assert same_bits(found["output"], outputs_of(tmp_path / "net.pt", x, batch=5)) and found["class"].shape == (12, 4)


def pairs(tmp_path: Path, pad: str) -> dict:
    """A recipe, and 17 texts of 1 to 6 words."""
    texts = [" ".join(str(4 + (i * 7 + j) % 30) for j in range(1 + i % 6)) for i in range(ROWS)]
    (tmp_path / "new.tsv").write_text("".join(text + "\n" for text in texts))
    source = {"format": "pairs", "path": str(tmp_path / "new.tsv"), "tokens": "ids", "length": 8, "pad": pad}
    return settings(tmp_path, Lengths(), source, model={"inputs": ["x", "x_mask"]})


def test_pairs_without_the_second_text(tmp_path: Path) -> None:
    found = as_it_is(tmp_path, pairs(tmp_path, "length"), workers=2)
    assert found["output"].shape == (ROWS, 8, 2)
    asks = merged(pairs(tmp_path, "length"), {"model": {"inputs": ["x", "y_in"]}})
    message = error_message(predict(tmp_path, asks, "out.csv", "--checkpoint", "none"))
    assert_says(message, "data.predict has no field 'y_in'", "model.inputs", "it has x, x_mask")


def test_outputs_of_several_lengths(tmp_path: Path) -> None:
    """Only .jsonl takes them; the others say so, and leave nothing behind."""
    made = pairs(tmp_path, "batch")
    found = predict(tmp_path, made, "out.jsonl", "--checkpoint", "none", workers=2)
    assert found[0].code == 0, found
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [len(row["output"]) for row in rows] == [len(row["class"]) for row in rows] == [5] * 5 + [6] * 10 + [5] * 2
    for name in (".npz", ".safetensors", ".csv"):
        message = error_message(predict(tmp_path, made, "bad" + name, "--checkpoint", "none"))
        assert_says(message, "--predict 'bad" + name, "[5, 2] and [6, 2]", ".jsonl")
    assert not list(tmp_path.glob("bad*"))


def test_several_inputs_and_a_transform_of_the_target(tmp_path: Path) -> None:
    """What is done to a field that the model does not read is left out: the field need not be there."""
    x = np.array(numbers(), np.float32).T
    write_safetensors(tmp_path / "new.safetensors", {"features": x})
    made = settings(tmp_path, Means(3), {"format": "safetensors", "path": str(tmp_path / "new.safetensors")}, model={
        "inputs": ["features"], "loss": "mse"}, data={"transforms": [{"normalize": {"field": "features", "mean": 1.0, "std": 2.0}},
                                                                  {"normalize": {"field": "y", "mean": 3.0, "std": 10.0}}]})
    found = as_it_is(tmp_path, made)
    np.testing.assert_allclose(found["output"], outputs_of(tmp_path / "net.pt", (x - 1) / 2) * 10 + 3, rtol=1e-5)


def test_safetensors_keeps_short_texts(tmp_path: Path) -> None:
    picture(tmp_path / "new" / "1.png", 1)
    made = settings(tmp_path, Means(1), {"format": "images", "path": str(tmp_path / "new"), "channels": 1})
    as_it_is(tmp_path, made, "out.safetensors")
    assert metadata_of(tmp_path / "out.safetensors") == {"file": '["1.png"]'}


@pytest.mark.parametrize("keys", [{"drop": "id"}, {"x": ["c", "n"]}], ids=["drop", "x"])
@pytest.mark.parametrize("reference", [False, True])
def test_a_table_without_a_run_is_read_as_the_training_data(reference: bool, keys: dict, tmp_path: Path) -> None:
    """Its categories and means are those of data.train, or of that one's reference, whatever keys it takes from there."""
    def write(name: str, *rows: str) -> str:
        (tmp_path / name).write_text("\n".join(["c,n,id,kind", *rows]) + "\n")
        return str(tmp_path / name)

    whole = write("whole.csv", "red,2,1,a", "blue,6,2,b", "green,4,3,c")
    part = write("part.csv", "red,2,1,a", "blue,6,2,b")
    train_source = {"format": "csv", "path": part if reference else whole, "one_hot": "c", "missing": "mean", "y": "kind", **keys,
                    **({"reference": whole} if reference else {})}
    made = settings(tmp_path, Means(4), {"format": "csv", "path": write("new.csv", "red,,4,a", "pink,1,5,a")}, train_source)
    ended = predict(tmp_path, made, "out.npz", "--checkpoint", "none")
    assert_says(error_message(ended), "new.csv:3: column 'c'", "'blue', 'green', 'red', got 'pink'")
    write("new.csv", "red,,4,a")
    x = np.array([[0, 0, 1, 4]], np.float32)
    assert same_bits(as_it_is(tmp_path, made)["output"], outputs_of(tmp_path / "net.pt", x))
    Path(whole).write_text("c,n,id,kind\nred,2\n")
    message = error_message(predict(tmp_path, made, "out.npz", "--checkpoint", "none"))
    assert_says(message, "data.predict: data.train, by which it is read: ", "whole.csv:2")
