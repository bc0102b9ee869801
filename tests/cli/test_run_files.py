"""What a run leaves in its output folder and on the screen (CONTRACT section 4)."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from program import run_alone
from runs import DIGITS_CNN, DIGITS_MLP, Run, recipe, train
from tensors import differing

TRAIN_KEYS = {"kind", "step", "epoch", "loss", "loss_mean", "lr", "samples_per_s", "step_ms", "comm_wait_ms", "data_wait_ms"}
EVAL_KEYS = {"kind", "step", "epoch", "model", "loss", "accuracy", "samples", "consensus_distance"}
END_KEYS = {"kind", "status", "step", "wall_s"}
STEPS, BATCH_SIZE = 25, 16
PER_EPOCH = {workers: 1442 // (BATCH_SIZE * workers) for workers in (1, 2, 3)}
COSINE = {"name": "cosine_warmup", "warmup_steps": 5, "t_max": None, "eta_min": 1e-4, "warmup_decay": 0.1}


def digits(**changes) -> dict:
    base = {"data": {"batch_size": BATCH_SIZE}, "train": {"steps": STEPS}, "schedule": COSINE,
            "optimizer": {"lr": 0.01}, "eval": {"every_steps": 10}, "log": {"every_steps": 4}}
    return recipe(DIGITS_CNN, **{**base, **changes})


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """Two workers and a model with batch norm."""
    return train(tmp_path_factory.mktemp("two"), digits(), workers=2)


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Run:
    return train(tmp_path_factory.mktemp("one"), digits())


@pytest.fixture(scope="module")
def three(tmp_path_factory) -> Run:
    return train(tmp_path_factory.mktemp("three"), digits(), workers=3)


# ---- the folder ----------------------------------------------------------------------------------------------------

def test_contents_of_the_folder(run: Run) -> None:
    names = {path.name.split(".tfevents.")[0] for path in run.folder.iterdir()}
    assert names == {"recipe.yaml", "metrics.jsonl", "run.log", "run.json", "data.json", "report.html", "model.pt", "model.safetensors", "events.out"}


def test_run_json_tells_each_start(tmp_path: Path) -> None:
    """What it says is what the screen said, with the recipe's values and defaults; a resume adds a start and what has changed."""
    saved = {"every_steps": STEPS}
    run = train(tmp_path, digits(checkpoint=saved), workers=3)
    folder = run.folder
    before = json.loads((folder / "run.json").read_text())
    assert [(start["step"], start["workers"], start["changed"]) for start in before["starts"]] == [(0, 3, [])]
    said = [f"{word:<8} {text}" for word, text in before["starts"][0]["lines"]]
    assert len(said) >= 7 and set(said) <= set(log_lines(run))
    assert before["starts"][0]["phases"] == [[[0, 1, 2]]]
    assert before["facts"]["train.steps"] == str(STEPS) and before["facts"]["the device"] == "cpu"
    assert before["defaults"]["model.label_smoothing"] == "0" and before["defaults"]["optimizer.lr"] == "0.001"
    assert not [topic for topic in before["facts"] if topic.startswith(("parameter ", "buffer "))]
    train(tmp_path, digits(checkpoint=saved, optimizer={"lr": 0.002}, train={"steps": STEPS + 2}), "--resume", "auto", workers=2)
    after = json.loads((folder / "run.json").read_text())
    assert after["starts"][0] == before["starts"][0] and after["facts"]["optimizer.lr"] == "0.002"
    again = after["starts"][1]
    assert (again["step"], again["workers"], again["phases"]) == (STEPS, 2, [[[0, 1]]])
    changed = {topic: (was, is_) for topic, was, is_ in again["changed"]}
    assert changed["optimizer.lr"] == ("0.01", "0.002") and changed["train.steps"] == (str(STEPS), str(STEPS + 2))
    assert "seed" not in changed


def test_recipe_loads_again(run: Run, tmp_path: Path) -> None:
    file = run.folder / "recipe.yaml"
    ended = run_alone("--config", file, "--print-config", cwd=tmp_path)
    assert (ended.code, ended.out) == (0, file.read_text())
    first = run_alone("--config", run.folder.parent / "recipe.yaml", "--print-config", cwd=tmp_path)
    assert first.out == ended.out


def test_recipe_trains_again(run: Run, tmp_path: Path) -> None:
    again = run_alone("--config", run.folder / "recipe.yaml", "--set", f"output={tmp_path}/again", cwd=tmp_path)
    assert again.code == 0
    assert len(Run(tmp_path / "again", [again]).lines("train")) == STEPS // 4


# ---- metrics.jsonl -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["alone", "run", "three"])
def test_metrics(name: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(name)
    kinds = [(line["kind"], line["step"]) for line in run.metrics]
    assert kinds == [("train", 4), ("train", 8), ("eval", 10), ("train", 12), ("train", 16), ("train", 20),
                     ("eval", 20), ("train", 24), ("eval", 25), ("end", 25)]
    per_epoch = PER_EPOCH[len(run.ended)]
    for line in run.metrics[:-1]:
        assert line["epoch"] == line["step"] / per_epoch
        assert math.isfinite(line["loss"])


def test_train_lines(run: Run) -> None:
    workers = len(run.ended)
    wall_ms = 1e3 * run.lines("end")[0]["wall_s"]
    for line in run.lines("train"):
        assert set(line) == TRAIN_KEYS
        assert line["lr"] == pytest.approx(cosine(line["step"]), rel=1e-12)
        assert 0 <= line["data_wait_ms"] <= line["step_ms"] <= wall_ms
        assert 0 <= line["comm_wait_ms"] <= line["step_ms"]
        assert line["samples_per_s"] == pytest.approx(workers * BATCH_SIZE / line["step_ms"] * 1e3, rel=1e-9)


def cosine(t: int, lr: float = 0.01) -> float:
    u, t_max = t - 1, STEPS - COSINE["warmup_steps"]
    d, eta_min, warmup = COSINE["warmup_decay"], COSINE["eta_min"], COSINE["warmup_steps"]
    if u < warmup:
        return lr * (d + (1 - d) * u / warmup)
    return eta_min + (lr - eta_min) * (1 + math.cos(math.pi * min(u - warmup, t_max) / t_max)) / 2


def test_eval_lines(run: Run, alone: Run) -> None:
    for line in run.lines("eval"):
        assert set(line) == EVAL_KEYS
        assert line["model"] == "average"
        assert line["samples"] == 355
        assert line["accuracy"] * 355 == pytest.approx(round(line["accuracy"] * 355), abs=1e-9)
        assert line["consensus_distance"] > 0
    assert [line["consensus_distance"] for line in alone.lines("eval")] == [0, 0, 0]


def test_end_line(run: Run) -> None:
    (end,) = run.lines("end")
    assert set(end) == END_KEYS
    assert end["status"] == "completed"
    assert 0 < end["wall_s"] < 120


def test_numbers_in_full_precision(alone: Run, run: Run) -> None:
    """A loss is a float32, and written as exactly that number."""
    assert all(float(np.float32(loss)) == loss for loss in alone.losses)
    assert len(set(alone.losses)) == len(alone.losses)
    text = (run.folder / "metrics.jsonl").read_text()
    # A step's time is a whole number of nanoseconds, divided by the steps of a line; the rest are fractions.
    for key, characters in {"loss": 10, "lr": 10, "step_ms": 6, "samples_per_s": 10, "consensus_distance": 10}.items():
        values = re.findall(rf'"{key}":([^,}}]+)', text)
        assert any(len(value) > characters for value in values), f"{key}: {values}"


def test_evaluation_after_each_epoch(tmp_path: Path) -> None:
    every = recipe(data={"batch_size": 128}, train={"epochs": 5, "steps": None}, eval={"every_epochs": 2},
                   log={"every_steps": 1000})
    run = train(tmp_path, every)
    assert [(line["step"], line["epoch"]) for line in run.lines("eval")] == [(22, 2), (44, 4), (55, 5)]
    assert [line["step"] for line in run.lines("train")] == [55]  # of a run that ends before its first line


def test_no_evaluation_without_data_or_interval(tmp_path: Path) -> None:
    run = train(tmp_path / "interval", recipe())
    assert [line["kind"] for line in run.metrics] == ["train"] * 12 + ["end"]
    run = train(tmp_path / "data", recipe(data={"eval": None}, eval={"every_steps": 5}))
    assert [line["kind"] for line in run.metrics] == ["train"] * 12 + ["end"]


def test_regression_has_no_accuracy(model, data, zoo, tmp_path: Path) -> None:
    import torch

    mse = recipe(model("regressor"), data("targets"), model={"loss": "mse"}, eval={"every_steps": 100})
    run = train(tmp_path, mse, workers=2)
    assert set(run.evaluation) == EVAL_KEYS - {"accuracy"}
    fields = {name: torch.from_numpy(array) for name, array in zoo.make_data("targets").items()}
    trained = torch.jit.load(str(run.folder / "model.pt"))
    with torch.no_grad():
        loss = torch.nn.functional.mse_loss(trained(fields["x"]), fields["y"])
    assert run.evaluation["loss"] == pytest.approx(loss.item(), rel=1e-6)


def test_fewer_samples_than_workers(model, zoo, tmp_path: Path) -> None:
    """A worker without a sample of its own takes part in the evaluation all the same."""
    from tensors import write_safetensors

    few = {name: array[:2] for name, array in zoo.make_data("blob").items()}
    write_safetensors(tmp_path / "few.safetensors", few)
    write_safetensors(tmp_path / "many.safetensors", zoo.make_data("blob"))
    source = {"format": "safetensors", "path": str(tmp_path / "few.safetensors")}
    run = train(tmp_path, recipe(model("mlp"), tmp_path / "many.safetensors", data={"eval": source},
                                 eval={"every_steps": 5}), workers=3)
    assert [line["samples"] for line in run.lines("eval")] == [2, 2, 2]
    assert all(math.isfinite(line["loss"]) and line["accuracy"] in (0, 0.5, 1) for line in run.lines("eval"))


# ---- model.pt and model.safetensors --------------------------------------------------------------------------------

def test_model_files_agree(run: Run) -> None:
    import torch

    trained = torch.jit.load(str(run.folder / "model.pt"))
    assert not any(module.training for module in trained.modules())
    state = {name: tensor.detach().numpy() for name, tensor in trained.state_dict().items()}
    assert differing(state, run.weights) == []
    given = torch.jit.load(str(DIGITS_CNN))
    assert list(state) == list(given.state_dict())
    assert [name for name, parameter in trained.named_parameters() if parameter.requires_grad] == [name for name, _ in given.named_parameters()]
    # A parameter in training is a part of a bucket; its file must hold no more than itself.
    assert (run.folder / "model.pt").stat().st_size < 1.2 * DIGITS_CNN.stat().st_size + 20_000


@pytest.mark.parametrize("name", ["alone", "run", "three"])
def test_model_is_the_one_that_was_evaluated(name: str, digits_test, request: pytest.FixtureRequest) -> None:
    import torch

    run: Run = request.getfixturevalue(name)
    x, y = digits_test
    trained = torch.jit.load(str(run.folder / "model.pt"))
    with torch.no_grad():
        logits = trained(x)
    assert run.evaluation["accuracy"] == pytest.approx((logits.argmax(1) == y).double().mean().item(), abs=1e-12)
    assert run.evaluation["loss"] == pytest.approx(torch.nn.functional.cross_entropy(logits, y).item(), rel=1e-6)


@pytest.fixture(scope="module")
def digits_test():
    """The digits' test part, from the file that is compiled into the program: every fifth of each class."""
    import torch

    from program import ROOT

    raw = np.frombuffer((ROOT / "lib" / "decent" / "data" / "digits.bin").read_bytes(), np.uint8)
    images, labels = raw[: 1797 * 64].reshape(-1, 1, 8, 8), raw[1797 * 64 :]
    rows = np.sort(np.concatenate([np.flatnonzero(labels == digit)[4::5] for digit in range(10)]))
    assert len(rows) == 355
    return torch.from_numpy(images[rows].astype(np.float32) / 16), torch.from_numpy(labels[rows].astype(np.int64))


# ---- the screen and run.log ----------------------------------------------------------------------------------------

def log_lines(run: Run) -> list[str]:
    """run.log without time, level and the details (D) that only --verbose shows on the screen."""
    lines = (run.folder / "run.log").read_text().splitlines()
    matches = [re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ([A-Z]) (.*)", line) for line in lines]
    assert all(matches), lines
    assert any(match[1] == "D" for match in matches)
    return [match[2] for match in matches if match[1] != "D"]


@pytest.mark.parametrize("name", ["alone", "run", "three"])
def test_screen_is_the_log_of_rank_0(name: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(name)
    assert [e.err for e in run.ended] == [""] * len(run.ended)
    assert [e.out for e in run.ended[1:]] == [""] * (len(run.ended) - 1)
    lines = run.ended[0].out.splitlines()
    assert lines == log_lines(run)
    assert len([line for line in lines if line.startswith("step ")]) == STEPS // 4
    assert len([line for line in lines if line.startswith("eval ")]) == 3
    accuracy = f"{100 * run.evaluation['accuracy']:.2f}%"
    assert sum(accuracy in line for line in lines[-11:]) >= 2  # the evaluation and the summary


def test_quiet(tmp_path: Path) -> None:
    run = train(tmp_path, recipe(eval={"every_steps": 5}), "--quiet", workers=2)
    assert [(e.out, e.err) for e in run.ended] == [("", ""), ("", "")]
    assert sum(line.startswith("step ") for line in log_lines(run)) == 12


def test_progress_off(tmp_path: Path) -> None:
    run = train(tmp_path, recipe(log={"progress": "off"}))
    assert not re.search(r"^step ", run.ended[0].out, re.MULTILINE)
    assert sum(line.startswith("step ") for line in log_lines(run)) == 12
    assert len(run.lines("train")) == 12


def test_nothing_on_the_screen_with_progress_off_and_quiet(tmp_path: Path) -> None:
    run = train(tmp_path, recipe(log={"progress": "off"}), "--quiet")
    assert (run.ended[0].out, run.ended[0].err) == ("", "")


def test_every_line_is_one_json_object(run: Run) -> None:
    text = (run.folder / "metrics.jsonl").read_text()
    assert text.endswith("\n")
    assert all(isinstance(json.loads(line), dict) for line in text.splitlines())


def test_model_file_is_left_as_it_was(tmp_path: Path) -> None:
    before = (DIGITS_MLP.read_bytes(), DIGITS_MLP.stat().st_mtime_ns)
    train(tmp_path, recipe())
    assert (DIGITS_MLP.read_bytes(), DIGITS_MLP.stat().st_mtime_ns) == before
