"""--predict: what class, probability and output mean for each loss and shape."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from predictions import FORMATS, outputs_of, predict, predicted, softmax
from runs import assert_says, error_message, merged, recipe, train
from tensors import same_bits, write_safetensors

ROWS, FEATURES, CLASSES = 23, 5, 4
BATCH = 6


class Sequences(nn.Module):
    """[B, T] ids to [B, T, C]."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.words(x)


class Pixels(nn.Module):
    """[B, 5] to [B, C, 5]: the classes are in dimension 1."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(CLASSES, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x.unsqueeze(1) * self.scale


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(FEATURES, CLASSES)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.sum(1), self.fc(x)


class OwnLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(FEATURES, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x).square().mean()


def linear(*end: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, CLASSES), *end)


def settings(folder: Path, net: nn.Module, loss: str, x: np.ndarray | None = None, **changes: object) -> tuple[dict, np.ndarray]:
    """A recipe that predicts with the model file as it is; data.train is nowhere."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.jit.script(net).save(str(folder / "net.pt"))
    if x is None:
        x = np.random.default_rng(1).normal(size=(ROWS, FEATURES)).astype(np.float32)
    write_safetensors(folder / "new.safetensors", {"x": x})
    base = recipe(folder / "net.pt", folder / "gone.safetensors", model={"loss": loss}, data={
        "predict": {"format": "safetensors", "path": str(folder / "new.safetensors")}, "eval_batch_size": BATCH})
    return merged(base, changes), x


def as_it_is(folder: Path, made: tuple[dict, np.ndarray], name: str = "out.npz", workers: int = 1) -> tuple[dict, np.ndarray]:
    """What the file holds, and the outputs that PyTorch gives."""
    found = predicted(folder, made[0], name, "--checkpoint", "none", workers=workers)
    return found, outputs_of(folder / "net.pt", made[1], batch=BATCH)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(4)


@pytest.mark.parametrize("loss", ["cross_entropy", "focal", "kl"])
def test_logits(loss: str, tmp_path: Path) -> None:
    found, output = as_it_is(tmp_path, settings(tmp_path, linear(), loss))
    assert same_bits(found["output"], output) and found["class"].tolist() == output.argmax(1).tolist()
    np.testing.assert_allclose(found["probability"], softmax(output).max(1), rtol=1e-6)


def test_log_probabilities(tmp_path: Path) -> None:
    found, output = as_it_is(tmp_path, settings(tmp_path, linear(nn.LogSoftmax(1)), "nll"))
    assert same_bits(found["output"], output)
    np.testing.assert_allclose(found["probability"], np.exp(output.max(1)), rtol=1e-6)


@pytest.mark.parametrize("name", FORMATS)
def test_events(name: str, tmp_path: Path) -> None:
    """Each label by itself."""
    found, output = as_it_is(tmp_path, settings(tmp_path, linear(), "bce_with_logits"), "out" + name)
    assert same_bits(found["output"], output)
    assert found["class"].astype(np.int64).tolist() == (output > 0).astype(int).tolist()
    np.testing.assert_allclose(found["probability"], 1 / (1 + np.exp(-output.astype(np.float64))), rtol=1e-6)


@pytest.mark.parametrize("loss", ["mse", "l1", "huber"])
def test_numbers(loss: str, tmp_path: Path) -> None:
    found, output = as_it_is(tmp_path, settings(tmp_path, linear(), loss))
    assert set(found) == {"output", "row"} and same_bits(found["output"], output)


def test_numbers_in_the_units_of_the_data(tmp_path: Path) -> None:
    """normalize: auto of input and target, whose numbers the run has kept: its training data is gone by then."""
    random = np.random.default_rng(0)
    x = (random.normal(size=(60, FEATURES)) * 3 + 7).astype(np.float32)
    y = (x[:, :CLASSES] * [1, 10, 100, 1000] + 5).astype(np.float32)
    write_safetensors(tmp_path / "train.safetensors", {"x": x, "y": y})
    torch.jit.script(linear()).save(str(tmp_path / "net.pt"))
    auto = [{"normalize": "auto"}, {"normalize": {"statistics": "auto", "field": "y"}}]
    run_settings = recipe(tmp_path / "net.pt", tmp_path / "train.safetensors", model={"loss": "mse"}, train={"steps": 5},
                          data={"transforms": auto}, checkpoint={"every_steps": 5})
    run = train(tmp_path, run_settings)
    (tmp_path / "train.safetensors").unlink()
    write_safetensors(tmp_path / "new.safetensors", {"x": x[:ROWS]})
    source = {"format": "safetensors", "path": str(tmp_path / "new.safetensors")}
    found = predicted(tmp_path, merged(run_settings, {"output": str(run.folder), "data": {"predict": source}}))
    scaled = (x[:ROWS].astype(np.float64) - x.mean(0, np.float64)) / x.std(0, dtype=np.float64)
    output = outputs_of(run.folder / "model.pt", scaled.astype(np.float32))
    np.testing.assert_allclose(found["output"], output * y.std(0, dtype=np.float64) + y.mean(0, np.float64), rtol=1e-4)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("case", ["sequences", "pixels"])
def test_a_class_for_each_place(case: str, name: str, tmp_path: Path) -> None:
    if case == "sequences":
        x = np.random.default_rng(3).integers(0, 30, (ROWS, 7))
        made, dim = settings(tmp_path, Sequences(), "cross_entropy", x), 2
    else:
        made, dim = settings(tmp_path, Pixels(), "cross_entropy", model={"class_dim": 1}), 1
    found, output = as_it_is(tmp_path, made, "out" + name, workers=2)
    classes = output.argmax(dim)
    assert same_bits(found["output"].reshape(output.shape), output)
    assert found["class"].reshape(classes.shape).tolist() == classes.tolist()
    np.testing.assert_allclose(found["probability"].reshape(classes.shape), softmax(output, dim).max(dim), rtol=1e-6)


def test_which_output(tmp_path: Path) -> None:
    made = settings(tmp_path, Two(), "cross_entropy", model={"output": 1})
    found = predicted(tmp_path, made[0], "out.npz", "--checkpoint", "none")
    assert found["output"].shape == (ROWS, CLASSES)
    first = merged(made[0], {"model": {"output": 0, "loss": "mse"}})
    np.testing.assert_allclose(predicted(tmp_path, first, "out.npz", "--checkpoint", "none")["output"], made[1].sum(1), rtol=1e-5)


def test_a_model_that_ends_in_softmax(tmp_path: Path) -> None:
    """Its output is the probabilities: they are not put through a softmax once more."""
    found, output = as_it_is(tmp_path, settings(tmp_path, linear(nn.Softmax(1)), "cross_entropy"))
    assert same_bits(found["output"], output) and same_bits(found["probability"], output.max(1))
    found, output = as_it_is(tmp_path, settings(tmp_path, linear(nn.Sigmoid()), "bce_with_logits"))
    assert same_bits(found["probability"], output) and found["class"].tolist() == (output > 0.5).astype(int).tolist()


@pytest.mark.filterwarnings("ignore")  # of the exporter, which is not what is tested
@pytest.mark.parametrize(("end", "loss"), [(nn.Softmax(1), "cross_entropy"), (nn.Sigmoid(), "bce_with_logits")])
def test_an_onnx_model_that_is_trained_on_its_logits(end: nn.Module, loss: str, tmp_path: Path) -> None:
    """The output is that of model.pt and of the file, not the logits that the loss was given."""
    made, x = settings(tmp_path, linear(end), loss)
    torch.onnx.export(torch.jit.load(str(tmp_path / "net.pt")), torch.from_numpy(x), str(tmp_path / "net.onnx"), dynamo=False,
                      input_names=["x"], output_names=["scores"], dynamic_axes={"x": {0: "n"}, "scores": {0: "n"}})
    found = predicted(tmp_path, merged(made, {"model": {"path": str(tmp_path / "net.onnx")}}), "out.npz", "--checkpoint", "none")
    output = outputs_of(tmp_path / "net.pt", x, batch=BATCH)
    np.testing.assert_allclose(found["output"], output, rtol=1e-5)
    np.testing.assert_allclose(found["probability"], output.max(1) if loss == "cross_entropy" else output, rtol=1e-5)


def test_numbers_that_are_none(tmp_path: Path) -> None:
    x = np.full((3, FEATURES), np.nan, np.float32)
    for name in FORMATS:
        made = settings(tmp_path / name, linear(), "mse", x)
        found = predicted(tmp_path / name, made[0], "out" + name, "--checkpoint", "none")
        assert np.isnan(found["output"].astype(np.float32)).all() and found["output"].shape == (3, CLASSES)
    assert json.loads((tmp_path / ".jsonl" / "out.jsonl").read_text().splitlines()[0])["output"] == [None] * CLASSES
    assert (tmp_path / ".csv" / "out.csv").read_text().splitlines()[1] == "0,nan,nan,nan,nan"


@pytest.mark.parametrize("workers", [1, 2])
def test_warning_of_numbers_that_are_none(workers: int, tmp_path: Path) -> None:
    x = np.zeros((9, FEATURES), np.float32)
    x[[4, 7], 0] = [np.nan, np.inf]
    made = settings(tmp_path, linear(), "cross_entropy", x)
    ended = predict(tmp_path, made[0], "out.csv", "--checkpoint", "none", workers=workers)
    assert [e.code for e in ended] == [0] * workers
    assert_says(ended[0].err, "warning: the model's outputs for 2 samples are not finite (the first is row 4)")


def test_a_model_that_gives_only_its_loss(tmp_path: Path) -> None:
    made, _ = settings(tmp_path, OwnLoss(), "output")
    message = error_message(predict(tmp_path, made, "out.csv", "--checkpoint", "none", workers=2))
    assert_says(message, "--predict", "model.loss 'output'", "model.output")


def test_an_output_that_is_not_of_samples(tmp_path: Path) -> None:
    made, _ = settings(tmp_path, OwnLoss(), "mse")
    message = error_message(predict(tmp_path, made, "out.csv", "--checkpoint", "none"))
    assert_says(message, "data.predict", "the model's output float32[]", "which has 6 samples")
    made, _ = settings(tmp_path, linear(), "cross_entropy", model={"class_dim": 2})
    message = error_message(predict(tmp_path, made, "out.csv", "--checkpoint", "none"))
    assert_says(message, "the model's output float32[6, 4]", "model.class_dim")
