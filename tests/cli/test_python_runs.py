"""decent_train.Run and compare: runs read from Python, against the files themselves, the program, PyTorch and PyYAML."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sys
import urllib.request
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas
import pytest
import torch
from safetensors.torch import load_file
from websockets.sync.client import connect

import decent_train
from decent_train import Run, TrainingError
from program import ROOT
from runs import DIGITS, DIGITS_CNN, merged, recipe
from runs import Run as OtherRun
from runs import train as train_otherwise
from scripts import ENDLESS, Script, run_script, training
from supervised import processes_of, wait_until

if TYPE_CHECKING:
    from browser import Page

# The average of a checkpoint is taken in float64, that of a run's end in float32 (docs/checkpoints.md): weights of about 1
# differ by some 1e-7, and outputs, sums of 64 to 128 products, by less than this.
ROUNDING = 1e-5
WORKERS = 2
SETTINGS = recipe(DIGITS_CNN, train={"steps": 60}, optimizer={"lr": 0.003}, eval={"every_steps": 20, "metrics": ["accuracy", "top5"]},
                  checkpoint={"every_steps": 20, "keep": 2, "keep_best": "accuracy"}, log={"every_steps": 5})


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> OtherRun:
    """A run of two workers; tests do not change it."""
    return train_otherwise(tmp_path_factory.mktemp("made"), SETTINGS, workers=WORKERS)


@pytest.fixture(scope="module")
def one(made: OtherRun) -> Run:
    return Run.open(made.folder)


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.random.default_rng(0).random((300, 1, 8, 8), np.float32)


@pytest.fixture
def copy(made: OtherRun, tmp_path: Path) -> Run:
    """One that a test may change, in another place."""
    return Run(shutil.copytree(made.folder, tmp_path / "copy"))


# ---- what is a run --------------------------------------------------------------------------------------------------

def test_what_is_no_run(made: OtherRun, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere' is no folder"):
        Run.open(tmp_path / "nowhere")
    (tmp_path / "notes").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no run: neither metrics.jsonl, run.json nor checkpoints$"):
        Run.open(tmp_path / "notes")
    with pytest.raises(FileNotFoundError, match="The folders in it that do: run$"):
        Run.open(made.folder.parent)
    with pytest.raises(FileNotFoundError, match="it is a checkpoint of the run '.*/run'"):
        Run.open(made.checkpoint(60))


def test_facts_of_a_run(one: Run, made: OtherRun) -> None:
    assert one.folder == made.folder and one.workers == WORKERS and one.status == "completed"
    assert repr(one) == f"Run('{made.folder}': completed, step 60, accuracy {made.evaluation['accuracy']:.4g}, " \
                        f"loss {made.evaluation['loss']:.4g})"
    recipe = one.recipe
    assert recipe["output"] == str(made.folder) and recipe["train"]["steps"] == 60 and recipe["optimizer"]["lr"] == 0.003
    assert recipe["data"]["train"] == {**DIGITS["train"], "limit": None, "holdout": None}


def test_workers_of_older_versions(copy: Run) -> None:
    (copy.folder / "run.json").unlink()
    assert copy.workers == WORKERS
    shutil.rmtree(copy.folder / "checkpoints")
    with pytest.raises(ValueError, match="does not say how many workers it had"):
        copy.workers


def test_checkpoints(one: Run, made: OtherRun) -> None:
    assert [each.step for each in one.checkpoints] == made.checkpoints
    for checkpoint in one.checkpoints:
        line = next(line for line in made.lines("eval") if line["step"] == checkpoint.step)
        assert checkpoint.workers == WORKERS and checkpoint.path == made.checkpoint(checkpoint.step)
        assert checkpoint.figures == {name: line[name] for name in ("loss", "accuracy", "top5")}


def test_a_checkpoint_that_is_being_removed(copy: Run) -> None:
    (copy.checkpoints[0].path / "manifest.json").unlink()
    assert len(copy.checkpoints) == len(Run(copy.folder).checkpoints) and 60 in [each.step for each in copy.checkpoints]


# ---- figures --------------------------------------------------------------------------------------------------------

def test_metrics_with_pandas(one: Run, made: OtherRun) -> None:
    table = one.metrics()
    assert isinstance(table, pandas.DataFrame) and len(table) == len(made.metrics)
    for kind in ("train", "eval", "end", "resume"):
        part, lines = one.metrics(kind), made.lines(kind)
        assert len(part) == len(lines)
        for row, line in zip(part.to_dict("records"), lines):
            assert row == line
    assert one.metrics("train")["step"].tolist() == list(range(5, 65, 5))


def test_metrics_without_pandas(one: Run, made: OtherRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert one.metrics() == made.metrics and one.metrics("eval") == made.lines("eval")


def test_lines_that_are_not_finite_or_not_whole(tmp_path: Path) -> None:
    """null is a gap in a table; a last line that is still being written is left out until it is whole."""
    file = tmp_path / "metrics.jsonl"
    first, second = {"kind": "train", "step": 1, "loss": None}, {"kind": "train", "step": 2, "loss": 0.5}
    file.write_text(json.dumps(first) + "\n" + json.dumps(second)[:20])
    run = Run(tmp_path)
    assert run.lines() == [first]
    file.write_text(json.dumps(first) + "\n" + json.dumps(second) + "\n")
    assert run.lines() == [first, second]
    assert np.isnan(run.metrics()["loss"][0]) and run.metrics()["loss"][1] == 0.5
    file.write_text(json.dumps(first) + "\n\0\0\0\n" + json.dumps(second) + "\n")
    with pytest.warns(UserWarning, match="a line cannot be read"):
        assert run.lines() == [first, second]


def test_a_run_before_its_first_line(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    run = Run(tmp_path)
    assert (run.lines(), len(run.metrics()), run.checkpoints, run.status) == ([], 0, [], "killed")


@pytest.mark.parametrize(("settings", "metric", "sign"), [
    ({"checkpoint": {"keep_best": "accuracy"}}, "accuracy", 1), ({"checkpoint": {"keep_best": "perplexity"}}, "perplexity", -1),
    ({"train": {"stop": {"metric": "top5"}}}, "top5", 1), ({}, "loss", -1)])
def test_best(settings: dict, metric: str, sign: int, copy: Run) -> None:
    """Of equal ones the latest; evaluations of other data or other checkpoints do not count."""
    values = {10: 0.25, 20: 0.5, 40: 0.5, 60: 0.25}
    lines = [{"kind": "eval", "step": step, "loss": -sign * value, "accuracy": 0.0, metric: value} for step, value in values.items()]
    lines += [{"kind": "eval", "step": 60, metric: 100.0 * sign, "source": "{}"}, {"kind": "eval", "step": 60, metric: None}]
    (copy.folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = (copy.folder / "recipe.yaml").read_text().replace("keep_best: accuracy", "keep_best: null")
    (copy.folder / "recipe.yaml").write_text(text)
    changed = {**copy.recipe, **{section: {**copy.recipe[section], **keys} for section, keys in settings.items()}}
    write_printed(copy.folder / "recipe.yaml", changed)
    best = copy.best
    step = 40 if sign > 0 else 60
    assert best is not None and (best.metric, best.value, best.step, best.figures["step"]) == (metric, values[step], step, step)
    assert (best.checkpoint is None) == (step not in [each.step for each in copy.checkpoints])


def write_printed(file: Path, recipe: dict) -> None:
    """As the program prints it: sections of keys with a value on each line; JSON is a form of YAML's values."""
    text = ""
    for key, value in recipe.items():
        lines = [f"  {name}: {json.dumps(each)}\n" for name, each in value.items()] if isinstance(value, dict) else []
        text += f"{key}:\n{''.join(lines)}" if lines else f"{key}: {json.dumps(value)}\n"
    file.write_text(text)


def test_best_of_the_program(one: Run, made: OtherRun) -> None:
    """The checkpoint that the program takes for the best one, and whose model it wrote."""
    accuracies = {line["step"]: line["accuracy"] for line in made.lines("eval")}
    best = one.best
    assert best is not None and best.value == max(accuracies.values()) and best.checkpoint is not None
    assert torch.equal(one.state_dict("best")["conv1.weight"], one.state_dict(best.checkpoint)["conv1.weight"])
    assert best.figures["top5"] == best.checkpoint.figures["top5"]


def test_the_best_by_the_loss(copy: Run) -> None:
    """Where the recipe names no metric, model("best") is that of `best`, too."""
    file = copy.folder / "recipe.yaml"
    file.write_text(file.read_text().replace("keep_best: accuracy", "keep_best: null"))
    for path in copy.folder.glob("model-best.*"):
        path.unlink()
    best = copy.best
    assert best is not None and best.metric == "loss" and best.checkpoint is not None
    assert torch.equal(copy.state_dict("best")["conv1.weight"], copy.state_dict(best.checkpoint)["conv1.weight"])


def test_best_before_the_first_evaluation(copy: Run) -> None:
    (copy.folder / "metrics.jsonl").write_text('{"kind": "train", "step": 1, "loss": 1.0}\n')
    assert copy.best is None


# ---- status ---------------------------------------------------------------------------------------------------------

def test_a_living_run(tmp_path: Path) -> None:
    with Script(tmp_path, training(tmp_path, ENDLESS, ", quiet=True"), tmp_path / "recipe.yaml") as script:
        script.wait_for(lambda: OtherRun(tmp_path / "run", []).checkpoints)
        run = Run(tmp_path / "run")
        assert run.status == "running" and "running" in repr(run)
        before = len(run.lines())
        script.wait_for(lambda: len(run.lines()) > before)
        steps = [line["step"] for line in run.lines("train")]
        assert steps == list(range(10, 10 * len(steps) + 10, 10))
        assert run.model()(torch.zeros(2, 1, 8, 8)).shape == (2, 10)  # of the newest checkpoint
        assert "report" in run.report().path.name
        assert run.status == "running"
        for process in processes_of(tmp_path / "recipe.yaml"):
            os.kill(process, signal.SIGKILL)
        wait_until(lambda: run.status == "killed", 20)


def test_a_lock_that_is_held(copy: Run) -> None:
    with (copy.folder / ".lock").open("w") as file:
        assert copy.status == "completed"
        fcntl.flock(file, fcntl.LOCK_EX)
        assert copy.status == "running"


def test_a_failed_run(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="training diverged"):
        decent_train.train(recipe(optimizer={"name": "sgd", "lr": 1e9}), output=tmp_path / "run", quiet=True)
    assert Run(tmp_path / "run").status == "failed"


# ---- the model ------------------------------------------------------------------------------------------------------

def test_model_and_weights(one: Run, made: OtherRun, images: np.ndarray) -> None:
    model = one.model()
    assert not model.training and isinstance(model, torch.nn.Module)
    theirs = torch.jit.load(str(made.folder / "model.pt"))
    x = torch.from_numpy(images)
    assert torch.equal(model(x), theirs(x))
    golden = load_file(made.folder / "model.safetensors")
    state = one.state_dict()
    assert state.keys() == golden.keys() and all(torch.equal(state[name], golden[name]) for name in golden)
    module = digits_cnn()
    module.load_state_dict(state)
    assert torch.allclose(module.eval()(x), theirs(x), rtol=0, atol=ROUNDING)


def digits_cnn() -> torch.nn.Module:
    """The module in Python that models/digits_cnn.pt was exported from."""
    import importlib.util

    specification = importlib.util.spec_from_file_location("models_digits", ROOT / "models" / "digits.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return next(value for name, value in vars(module).items() if isinstance(value, type) and "cnn" in name.lower())()


def test_model_of_a_checkpoint(one: Run, made: OtherRun) -> None:
    """The average of the replicas in its files."""
    checkpoint = one.checkpoints[0]
    replicas = [load_file(checkpoint.path / f"rank-{rank:04}.safetensors") for rank in range(WORKERS)]
    for given in (checkpoint, checkpoint.path, str(checkpoint.path)):
        state = one.state_dict(given)
        for name in [name for name in replicas[0] if name.startswith("model.")]:
            mean = sum(each[name].double() for each in replicas) / WORKERS
            assert torch.equal(state[name.removeprefix("model.")], mean.float()), name
    model = one.model(checkpoint).state_dict()
    assert all(torch.equal(model[name], tensor) for name, tensor in one.state_dict(checkpoint).items())
    assert not torch.equal(model["conv1.weight"], one.state_dict()["conv1.weight"])


def test_model_of_a_run_that_did_not_end(copy: Run) -> None:
    """Not that of an earlier end, which may still lie there."""
    lines = (copy.folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (copy.folder / "metrics.jsonl").write_text("".join(line for line in lines if '"end"' not in line))
    shutil.rmtree(copy.folder / "checkpoints" / "step-00000060")
    assert copy.status == "killed"
    newest = copy.checkpoints[-1]
    assert newest.step < 60
    assert torch.equal(copy.model().state_dict()["conv1.weight"], copy.state_dict(newest)["conv1.weight"])
    shutil.rmtree(copy.folder / "checkpoints")
    with pytest.raises(TrainingError, match="no checkpoint"):
        copy.model()


# ---- predictions ----------------------------------------------------------------------------------------------------

def test_predictions_are_the_models_outputs(one: Run, images: np.ndarray) -> None:
    """Bit for bit those of the same weights, in the same batches of eval_batch_size."""
    predictions = one.predict(images)
    model = one.model("auto")
    with torch.no_grad():
        golden = torch.cat([model(torch.from_numpy(part).clone()) for part in (images[:256], images[256:])])
        final = one.model()(torch.from_numpy(images))
    assert torch.equal(predictions["output"], golden)
    assert torch.allclose(final, golden, rtol=0, atol=ROUNDING)
    assert torch.equal(predictions["class"], golden.argmax(1)) and predictions["row"].tolist() == list(range(300))
    assert torch.allclose(predictions["probability"], golden.softmax(1).max(1).values, rtol=0, atol=1e-6)  # float32


def test_every_form_of_data(one: Run, images: np.ndarray, tmp_path: Path) -> None:
    """The same predictions each time; of all samples, whatever limit the training data has."""
    from safetensors.numpy import save_file

    few = images[:20]
    golden = one.predict(few)["output"]
    save_file({"x": few}, tmp_path / "few.safetensors")
    np.savez(tmp_path / "few.npz", x=few)
    forms = [torch.from_numpy(few), few.tolist(), {"x": few, "other": "not needed"}, tmp_path / "few.safetensors",
             str(tmp_path / "few.npz"), {"format": "npz", "path": str(tmp_path / "few.npz")}]
    for form in forms:
        assert torch.equal(one.predict(form)["output"], golden), form
    assert torch.equal(one.predict({"format": "npz", "path": str(tmp_path / "few.npz"), "limit": 7})["output"], golden[:7])
    assert not torch.equal(one.predict(few, one.checkpoints[0])["output"], golden)
    assert torch.equal(one.predict(few, "best")["output"], one.predict(few, one.best.checkpoint)["output"])


def test_predictions_of_tables(tmp_path: Path) -> None:
    """A DataFrame, columns in any order; names of classes come with them. As from the file itself."""
    source = ROOT / "configs" / "breast_cancer.yaml"
    run = decent_train.train(source, set={"train": {"epochs": 2}}, output=tmp_path / "run", quiet=True)
    file = ROOT / "configs" / "data" / "breast_cancer.csv"
    golden = run.predict(file)
    table = pandas.read_csv(file)
    assert golden["class_names"] == ["benign", "malignant"] and len(golden["output"]) == len(table) == 569
    found = run.predict(table[table.columns[::-1]])
    assert torch.equal(found["output"], golden["output"]) and found["class_names"] == golden["class_names"]


def test_data_that_cannot_be_predicted(one: Run, images: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the data has no field 'x'; it has y"):
        one.predict({"y": images})
    with pytest.raises(TypeError, match="array 'x' is not an array of numbers"):
        one.predict({"x": "text"})
    with pytest.raises(TrainingError, match="nowhere.npz"):
        one.predict(tmp_path / "nowhere.npz")
    with pytest.raises(TrainingError, match=r"conv2d.* \[\d+, 64\]"):
        one.predict(images.reshape(300, 64))
    with pytest.raises(TrainingError, match="no checkpoint 'nowhere'"):
        one.predict(images, "nowhere")


def test_evaluate(copy: Run, made: OtherRun, images: np.ndarray) -> None:
    """The line is added to the run's figures, and is none of the run's own where the data is other data."""
    line = copy.evaluate()
    assert copy.lines()[-1] == line and line["step"] == 60 and "source" not in line
    assert line["accuracy"] == made.evaluation["accuracy"] and abs(line["loss"] - made.evaluation["loss"]) < ROUNDING
    best, labels = copy.best, copy.predict(images)["class"]
    other = copy.evaluate({"x": images, "y": labels})
    assert other["accuracy"] == 1 and other["samples"] == 300 and "source" in other
    assert copy.best == best
    with pytest.raises(ValueError, match="the data has no field 'y'; it has x"):
        copy.evaluate({"x": images})


# ---- pages ----------------------------------------------------------------------------------------------------------

def test_report(one: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = one.report(tmp_path / "page.html")
    assert page.path == tmp_path / "page.html" and repr(page) == f"Page('{page.path}')"
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    page.open()
    assert opened == [page.path.as_uri()]
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    with pytest.raises(RuntimeError, match="no web browser was found"):
        page.open()
    with pytest.raises(TrainingError, match="must end in .html"):
        one.report(tmp_path / "page.txt")


def test_temporary_pages_go_with_python(one: Run, tmp_path: Path) -> None:
    ended = run_script(tmp_path, f"import decent_train\npage = decent_train.Run({str(one.folder)!r}).report()\n"
                                 "print(page.path, page.path.stat().st_size > 10000)")
    path, is_there = ended.out.split()
    assert is_there == "True" and not Path(path).parent.exists(), ended


def test_pages_as_a_notebook_shows_them(one: Run, copy: Run, page: Page, tmp_path: Path) -> None:
    """In a frame of its own, drawn, with both runs; nothing is asked of the network, and nothing is reached around it."""
    compared = decent_train.compare(one, copy.folder)
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><meta charset=utf-8><body>{compared._repr_html_()}{one.report()._repr_html_()}</body>")
    page.open(notebook.as_uri())
    assert page.console == [] and not [url for url in page.requests if url.startswith("http")]
    assert page.run("document.querySelectorAll('iframe').length") == 2
    assert page.run("document.querySelector('iframe').contentDocument") is None  # it has no access, either way
    assert page.run("document.querySelector('iframe').clientHeight") == 800
    texts = frame_texts(page)
    (both,) = [text for text in texts if "best common loss" in text.lower()]
    assert "copy" in both and len(texts) == 2
    assert all("accuracy" in text.lower() for text in texts)


def frame_texts(page: Page) -> list[str]:
    """What the frames show. No script around them can reach into them: Chromium is asked for each by itself."""
    from browser import Page as Tab

    host, port = page.socket.remote_address[:2]
    with urllib.request.urlopen(f"http://{host}:{port}/json") as answer:
        frames = [each for each in json.load(answer) if each["type"] == "iframe"]
    texts = []
    for frame in frames:
        with connect(frame["webSocketDebuggerUrl"], max_size=None, proxy=None) as socket:
            texts.append(Tab(socket).run("document.body.innerText"))
    return texts


def test_what_cannot_be_compared(one: Run, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="at least one run"):
        decent_train.compare()
    with pytest.raises(TrainingError, match="nowhere"):
        decent_train.compare(one, tmp_path / "nowhere")


# ---- models of the other formats ------------------------------------------------------------------------------------

@pytest.mark.parametrize("ending", ["onnx", "pt2"])
def test_runs_of_other_formats(ending: str, tmp_path: Path) -> None:
    """Inputs by name and all: the same functions."""
    model = ROOT / "models" / f"digits_cnn.{ending}"
    settings = merged(recipe(model), {"checkpoint": {"every_steps": 12}, "model": {"inputs": {"x": "x"} if ending == "onnx" else ["x"]}})
    run = decent_train.train(settings, output=tmp_path / "run", quiet=True)
    x = torch.rand(9, 1, 8, 8)
    assert torch.allclose(run.predict(x)["output"], run.model()(x), rtol=0, atol=ROUNDING)
    assert run.state_dict().keys() == load_file(tmp_path / "run" / "model.safetensors").keys()
