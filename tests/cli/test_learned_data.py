"""A run reads what it evaluates and predicts later as it read its training data (data.json), or refuses it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from learned_runs import Bright, make_old_run
from predictions import predict, predicted
from program import run_alone
from runs import Run, assert_same_run, assert_says, attempt, error_message, merged, recipe, refused, train

COLOURS = ["blue", "green", "red"]


def write(path: Path, *rows: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def linear(path: Path, weight: list[list[float]]) -> Path:
    """x to weight @ x."""
    net = torch.nn.Linear(len(weight[0]), len(weight), bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor(weight))
    torch.jit.script(net).save(str(path))
    return path


def settings(file: Path, source: dict, **changes: object) -> dict:
    """A step that changes nothing, so that the closed form of the model holds after it."""
    base = recipe(file, data={"train": source, "eval": None, "batch_size": 2}, train={"steps": 1},
                  optimizer={"name": "sgd", "lr": 1e-30}, checkpoint={"every_steps": 1}, eval={"every_steps": 1})
    return merged(base, changes)


# ---- tables ---------------------------------------------------------------------------------------------------------

@pytest.fixture
def table(tmp_path: Path) -> dict:
    """y = a - 10 b."""
    rows = [f"{i},{a},{b},{a - 10 * b}" for i, (a, b) in enumerate([(1, 2), (3, 1), (5, 0), (2, 4)])]
    return {"format": "csv", "path": write(tmp_path / "train.csv", "id,a,b,y", *rows), "drop": "id", "y": "y"}


@pytest.fixture
def regression(table: dict, tmp_path: Path) -> dict:
    return settings(linear(tmp_path / "net.pt", [[1.0, -10.0]]), table, model={"loss": "mse"})


@pytest.mark.parametrize("header", ["id,b,a,y", "y,b,a,other,id", "b,a,y"])
def test_columns_of_evaluation_are_found_by_name(header: str, regression: dict, tmp_path: Path) -> None:
    """In training and by --eval-only, with what is not used said."""
    values = {"id": 7, "a": 3, "b": 1, "y": -7, "other": 5}
    path = write(tmp_path / "eval.csv", header, ",".join(str(values[name]) for name in header.split(",")))
    own = merged(regression, {"data": {"eval": {"format": "csv", "path": path}}})
    run = train(tmp_path / header, own)
    assert run.evaluation["loss"] == pytest.approx(0, abs=1e-12)
    if "other" in header:
        assert_says(run.ended[0].out, "not used: column 'other'")
    ended, = attempt(tmp_path / header, own, "--eval-only")
    assert (ended.code, ended.err) == (0, "")
    assert run.lines("eval")[-1]["loss"] == pytest.approx(0, abs=1e-12)


def test_columns_that_are_missing_or_another_target(regression: dict, tmp_path: Path) -> None:
    cases = {"missing": ({}, "id,a,c,y", "has no column 'b', which data.train has"),
             "target": ({"y": "b"}, "id,a,b,y", "y names column 'b'; data.train has column 'y'"),
             "input": ({"x": ["b", "a"]}, "id,a,b,y", "x names column 'b', column 'a'; data.train takes column 'a', column 'b'"),
             "dropped": ({"drop": ["a"]}, "id,a,b,y", "drop names column 'a'"),
             "missing cells": ({"missing": "0"}, "id,a,b,y", "missing is \"0\", in data.train it is error")}
    for name, (keys, header, said) in cases.items():
        source = {"format": "csv", "path": write(tmp_path / f"{name}.csv", header, "0,1,2,3"), **keys}
        assert_says(refused(tmp_path / name, merged(regression, {"data": {"eval": source}})), "data.eval: ", said)


@pytest.mark.parametrize("keys", [{}, {"drop": "id"}, {"drop": "id", "y": "y"}], ids=["none", "drop", "drop and y"])
@pytest.mark.parametrize("header", ["id,b,a", "b,a", "id,a,y,b"])
def test_columns_of_predictions(keys: dict, header: str, regression: dict, tmp_path: Path) -> None:
    run = train(tmp_path, regression)
    values = {"id": 9, "a": 3, "b": 1, "y": 100}
    path = write(tmp_path / "new.csv", header, ",".join(str(values[name]) for name in header.split(",")))
    own = merged(regression, {"output": str(run.folder), "data": {"predict": {"format": "csv", "path": path, **keys}}})
    assert predicted(tmp_path / "p", own)["output"].tolist() == [[-7.0]]


def test_predictions_say_what_is_not_used(regression: dict, tmp_path: Path) -> None:
    run = train(tmp_path, regression)
    source = {"format": "csv", "path": write(tmp_path / "new.csv", "b,other,a", "1,5,3")}
    ended, = predict(tmp_path / "p", merged(regression, {"output": str(run.folder), "data": {"predict": source}}))
    assert ended.code == 0
    assert_says(ended.out, "note     data.predict: ", "not used: column 'other'")


def test_predictions_without_a_header(regression: dict, tmp_path: Path) -> None:
    run = train(tmp_path, regression)
    own = {"output": str(run.folder)}
    path = write(tmp_path / "new.csv", "0,3,1,100", "1,5,2,100")
    found = predicted(tmp_path / "p", merged(regression, {**own, "data": {"predict": {"format": "csv", "path": path}}}))
    assert found["output"].tolist() == [[-7.0], [-15.0]]
    few = write(tmp_path / "few.csv", "3,1")
    message = error_message(predict(tmp_path / "f", merged(regression, {**own, "data": {"predict": {"format": "csv", "path": few}}})))
    assert_says(message, "few.csv' has 2 columns; expected 4", "or 3 without the target", "data.json'")


@pytest.fixture
def colours(tmp_path: Path) -> dict:
    """One-hot of three words; class k is colour k. The number is missing in one row; its mean is 4."""
    rows = [f"{COLOURS[i % 3]},{n},{COLOURS[i % 3]}" for i, n in enumerate(["2", "4", "6", ""])]
    source = {"format": "csv", "path": write(tmp_path / "train.csv", "c,n,kind", *rows), "one_hot": "c", "missing": "mean"}
    return settings(linear(tmp_path / "net.pt", [[9, 0, 0, 0.5], [0, 9, 0, 0.5], [0, 0, 9, 0.5]]), source)


def test_words_of_training(colours: dict, tmp_path: Path) -> None:
    """Fewer words in evaluation and prediction are those of training; a new one is an error with its line."""
    fewer = {"format": "csv", "path": write(tmp_path / "fewer.csv", "c,n,kind", "red,6,red", "green,,green")}
    own = merged(colours, {"data": {"eval": fewer, "predict": fewer}})
    run = train(tmp_path, own)
    assert run.evaluation["accuracy"] == 1
    own["output"] = str(run.folder)
    found = predicted(tmp_path / "p", own)
    assert found["class"].tolist() == [2, 1] and found["class_names"].tolist() == COLOURS
    assert found["output"].tolist() == [[3, 3, 12], [2, 11, 2]], "the mean of training, 4"
    for number, row in enumerate(["pink,1,red", "red,1,pink"]):
        new = {"format": "csv", "path": write(tmp_path / f"new{number}.csv", "c,n,kind", "red,1,red", row)}
        ended = attempt(tmp_path, merged(own, {"data": {"eval": new}}), "--eval-only")
        assert_says(error_message(ended), f"new{number}.csv:3: column", "'blue', 'green', 'red', got 'pink'", "data.json")
    ended = predict(tmp_path / "q", merged(own, {"data": {"predict": {**fewer, "path": str(tmp_path / "new0.csv")}}}))
    assert_says(error_message(ended), "new0.csv:3: column 'c': expected one of the categories of", "got 'pink'")


def test_reference_of_other_words(colours: dict, tmp_path: Path) -> None:
    other = write(tmp_path / "other.csv", "c,n,kind", "red,6,red", "green,1,green")
    source = {"format": "csv", "path": other, "reference": other}
    message = refused(tmp_path / "run", merged(colours, {"data": {"eval": source}}))
    assert_says(message, "data.eval: reference: the categories, classes or means of", "are not those of data.train")
    same = {**source, "reference": colours["data"]["train"]["path"]}
    assert train(tmp_path / "same", merged(colours, {"data": {"eval": same}})).evaluation["accuracy"] == 1


def test_resume_reads_by_data_json(colours: dict, tmp_path: Path) -> None:
    """Training data whose columns have moved since trains on as before; a new word is refused."""
    own = merged(colours, {"train": {"steps": 3}, "data": {"batch_size": 4}})
    whole = train(tmp_path / "whole", own)
    parts = train(tmp_path / "parts", own, "--set", "train.steps=1")
    path = Path(colours["data"]["train"]["path"])
    rows = [row.split(",") for row in path.read_text().splitlines()]
    write(path, *(",".join([kind, number, word]) for word, number, kind in rows))
    resumed = train(tmp_path / "parts", own, "--resume", "auto")
    assert_same_run(resumed, whole)
    write(path, "c,n,kind", "pink,1,red", "red,1,red", "red,1,red", "red,1,red")
    message = error_message(attempt(tmp_path / "parts", own, "--resume", "auto", "--set", "train.steps=4"))
    assert_says(message, "data.train: ", "got 'pink'", str(parts.folder / "data.json"))


def test_a_checkpoint_that_was_moved(colours: dict, tmp_path: Path) -> None:
    """It has what its run has learned; damage of that is found."""
    fewer = {"format": "csv", "path": write(tmp_path / "fewer.csv", "c,n,kind", "red,6,red", "green,,green")}
    own = merged(colours, {"data": {"eval": fewer, "predict": fewer}})
    run = train(tmp_path, own)
    moved = tmp_path / "moved"
    shutil.move(run.checkpoint(1), moved)
    shutil.rmtree(run.folder)
    found = predicted(tmp_path / "p", own, "out.npz", "--checkpoint", moved)
    assert found["class_names"].tolist() == COLOURS and found["output"].tolist() == [[3, 3, 12], [2, 11, 2]]
    ended, = attempt(tmp_path / "e", own, "--eval-only", "--checkpoint", moved)
    assert ended.code == 0 and "accuracy 100.00%" in ended.out, ended.out + ended.err
    resumed = train(tmp_path / "r", own, "--resume", moved, "--set", "train.steps=2")
    assert json.loads((resumed.folder / "data.json").read_text()) == json.loads((moved / "data.json").read_text())
    text = (moved / "data.json").read_text()
    for damaged in (text.replace("blue", "pink"), ""):
        (moved / "data.json").write_text(damaged)
        message = error_message(attempt(tmp_path / "d", own, "--eval-only", "--checkpoint", moved), code=4)
        assert_says(message, moved / "data.json", "is damaged")
    (moved / "data.json").unlink()
    assert_says(error_message(attempt(tmp_path / "d", own, "--eval-only", "--checkpoint", moved), code=4), "has no data.json")


def test_data_json_that_is_lost(colours: dict, tmp_path: Path) -> None:
    """The run's newest checkpoint that is whole has it, too."""
    fewer = {"format": "csv", "path": write(tmp_path / "fewer.csv", "n,kind,c", "6,red,red", ",green,green")}
    own = merged(colours, {"data": {"eval": fewer}, "train": {"steps": 3}})
    run = train(tmp_path, own, "--set", "train.steps=2")
    text = (run.folder / "data.json").read_text()
    (run.folder / "data.json").unlink()
    (run.checkpoint(2) / "data.json").write_text("{}")
    ended, = attempt(tmp_path, own, "--eval-only", "--checkpoint", run.checkpoint(1))
    assert ended.code == 0 and "accuracy 100.00%" in ended.out, ended.out + ended.err
    resumed = train(tmp_path, own, "--resume", "auto")
    assert (resumed.folder / "data.json").read_text() == text


def arrays_of(folder: Path) -> dict:
    np.savez(folder / "arrays.npz", x=np.eye(4, dtype=np.float32))
    return {"format": "npz", "path": str(folder / "arrays.npz")}


def test_old_runs_have_no_data_json(colours: dict, tmp_path: Path) -> None:
    """They evaluate by `reference`, predict by data.train, and resume, as ever."""
    source = {"format": "csv", "path": colours["data"]["train"]["path"]}
    own = merged(colours, {"data": {"eval": {**source, "reference": source["path"]}, "predict": source}, "train": {"steps": 2}})
    whole = train(tmp_path / "whole", own)
    run = train(tmp_path / "run", own, "--set", "train.steps=1")
    make_old_run(run.folder)
    ended, = attempt(tmp_path / "run", own, "--eval-only")
    assert (ended.code, ended.err) == (0, "")
    assert predicted(tmp_path / "p", {**own, "output": str(run.folder)})["class_names"].tolist() == COLOURS
    shutil.copytree(run.checkpoint(1), tmp_path / "away")
    moved = {**own, "output": str(run.folder), "data": {**own["data"], "predict": arrays_of(tmp_path)}}
    assert predicted(tmp_path / "m", moved, "out.npz", "--checkpoint", tmp_path / "away")["class_names"].tolist() == COLOURS
    assert run.metrics.pop()["kind"] == "eval"
    resumed = train(tmp_path / "run", own, "--resume", "auto")
    assert not (run.folder / "data.json").exists()
    assert resumed.weights.keys() == whole.weights.keys()
    assert resumed.losses.tolist() == whole.losses.tolist()


@pytest.mark.parametrize("text", ["", "[]", '{"format": "decent-train data"}', '{"format": "decent-train data", "version": 2}'])
def test_damaged_data_json(text: str, colours: dict, tmp_path: Path) -> None:
    run = train(tmp_path, merged(colours, {"data": {"eval": colours["data"]["train"]}}))
    (run.folder / "data.json").write_text(text)
    own = merged(colours, {"data": {"eval": colours["data"]["train"]}})
    assert_says(error_message(attempt(tmp_path, own, "--eval-only")), "data.json'")


def test_data_json_that_fits_no_table(colours: dict, tmp_path: Path) -> None:
    """Each value in turn replaced by others: an error of the user's, or no matter."""
    own = merged(colours, {"data": {"eval": colours["data"]["train"]}})
    run = train(tmp_path, own)
    whole = json.loads((run.folder / "data.json").read_text())
    for name in whole["train"]["learned"]:
        for value in (None, [0, 0], ["b", "a"], -1, 99):
            damaged = json.loads(json.dumps(whole))
            damaged["train"]["learned"][name] = value
            (run.folder / "data.json").write_text(json.dumps(damaged))
            ended, = attempt(tmp_path, own, "--eval-only")
            assert ended.code in (0, 2), (name, value, ended.err)


@pytest.mark.parametrize("marker", ["NA", "nan", "?", "null", " "])
def test_marker_of_a_missing_value_is_no_class(marker: str, tmp_path: Path) -> None:
    rows = [f"{i},{i % 3}" for i in range(6)]
    source = {"format": "csv", "path": write(tmp_path / "train.csv", "a,kind", *rows, f"1,{marker}"), "y_type": "class"}
    message = refused(tmp_path / "run", settings(linear(tmp_path / "net.pt", [[1.0]] * 3), source))
    assert_says(message, "train.csv:8: column 'kind'")


# ---- pairs ----------------------------------------------------------------------------------------------------------

class Words(torch.nn.Module):
    """x [B, 3] of ids below 16 to [B, 3, 16]: each id plus one."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(16, 16)
        with torch.no_grad():
            self.table.weight.copy_(torch.eye(16).roll(1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table(x)


def test_pairs_are_read_by_the_words_and_names_of_training(tmp_path: Path) -> None:
    """Columns in another order, and the numbers of words that training gave."""
    torch.jit.script(Words()).save(str(tmp_path / "net.pt"))
    source = {"format": "pairs", "path": write(tmp_path / "train.tsv", "en\tde", "a b\tb", "a c\tc", "a b\ta"), "length": 3, "header": True}
    own = settings(tmp_path / "net.pt", source)
    write(tmp_path / "new.tsv", "de\ten", "c\tc b")
    new = {"format": "pairs", "path": str(tmp_path / "new.tsv")}
    run = train(tmp_path, merged(own, {"data": {"eval": new, "predict": new}}))
    found = predicted(tmp_path / "p", merged(own, {"output": str(run.folder), "data": {"predict": new}}))
    # a, b and c are 4, 5 and 6, the most frequent first.
    assert found["class"].tolist() == [[7, 6, 1]]
    ended = predict(tmp_path / "q", merged(own, {"output": str(run.folder), "data": {"predict": {**new, "source": "1"}}}))
    assert_says(error_message(ended), "data.predict: source is ", "in '", "data.json' it is ")


# ---- images ---------------------------------------------------------------------------------------------------------

def images(folder: Path, classes: list[str]) -> dict:
    """Class k, by its name's place in 0 .. 11, is all pixels k / 12."""
    for name in classes:
        place = folder / name
        place.mkdir(parents=True)
        for number in range(2):
            Image.fromarray(np.full((1, 12), 0, np.uint8) + 255 * (np.arange(12) == int(name)).astype(np.uint8)).save(place / f"{number}.png")
    return {"format": "images", "path": str(folder), "channels": 1}


@pytest.fixture
def numbered(tmp_path: Path) -> dict:
    torch.jit.script(Bright()).save(str(tmp_path / "net.pt"))
    return settings(tmp_path / "net.pt", images(tmp_path / "train", [str(i) for i in range(12)]))


def image_list(folder: Path, name: str, labels: list[str]) -> dict:
    return {"format": "images", "path": write(folder / name, "file,label", *(f"{label.strip()}/0.png, {label}" for label in labels))}


def test_folders_that_are_numbers_are_in_their_order(numbered: dict, tmp_path: Path) -> None:
    """A list of the same numbers, and some of the folders, mean the same; without a class it can be evaluated."""
    cases = {"list": image_list(tmp_path / "train", "list.csv", [str(i) for i in range(12)]),
             "some": images(tmp_path / "some", ["2", "10"])}
    for name, source in cases.items():
        run = train(tmp_path / name, merged(numbered, {"data": {"eval": source}}))
        assert run.evaluation["accuracy"] == 1, name
        assert_says(run.ended[0].out, "order of their values (class_order: bytewise")
    wrong = merged(numbered, {"data": {"train": {"class_order": "bytewise"}, "eval": cases["list"]}})
    assert train(tmp_path / "bytewise", wrong).evaluation["accuracy"] == pytest.approx(2 / 12), "0 and 1 alone keep their places"


def test_a_resume_keeps_the_order_of_an_old_run(numbered: dict, tmp_path: Path) -> None:
    old = merged(numbered, {"data": {"train": {"class_order": "bytewise"}}})
    run = train(tmp_path / "run", old)
    names = make_old_run(run.folder)
    assert names == sorted(names) and names[2] == "10"
    resumed = train(tmp_path / "run", numbered, "--resume", "auto", "--set", "train.steps=2")
    whole = train(tmp_path / "whole", old, "--set", "train.steps=2")
    assert resumed.losses.tolist() == whole.losses.tolist()


def test_numbers_that_are_the_same(numbered: dict, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "train" / "7", tmp_path / "train" / "07")
    assert_says(refused(tmp_path / "run", numbered), "data.train: the classes '07' and '7' are the same number", "class_order: bytewise")
    shutil.rmtree(tmp_path / "train" / "11")
    run = train(tmp_path / "bytewise", numbered, "--set", "data.train.class_order=bytewise")
    assert json.loads((run.folder / "data.json").read_text())["train"]["classes"][:2] == ["0", "07"]


def test_labels_of_lists(numbered: dict, tmp_path: Path) -> None:
    cases = {"marker": (["1", "NA", "2"], "line 3: label 'NA'"), "unknown": (["1", "12"], "line 3: label '12'")}
    for name, (labels, said) in cases.items():
        (tmp_path / "train" / "NA").mkdir(exist_ok=True)
        source = image_list(tmp_path / "train", f"{name}.csv", labels)
        (tmp_path / "train" / "NA").rmdir()
        assert_says(refused(tmp_path / name, merged(numbered, {"data": {"eval": source}})), "data.eval: ", said)
    train_list = image_list(tmp_path / "train", "train.csv", ["1", "NA", "2"])
    assert_says(refused(tmp_path / "list", merged(numbered, {"data": {"train": train_list}})), "line 3: label 'NA': expected a whole number")


def test_names_where_training_has_numbers(numbered: dict, tmp_path: Path) -> None:
    """Numbers are looked up by their values; words are refused."""
    own = merged(numbered, {"data": {"train": {**image_list(tmp_path / "train", "list.csv", [str(i) for i in range(12)]), "channels": 1}}})
    some = images(tmp_path / "some", ["2", "10"])
    assert train(tmp_path / "run", merged(own, {"data": {"eval": some}})).evaluation["accuracy"] == 1
    shutil.copytree(tmp_path / "some" / "2", tmp_path / "words" / "two")
    words = {**some, "path": str(tmp_path / "words")}
    message = refused(tmp_path / "refused", merged(own, {"data": {"eval": words}}))
    assert_says(message, "class 'two' is not in data.train, whose classes are numbers without names")


def test_arrays_of_numbers_where_names_are_numbers(tmp_path: Path) -> None:
    """Folders 1 and 2 are classes 0 and 1; whether an array's 1 is the name or the number, nothing says."""
    torch.jit.script(Bright()).save(str(tmp_path / "net.pt"))
    own = settings(tmp_path / "net.pt", images(tmp_path / "train", ["1", "2"]))
    np.savez(tmp_path / "eval.npz", x=np.zeros((2, 1, 1, 12), np.float32), y=np.array([0, 1]))
    arrays = {"format": "npz", "path": str(tmp_path / "eval.npz")}
    assert_says(refused(tmp_path / "run", merged(own, {"data": {"eval": arrays}})), "class 0 is called '1'")


# ---- keys -----------------------------------------------------------------------------------------------------------

def test_sources_take_the_keys_of_training(tmp_path: Path, colours: dict) -> None:
    """Also those that are required, and the resolved recipe says so."""
    source = {"format": "csv", "path": colours["data"]["train"]["path"]}
    run: Run = train(tmp_path, merged(colours, {"data": {"eval": source}}))
    text = (run.folder / "recipe.yaml").read_text()
    evaluated = next(line for line in text.splitlines() if line.strip().startswith("eval: {format"))
    assert_says(evaluated, "one_hot: [c]", "missing: mean", "reference: null")
    again = run_alone("--config", run.folder / "recipe.yaml", "--set", f"output={tmp_path / 'again'}")
    assert (again.code, again.err) == (0, "")
