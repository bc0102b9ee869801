"""Models and weights that a run wrote carry what it learned of its data: --checkpoint none reads by it."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import onnx
import pytest
import torch

from predictions import metadata_of, predict, predicted
from runs import Run, assert_says, attempt, error_message, merged, recipe, refused, train

ENTRY = "decent_train.data.json"
KINDS = [".pt", ".pt2", ".onnx"]
COLOURS = ["blue", "green", "red"]
# One-hot of three words, then a number whose mean, 4, stands for the missing one.
WEIGHT = [[9, 0, 0, 0.5], [0, 9, 0, 0.5], [0, 0, 9, 0.5]]
NONE = ("--checkpoint", "none")


def write(path: Path, *rows: str) -> str:
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def saved(folder: Path, kind: str) -> Path:
    """x [B, 4] to WEIGHT @ x, in that format; torch.export's with a file of its user's."""
    net = torch.nn.Linear(4, 3, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor(WEIGHT))
    path, x = folder / f"net{kind}", torch.ones(2, 4)
    if kind == ".pt":
        torch.jit.script(net).save(str(path))
    elif kind == ".onnx":
        torch.onnx.export(net, x, str(path), dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    else:
        batch = {"input": {0: torch.export.Dim("batch")}}
        torch.export.save(torch.export.export(net.train(), (x,), dynamic_shapes=batch), path, extra_files={"data.json": "the user's"})
    return path


def settings(folder: Path, kind: str) -> dict:
    """A step that changes nothing, so that the closed form of the model holds after it."""
    rows = [f"{COLOURS[i % 3]},{n},{COLOURS[i % 3]}" for i, n in enumerate(["2", "4", "6", ""])]
    source = {"format": "csv", "path": write(folder / "train.csv", "c,n,kind", *rows), "one_hot": "c", "missing": "mean"}
    return recipe(saved(folder, kind), data={"train": source, "eval": None, "batch_size": 2}, train={"steps": 1},
                  optimizer={"name": "sgd", "lr": 1e-30}, checkpoint={"every_steps": None})


def carried(path: Path) -> str | None:
    """By each format's own library."""
    if path.suffix == ".safetensors":
        return metadata_of(path).get(ENTRY)
    if path.suffix == ".onnx":
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        found = [each.value for each in model.metadata_props if each.key == ENTRY]
        assert len(found) <= 1
        return found[0] if found else None
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None and len(set(archive.namelist())) == len(archive.namelist())
    if path.suffix == ".pt2":
        files = {ENTRY: "", "data.json": ""}
        torch.export.load(path, extra_files=files)
        assert files["data.json"] == "the user's"
    else:
        files = {ENTRY: ""}
        torch.jit.load(str(path), _extra_files=files)
    text = files[ENTRY]
    return (text.decode() if isinstance(text, bytes) else text) or None


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def trained(kind: str, tmp_path: Path) -> Run:
    return train(tmp_path, settings(tmp_path, kind))


def test_what_a_run_writes_carries_data_json(kind: str, trained: Run, tmp_path: Path) -> None:
    text = (trained.folder / "data.json").read_text()
    for end in {kind, ".pt", ".safetensors"}:
        assert carried(trained.folder / f"model{end}") == text, end
        ended, = attempt(tmp_path, settings(tmp_path, kind), "--export", tmp_path / f"out{end}", *NONE, "--set", f"model.path={trained.folder / f'model{kind}'}")
        assert ended.code == 0, ended.err
        assert carried(tmp_path / f"out{end}") == text, f"exported anew: {end}"


def test_a_model_alone_reads_data_as_its_run_did(kind: str, trained: Run, tmp_path: Path) -> None:
    """Columns by name, words and means of training; the run and its data are gone."""
    own = settings(tmp_path, kind)
    new = {"format": "csv", "path": write(tmp_path / "new.csv", "kind,n,c", "red,6,red", "green,,green")}
    for part in (f"model{kind}", "model.safetensors"):
        shutil.copy(trained.folder / part, tmp_path / part)
    shutil.rmtree(trained.folder)
    (tmp_path / "train.csv").unlink()
    for keys in ({"path": str(tmp_path / f"model{kind}")}, {"weights": str(tmp_path / "model.safetensors")}):
        alone = merged(own, {"model": keys, "data": {"eval": new, "predict": new}})
        found = predicted(tmp_path / "p", alone, "out.npz", *NONE)
        assert found["class"].tolist() == [2, 1] and found["class_names"].tolist() == COLOURS
        assert found["output"].tolist() == [[3, 3, 12], [2, 11, 2]]
        ended, = attempt(tmp_path / "e", alone, "--eval-only", *NONE)
        assert ended.code == 0 and "accuracy 100.00%" in ended.out, ended.err
        pink = {**new, "path": write(tmp_path / "pink.csv", "kind,n,c", "red,6,pink")}
        message = error_message(predict(tmp_path / "q", merged(alone, {"data": {"predict": pink}}), "out.npz", *NONE))
        assert_says(message, "got 'pink'", list(keys.values())[0])


def test_other_data_takes_its_place(kind: str, trained: Run, tmp_path: Path) -> None:
    """A model that is trained on learns of its own data, and has one entry."""
    own = settings(tmp_path, kind)
    rows = [f"{word},1,{word}" for word in ("car", "bus", "van")]
    other = {"path": write(tmp_path / "other.csv", "c,n,kind", *rows)}
    again = train(tmp_path / "again", merged(own, {"model": {"path": str(trained.folder / f"model{kind}")}, "data": {"train": other}}))
    text = carried(again.folder / f"model{kind}")
    assert text == (again.folder / "data.json").read_text()
    assert json.loads(text)["train"]["classes"] == ["bus", "car", "van"]
    size = [(run.folder / f"model{kind}").stat().st_size for run in (trained, again)]
    assert abs(size[1] - size[0]) < 200, "nothing of the old entry is left"


def test_damage_is_found(kind: str, trained: Run, tmp_path: Path) -> None:
    path = trained.folder / f"model{kind}"
    raw = path.read_bytes()
    assert raw.count(b"decent-train data") == 1
    path.write_bytes(raw.replace(b"decent-train data", b"decent-train dato"))
    alone = merged(settings(tmp_path, kind), {"model": {"path": str(path)}, "data": {"eval": settings(tmp_path, kind)["data"]["train"]}})
    assert_says(error_message(attempt(tmp_path / "e", alone, "--eval-only", *NONE)), path, "damaged")


def test_a_bomb_and_numbers_that_are_none(tmp_path: Path) -> None:
    """What a file carries may come from anywhere."""
    own = settings(tmp_path, ".pt")
    run = train(tmp_path, merged(own, {"data": {"transforms": [{"normalize": {"mean": 0, "std": 1}}]}}))
    own = merged(own, {"data": {"eval": own["data"]["train"], "transforms": [{"normalize": "auto"}]}})
    with zipfile.ZipFile(run.folder / "model.pt") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    entry = next(name for name in parts if name.endswith(ENTRY))
    learned = json.loads(parts[entry])
    for kind, said in (("bomb", "bytes"), ("words", "what is kept of normalize: auto is damaged: mean is no list of numbers")):
        numbers = learned["train"]["transforms"][0]["keys"]
        numbers["mean"] = "0"
        parts[entry] = bytes(65 << 20) if kind == "bomb" else json.dumps(learned).encode()
        with zipfile.ZipFile(tmp_path / f"{kind}.pt", "w") as archive:
            for name, content in parts.items():
                archive.writestr(name, content, zipfile.ZIP_DEFLATED if name == entry else zipfile.ZIP_STORED)
        alone = merged(own, {"model": {"path": str(tmp_path / f"{kind}.pt")}})
        assert_says(error_message(attempt(tmp_path / "e", alone, "--eval-only", *NONE)), said)


def test_numbers_of_normalize(tmp_path: Path) -> None:
    """A model alone is evaluated by the mean and deviation of its training data, which is gone."""
    rows = [f"{a},{b},{'yes' if a > b else 'no'}" for a, b in [(1, 2), (4, 3), (7, 1), (2, 9), (5, 5)]]
    source = {"format": "csv", "path": write(tmp_path / "train.csv", "a,b,kind", *rows)}
    new = {"format": "csv", "path": write(tmp_path / "new.csv", "b,a,kind", "1,9,yes", "30,20,no")}
    torch.manual_seed(3)
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(tmp_path / "net.pt"))
    own = recipe(tmp_path / "net.pt", data={"train": source, "eval": new, "batch_size": 5, "transforms": [{"normalize": "auto"}]}, eval={"every_steps": 3})
    run = train(tmp_path, merged(own, {"train": {"steps": 9}}))
    said = f"loss {run.evaluation['loss']:.4f}"
    shutil.copy(run.folder / "model.pt", tmp_path / "model.pt")
    shutil.rmtree(run.folder)
    (tmp_path / "train.csv").unlink()
    ended, = attempt(tmp_path / "e", merged(own, {"model": {"path": str(tmp_path / "model.pt")}}), "--eval-only", *NONE)
    assert ended.code == 0, ended.err
    assert said in ended.out, (said, ended.out)


def test_a_model_of_another_program_carries_nothing(kind: str, tmp_path: Path) -> None:
    """As before: data.train says how data.predict is read."""
    own = settings(tmp_path, kind)
    own["data"]["predict"] = own["data"]["train"]
    assert carried(tmp_path / f"net{kind}") is None
    found = predicted(tmp_path / "p", own, "out.npz", *NONE)
    assert found["output"].tolist()[3] == [11, 2, 2]
