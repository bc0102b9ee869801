"""Operators that write into several buffers and return something else, as those of quantization-aware training do: in
training they write, in evaluation they compute the same and leave the buffers alone.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.ao.quantization as quantization
from torch import Tensor, nn

from exported import BATCH, export, load_weights, loss_of, settings, steps_of
from networks import Fields, vectors
from runs import train


class Quantized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.dequant(self.second(torch.relu(self.first(self.quant(x)))))


def quantized(backend: str) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.ao.quantization moves to torchao
        model = Quantized().train()
        model.qconfig = quantization.get_default_qat_qconfig(backend)
        model = quantization.prepare_qat(model)
    model(torch.from_numpy(vectors()["x"][:BATCH]))  # which gives the buffers of a channel each their size
    return model


class Observed(nn.Module):
    """An operator with two results and four buffers that it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 6), nn.Linear(6, 4)
        self.register_buffer("on", torch.ones(1, dtype=torch.long))
        for name, value in (("low", torch.tensor(-1.0)), ("high", torch.tensor(1.0)), ("scale", torch.ones(1)),
                            ("zero", torch.zeros(1, dtype=torch.int32))):
            self.register_buffer(name, value)

    def forward(self, x: Tensor) -> Tensor:
        rounded, inside = torch.ops.aten._fused_moving_avg_obs_fq_helper.default(
            self.first(x), self.on, self.on, self.low, self.high, self.scale, self.zero, 0.1, 0, 15, -1)
        return self.second(rounded * inside)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "a scale for each channel": lambda: quantized("fbgemm"),
    "one scale": lambda: quantized("qnnpack"),
    "two results": Observed,
}


@torch.no_grad()
def loss_on_copies(model: nn.Module, data: Fields) -> float:
    """Each batch with the buffers as they are after training."""
    x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"])
    return float(np.mean([loss_of(copy.deepcopy(model)(x[i:i + BATCH]), y[i:i + BATCH]).item()
                          for i in range(0, len(y), BATCH)]))


@pytest.mark.parametrize("name", MODELS)
def test_training_and_evaluation_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model, data = MODELS[name](), vectors()
    file = export(model, data, tmp_path / "model")
    run = train(tmp_path, settings(file, data))
    losses = steps_of(model, data, lr=0.02)
    # The same operators on the same numbers: what differs is the order of sums in the update.
    np.testing.assert_allclose(run.losses, losses, rtol=1e-4)
    np.testing.assert_allclose(run.evaluation["loss"], loss_on_copies(model, data), rtol=1e-4)
    for buffer, value in model.named_buffers():
        np.testing.assert_allclose(run.weights[buffer], value.numpy(), rtol=1e-3, atol=1e-5, err_msg=buffer)
    load_weights(model, run.weights)
