"""Training an exported program follows eager PyTorch, loss by loss, and its TorchScript twin bit by bit.

The small networks by default; those of torchvision, timm and transformers with DECENT_PT2_ALL=1 (minutes; the last two are
skipped where they are not installed).
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from exported import evaluate, export, load_weights, settings, train_eagerly
from networks import NETWORKS, PLAIN, images, make, vectors
from runs import assert_same_weights, assert_says, attempt, error_message, train

NAMES = list(NETWORKS) if os.environ.get("DECENT_PT2_ALL", "0") == "1" else list(PLAIN)
# Of what torch.jit.script takes: BERT and LLaMA here index shapes in ways that it does not.
SCRIPTED = ("mlp", "cnn", "bilstm", "resnet18", "mobilenet_v3_small", "efficientnet_b0", "densenet121")

# Another order of sums moves a loss by 1e-7 to 3e-7 of itself in 20 steps of fp32; a mistake in an operator or in its
# gradient by 1e-4 and more.
LOSS_TOLERANCE = 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_training_follows_eager(name: str, tmp_path: Path) -> None:
    network, model = NETWORKS[name], make(name)
    data = network.data()
    run = train(tmp_path, settings(export(model, data, tmp_path), data, network.lr))
    reference = train_eagerly(model, data, network.lr)
    np.testing.assert_allclose(run.losses, reference.losses, rtol=LOSS_TOLERANCE)
    np.testing.assert_allclose(run.evaluation["loss"], reference.evaluation, rtol=LOSS_TOLERANCE)
    assert set(run.weights) == set(model.state_dict())
    assert_buffers_follow(run.weights, model, make(name))
    np.testing.assert_allclose(evaluate(load_weights(make(name), run.weights), data), run.evaluation["loss"], rtol=1e-6)


class Flags(torch.nn.Module):
    """Bools that TorchScript would make ints of, of which ~ and an index mean something else."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x)
        chosen = ~torch.where(hidden > 0, True, False)
        columns = torch.full((16,), True).logical_and(torch.where(torch.arange(16) < 12, torch.tensor(True), False))
        hidden = hidden * chosen + hidden[:, columns].mean() + hidden * ~((hidden > 1) ^ True)
        chosen = (hidden > 0) * True
        chosen.mul_(True)
        hidden = hidden + hidden * ~chosen + hidden[:, ~((hidden[0] > 9) + False)].mean()
        return self.second(hidden.masked_fill(torch.full((16,), False), 1.0))


def test_bools_stay_bools(tmp_path: Path) -> None:
    torch.manual_seed(5)
    model, data = Flags().train(), vectors()
    run = train(tmp_path, settings(export(model, data, tmp_path), data, 0.02))
    reference = train_eagerly(model, data, 0.02)
    np.testing.assert_allclose(run.losses, reference.losses, rtol=LOSS_TOLERANCE)
    np.testing.assert_allclose(run.evaluation["loss"], reference.evaluation, rtol=LOSS_TOLERANCE)


class Views(torch.nn.Module):
    """torch.export drops this contiguous(), as it changes nothing in the memory format of the export."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Conv2d(8, 8, 3, padding=1)
        self.head = torch.nn.Linear(8 * 64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.second(self.first(x)).contiguous().view(-1, 8 * 64))


def test_strides_may_be_others_than_in_the_export(tmp_path: Path) -> None:
    """Those of convolutions, here; on a GPU also those of attention."""
    torch.manual_seed(5)
    model, data = Views().train(), images(8)
    file = export(model, data, tmp_path)
    assert "aten.contiguous" not in str(torch.export.load(file).graph)
    run = train(tmp_path, settings(file, data, 0.02, model={"memory_format": "channels_last"}))
    reference = train_eagerly(model, data, 0.02)
    np.testing.assert_allclose(run.losses, reference.losses, rtol=LOSS_TOLERANCE)


class WritesThroughViews(Views):
    """Where a copy would be written, the model would not see it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.second(self.first(x))
        hidden.view(-1, 8 * 64).mul_(0.5)
        return self.head(hidden.flatten(1))


def test_a_view_that_is_written_stays_one(tmp_path: Path) -> None:
    torch.manual_seed(5)
    model, data = WritesThroughViews().train(), images(8)
    file = export(model, data, tmp_path)
    run = train(tmp_path / "contiguous", settings(file, data, 0.02))
    reference = train_eagerly(model, data, 0.02)
    np.testing.assert_allclose(run.losses, reference.losses, rtol=LOSS_TOLERANCE)
    ended = attempt(tmp_path / "last", settings(file, data, 0.02, model={"memory_format": "channels_last"}))
    assert_says(error_message(ended), "view size is not compatible")


def assert_buffers_follow(weights: dict[str, np.ndarray], model: torch.nn.Module, start: torch.nn.Module) -> None:
    """Within 1e-4 of the way that they moved, or the rounding of what they are means of."""
    begun = dict(start.named_buffers())
    for name, buffer in model.named_buffers():
        if name not in weights:
            continue  # not of the state_dict
        error = torch.from_numpy(weights[name].copy()).double() - buffer.double()
        moved = buffer.double() - begun[name].double()
        assert error.norm() <= 1e-4 * moved.norm() + 1e-7 * error.numel() ** 0.5, name


@pytest.mark.parametrize("name", [name for name in NAMES if name in SCRIPTED])
def test_the_torchscript_twin_trains_bit_by_bit_alike(name: str, tmp_path: Path) -> None:
    network, model = NETWORKS[name], make(name)
    data = network.data()
    torch.jit.script(model).save(str(tmp_path / "model.pt"))
    runs = [train(tmp_path / file.suffix[1:], settings(file, data, network.lr))
            for file in (export(model, data, tmp_path), tmp_path / "model.pt")]
    np.testing.assert_array_equal(runs[0].losses, runs[1].losses)
    assert runs[0].evaluation["loss"] == runs[1].evaluation["loss"]
    assert_same_weights(*runs)
