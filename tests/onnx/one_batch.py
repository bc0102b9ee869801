"""Training on files of other tools: one batch of random data, gradients and written files against onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import torch

from differences import Loss, weights_of
from program import run_alone
from runs import Run, recipe, train
from tensors import write_safetensors

FIXTURES = Path(__file__).resolve().parent / "fixtures"
SAMPLES = 16
CLASSES = 3
SGD = {"name": "sgd", "lr": 1.0, "momentum": 0.0, "weight_decay": 0.0}


def make_data(folder: Path, shape: tuple[int, ...]) -> tuple[Path, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((SAMPLES, *shape)).astype(np.float32)
    y = rng.integers(0, CLASSES, SAMPLES)
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "data.safetensors", {"x": x, "y": y})
    return folder / "data.safetensors", x, y


def settings(file: Path, data: Path, **changes: object) -> dict:
    """All samples in every step, and a checkpoint at the end."""
    return recipe(file, data, data={"batch_size": SAMPLES, "shuffle": False}, checkpoint={"every_steps": 1000}, **changes)


def train_and_export(folder: Path, recipe: dict) -> tuple[Run, Path]:
    run = train(folder, recipe)
    ended = run_alone("--config", folder / "recipe.yaml", "--export", folder / "trained.onnx", cwd=folder)
    assert ended.code == 0, ended.err + ended.out
    return run, folder / "trained.onnx"


def output_of(file: Path, name: str, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(file)
    return session.run([name], {session.get_inputs()[0].name: x})[0]


def check_gradients(folder: Path, file: Path, shape: tuple[int, ...], logits: str, model: dict | None = None,
                    weights: set[str] | None = None) -> None:
    """After one step of gradient descent with lr 1, start - end is the gradient of the cross entropy of `logits`, a value
    of the graph. `weights` train (all without it), and the rest is as in the file.
    """
    data, x, y = make_data(folder, shape)
    _, trained = train_and_export(folder, settings(file, data, model=model or {}, train={"steps": 1}, optimizer=SGD))
    start, end = weights_of(file), weights_of(trained)
    weights = start.keys() if weights is None else weights
    assert {name for name in start if not np.array_equal(start[name], end[name])} == set(weights)
    loss = Loss(file, logits, x, y)
    for name in weights:
        expected = loss.gradient(start, name)
        # The rounding of onnxruntime divided by h, see Loss.gradient, of gradients that are 0.01 and more.
        np.testing.assert_allclose(start[name] - end[name], expected, rtol=0, atol=1e-3 * np.abs(expected).max(),
                                   err_msg=name)


def check_training(folder: Path, file: Path, shape: tuple[int, ...], output: str, model: dict | None = None) -> Run:
    """The loss falls, and the written .onnx computes what model.pt does."""
    data, x, _ = make_data(folder, shape)
    run, trained = train_and_export(folder, settings(file, data, model=model or {}, train={"steps": 40},
                                                     optimizer={"name": "adam", "lr": 0.03}))
    assert run.losses[-1] < 0.9 * run.losses[0]
    module = torch.jit.load(str(run.folder / "model.pt"))
    with torch.no_grad():
        ours = module(torch.from_numpy(x))
    ours = ours[output] if isinstance(ours, dict) else ours
    np.testing.assert_allclose(ours.numpy(), output_of(trained, output, x), rtol=1e-4, atol=1e-5)  # float32
    return run
