"""Targets whose loss is a number and means nothing: an error if the first batch shows it, else one warning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from runs import assert_says, attempt, merged, recipe, refused, train
from tensors import write_safetensors

SAMPLES, EVENTS = 24, 3


class Net(torch.nn.Module):
    """[B, 4] to [B, 3]: scores, or their logarithms of probabilities."""

    def __init__(self, log: bool) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, EVENTS)
        self.log = log

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x).log_softmax(1) if self.log else self.fc(x) + 3


def settings(folder: Path, y: np.ndarray, loss: str, log: bool = False, **changes: object) -> dict:
    folder.mkdir(exist_ok=True)
    torch.manual_seed(1)
    torch.jit.script(Net(log)).save(str(folder / "net.pt"))
    x = np.random.default_rng(1).normal(size=(len(y), 4)).astype(np.float32)
    write_safetensors(folder / "data.safetensors", {"x": x, "y": y})
    own = recipe(folder / "net.pt", folder / "data.safetensors", model={"loss": loss}, train={"steps": 6}, data={"shuffle": False, "batch_size": 4})
    return merged(own, changes)


def events(least: float, most: float, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(2).choice([least, most], (SAMPLES, EVENTS)).astype(dtype)


PROBABILITIES = np.full((SAMPLES, EVENTS), 1 / EVENTS, np.float32)
CLASSES = np.arange(SAMPLES) % EVENTS

WRONG = {
    "masks": (events(0, 255), "bce_with_logits", ["from 0 to 255", "0 to 1", "normalize: {field: y, mean: 0, std: 255}"]),
    "masks of bytes": (events(0, 255, np.uint8), "bce_with_logits", ["from 0 to 255", "to_float: {field: y}"]),
    "labels of one sign": (events(-1, 1), "bce_with_logits", ["from -1 to 1", "normalize: {field: y, mean: -1, std: 2}"]),
    "numbers": (events(0, 1.5), "bce_with_logits", ["from 0 to 1.5"]),
    "scores": (CLASSES, "nll", ["the model's output goes from", "log-probabilities", "cross_entropy"]),
    "no probabilities": (events(0, 1), "kl", ["sum to", "kl means probabilities"]),
    "below zero": (PROBABILITIES + np.array([-1, 1, 0], np.float32), "kl", ["kl means probabilities"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_first_batch_is_refused(name: str, tmp_path: Path) -> None:
    y, loss, said = WRONG[name]
    assert_says(refused(tmp_path / "run", settings(tmp_path, y, loss)), "data.eval: ", *said)
    assert_says(refused(tmp_path / "train", merged(settings(tmp_path, y, loss), {"data": {"eval": None}})), "data.train: ", *said)


@pytest.mark.parametrize("way", [["normalize", 0, 255], ["normalize", -1, 2], ["to_float"]], ids=str)
def test_the_way_out_is_one(way: list, tmp_path: Path) -> None:
    if way[0] == "to_float":
        y, transform = events(0, 255, np.uint8), {"to_float": {"field": "y"}}
    else:
        y, transform = events(way[1], way[1] + way[2]), {"normalize": {"field": "y", "mean": way[1], "std": way[2]}}
    run = train(tmp_path, settings(tmp_path, y, "bce_with_logits", data={"transforms": [transform]}))
    assert run.ended[0].err == "" and 0.3 < run.losses[-1] < 3


@pytest.mark.parametrize("workers", [1, 2])
def test_a_later_batch_is_warned_of_once(workers: int, tmp_path: Path) -> None:
    """Whichever worker has it; in training, and in evaluation in between."""
    y = events(0, 1)
    y[10:14] = 7
    own = settings(tmp_path, y, "bce_with_logits", eval={"every_steps": 2}, data={"eval_batch_size": 4})
    run = train(tmp_path, own, workers=workers)
    lines = [line for line in run.ended[0].err.splitlines() if "in a batch" in line]
    assert len(lines) == 2, run.ended[0].err
    assert_says("\n".join(sorted(lines)), "data.eval: in a batch the targets go from 0 to 7", "data.train: in a batch the targets go from 0 to 7")
    own["output"] = str(tmp_path / "none")
    ended, *_ = attempt(tmp_path, own, "--eval-only", "--checkpoint", "none", workers=workers)
    assert ended.code == 0 and ended.err.count("in a batch") == 1, ended.err


@pytest.mark.parametrize(("y", "loss", "log"), [
    (events(0, 1), "bce_with_logits", False), (events(0, 1, bool), "bce_with_logits", False), (PROBABILITIES * 0.9, "bce_with_logits", False),
    (CLASSES, "nll", True), (PROBABILITIES, "kl", False), (CLASSES, "kl", False), (events(0, 1), "cross_entropy", False)])
def test_what_is_right_is_not_doubted(y: np.ndarray, loss: str, log: bool, tmp_path: Path) -> None:
    assert train(tmp_path, settings(tmp_path, y, loss, log)).ended[0].err == ""


# ---- no target that counts -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("loss", ["cross_entropy", "focal", "nll"])
def test_a_batch_of_classes_without_weight(loss: str, tmp_path: Path) -> None:
    """There is nothing to learn: the loss is 0, and so is the gradient."""
    y = np.array([0, 0, 0, 0, 1, 2, 1, 2, 0, 0, 0, 0])
    own = settings(tmp_path, y, loss, loss == "nll", model={"loss_weights": [0, 1, 2]}, train={"steps": 3}, data={"eval": None},
                   optimizer={"name": "sgd", "lr": 0.1})
    run = train(tmp_path, own)
    assert run.losses[0] == run.losses[2] == 0 < run.losses[1]


# ---- classes that are given otherwise ------------------------------------------------------------------------------

@pytest.mark.parametrize(("y", "said"), [
    (CLASSES.astype(np.float32), "y.astype('int64') in NumPy or, of a csv source, y_type: class"),
    (CLASSES[:, None], "y[..., 0] in NumPy makes classes of them"),
    (CLASSES[:, None].astype(np.float32), "y[..., 0].astype('int64') in NumPy")])
def test_classes_by_their_values(y: np.ndarray, said: str, tmp_path: Path) -> None:
    assert_says(refused(tmp_path / "run", settings(tmp_path, y, "cross_entropy")), "The targets are whole numbers: ", said)


def test_classes_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b,c,d,kind\n" + "".join(f"1,2,3,4,{i % 3}\n" for i in range(8)))
    own = settings(tmp_path, CLASSES, "cross_entropy", data={"train": {"format": "csv", "path": str(tmp_path / "data.csv")}, "eval": None})
    assert_says(refused(tmp_path / "run", own), "y_type: class")
    own["data"]["train"]["y_type"] = "class"
    train(tmp_path / "again", own)
