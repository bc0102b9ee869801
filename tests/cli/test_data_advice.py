"""Data of another type or layout than the model's: the message says which field, what is wrong, and a NumPy expression
that mends it, which the tests try.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from runs import assert_says, attempt, error_message, recipe, train
from tensors import write_safetensors

SAMPLES, CLASSES = 64, 10


def save(module: object, path: Path) -> Path:
    import torch

    torch.jit.script(module).save(str(path))
    return path


def convolution(folder: Path, channels: int = 3) -> Path:
    from torch import nn

    return save(nn.Sequential(nn.Conv2d(channels, 4, 3), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, CLASSES)),
                folder / "model.pt")


def linear(folder: Path, double: bool = False) -> Path:
    from torch import nn

    module = nn.Sequential(nn.Flatten(), nn.Linear(12, CLASSES))
    return save(module.double() if double else module, folder / "model.pt")


def embedding(folder: Path) -> Path:
    from torch import nn

    return save(nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(48, CLASSES)), folder / "model.pt")


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random((SAMPLES, *shape))


def bytes_of(*shape: int) -> np.ndarray:
    return (numbers(*shape) * 255).astype(np.uint8)


UINT8 = "is uint8 (the model wants float32)"
LAST = "looks as if its channels stood last (the model wants them second)"
CASES = {
    "bytes into a convolution": (convolution, bytes_of(3, 8, 8), [UINT8], "x.astype('float32') / 255"),
    "bytes into a linear layer": (linear, bytes_of(12), [UINT8], "x.astype('float32') / 255"),
    "channels last": (convolution, numbers(8, 8, 3).astype(np.float32), [LAST], "np.transpose(x, (0, 3, 1, 2))"),
    "bytes with channels last": (convolution, bytes_of(8, 8, 3), [LAST, UINT8],
                                 "np.transpose(x, (0, 3, 1, 2)).astype('float32') / 255"),
    "no channels": (lambda folder: convolution(folder, 1), numbers(8, 8).astype(np.float32),
                    ["has no dimension for the channel"], "x[:, None]"),
    "float64 into float32": (linear, numbers(12), ["is float64 (the model wants float32)"], "x.astype('float32')"),
    "float32 into float64": (lambda folder: linear(folder, double=True), numbers(12).astype(np.float32),
                             ["is float32 (the model wants float64)"], "x.astype('float64')"),
    "int64 into float32": (linear, np.ones((SAMPLES, 12), np.int64), ["is int64 (the model wants float32)"],
                           "x.astype('float32')"),
    "bytes as indices": (embedding, bytes_of(12) % 9, ["is uint8 (the model wants int64)"], "x.astype('int64')"),
    "floats as indices": (embedding, np.floor(numbers(12) * 9).astype(np.float32), ["is float32 (the model wants int64)"],
                          "x.astype('int64')"),
}


def write_data(folder: Path, x: np.ndarray) -> Path:
    y = np.arange(SAMPLES) % CLASSES
    path = folder / "data.safetensors"
    write_safetensors(path, {"x": np.ascontiguousarray(x), "y": y})
    return path


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_field_that_the_model_cannot_take(name: str, workers: int, zoo, tmp_path: Path) -> None:
    make_model, x, faults, mended = CASES[name]
    settings = recipe(make_model(tmp_path), write_data(tmp_path, x), train={"steps": 2})
    message = error_message(attempt(tmp_path, settings, workers=workers))
    assert_says(message, "model.pt", f"x {x.dtype}[", "Field 'x' " + " and ".join(faults) + ". ")
    if workers == 1:
        assert error_message(attempt(tmp_path, settings, "--dry-run")) == message
    expression = re.search(r"Store it in the data file as (.*)\n", message).group(1)
    assert expression == mended
    write_data(tmp_path, eval(expression, {"np": np, "x": x}))
    assert train(tmp_path, settings, workers=workers).lines("train")


@pytest.mark.parametrize("field", ["x", "image"])
def test_a_transform_in_place_of_another_file(field: str, tmp_path: Path) -> None:
    """Of bytes; what it says is tried, and is the same as the expression."""
    x = bytes_of(3, 8, 8)
    y = np.arange(SAMPLES) % CLASSES
    file, data = convolution(tmp_path), tmp_path / "data.safetensors"
    write_safetensors(data, {field: x, "y": y})
    settings = recipe(file, data, model={"inputs": [field]})
    message = error_message(attempt(tmp_path, settings))
    said = re.search(r"Without another file: `data.transforms: \[to_float: (\{.*\})\]`", message)
    assert said and said[1] == ("{}" if field == "x" else "{field: image}"), message
    transform = {"to_float": {} if field == "x" else {"field": field}}
    run = train(tmp_path, recipe(file, data, model={"inputs": [field]}, data={"transforms": [transform]}))
    write_safetensors(data, {field: x.astype("float32") / 255, "y": y})
    assert list(train(tmp_path / "stored", settings).losses) == list(run.losses)


@pytest.mark.parametrize("x", [bytes_of(8, 8, 3), numbers(3, 8, 8)], ids=["channels last", "float64"])
def test_no_transform_where_it_would_not_help(x: np.ndarray, tmp_path: Path) -> None:
    message = error_message(attempt(tmp_path, recipe(convolution(tmp_path), write_data(tmp_path, x))))
    assert "Store it in the data file as" in message and "to_float" not in message


def test_only_the_field_that_is_to_blame_is_named(zoo, tmp_path: Path) -> None:
    """Indices are integers and right; the other input is float64."""
    import torch
    from torch import Tensor, nn

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(9, 4)
            self.fc = nn.Linear(12, CLASSES)
            self.head = nn.Linear(4, CLASSES)

        def forward(self, token: Tensor, x: Tensor) -> Tensor:
            return self.fc(x) + self.head(self.embed(token))

    path = tmp_path / "data.safetensors"
    write_safetensors(path, {"token": np.arange(SAMPLES) % 9, "x": numbers(12), "y": np.arange(SAMPLES) % CLASSES})
    settings = recipe(save(Two(), tmp_path / "model.pt"), path, model={"inputs": ["token", "x"]})
    message = error_message(attempt(tmp_path, settings))
    assert_says(message, "Field 'x' is float64 (the model wants float32)")
    assert "Field 'token'" not in message


def test_float64_trains_in_float64(zoo, tmp_path: Path) -> None:
    """A model.double() on float64 data: one step of plain gradient descent, against PyTorch's own."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    module = nn.Linear(12, 2).double()
    x, y = numbers(12), numbers(2)
    write_safetensors(tmp_path / "data.safetensors", {"x": x, "y": y})
    settings = recipe(save(module, tmp_path / "model.pt"), tmp_path / "data.safetensors",
                      model={"loss": "mse"}, data={"batch_size": SAMPLES}, train={"steps": 1},
                      optimizer={"name": "sgd", "lr": 0.1, "momentum": 0.0})
    run = train(tmp_path, settings)
    loss = nn.functional.mse_loss(module(torch.from_numpy(x)), torch.from_numpy(y))
    loss.backward()
    for name, parameter in module.named_parameters():
        expected = (parameter - 0.1 * parameter.grad).detach().numpy()
        assert run.weights[name].dtype == np.float64
        np.testing.assert_allclose(run.weights[name], expected, rtol=1e-13)  # a few roundings of float64, 1e-16 each
    np.testing.assert_allclose(run.losses, [loss.item()], rtol=1e-13)
