"""Operators that write into several buffers and return something else, as those of quantization-aware training do: in
training they write, in evaluation they compute the same and leave the buffers alone.
"""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from exported import BATCH, export, load_weights, loss_of, settings, steps_of
from networks import Fields, vectors
from observed import OBSERVED
from runs import train


@torch.no_grad()
def loss_on_copies(model: nn.Module, data: Fields) -> float:
    """Each batch with the buffers as they are after training."""
    x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"])
    return float(np.mean([loss_of(copy.deepcopy(model)(x[i:i + BATCH]), y[i:i + BATCH]).item()
                          for i in range(0, len(y), BATCH)]))


@pytest.mark.parametrize("name", OBSERVED)
def test_training_and_evaluation_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model, data = OBSERVED[name](), vectors()
    file = export(model, data, tmp_path / "model")
    run = train(tmp_path, settings(file, data))
    losses = steps_of(model, data, lr=0.02)
    # The same operators on the same numbers: what differs is the order of sums in the update.
    np.testing.assert_allclose(run.losses, losses, rtol=1e-4)
    np.testing.assert_allclose(run.evaluation["loss"], loss_on_copies(model, data), rtol=1e-4)
    for buffer, value in model.named_buffers():
        np.testing.assert_allclose(run.weights[buffer], value.numpy(), rtol=1e-3, atol=1e-5, err_msg=buffer)
    load_weights(model, run.weights)
