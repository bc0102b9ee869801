"""Tensors of modules whose names begin with a number, as the members of an nn.Sequential have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from one_batch import CLASSES, SGD, make_data, settings
from runs import assert_says, train


class Splines(nn.Module):
    """A parameter of three dimensions that is multiplied, beside a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.bw = nn.Parameter(torch.randn(4, 3) * 0.5)
        self.register_buffer("grid", torch.linspace(-1, 1, 5).view(1, 5))

    def forward(self, x: Tensor) -> Tensor:
        return ((x.unsqueeze(-1) - self.grid).tanh().sum(-1).unsqueeze(-1) * self.bw).sum(1)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1, CLASSES, 1) + torch.randn(1, CLASSES, 1) * 0.1)
        self.bw = nn.Parameter(torch.randn(CLASSES, 2))

    def forward(self, x: Tensor) -> Tensor:
        return (x.unsqueeze(-1) * self.gain * self.bw).sum(-1)


NETWORKS = {"at the root": lambda: nn.Sequential(Splines(), nn.Tanh(), Scaled()),
            "two deep": lambda: nn.Sequential(nn.Sequential(Splines(), nn.Tanh()), nn.Sequential(Scaled()))}


@pytest.mark.parametrize("network", NETWORKS)
def test_members_of_a_sequential_keep_their_names(network: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = NETWORKS[network]()
    data, x, y = make_data(tmp_path, (4,))
    torch.onnx.export(model, (torch.from_numpy(x),), tmp_path / "m.onnx", dynamo=False, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.TRAINING, input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    run = train(tmp_path, settings(tmp_path / "m.onnx", data, train={"steps": 3}, optimizer={**SGD, "lr": 0.1}))
    assert set(run.weights) == {name for name, _ in model.named_parameters()}
    grid = next(name for name, _ in model.named_buffers())
    assert_says((run.folder / "run.log").read_text(), f"  {grid} float32[1, 5]: ")

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(y)).backward()
        optimizer.step()
    for name, parameter in model.named_parameters():
        # Three steps in float32; the sums over 16 samples may be in another order.
        np.testing.assert_allclose(run.weights[name], parameter.detach().numpy(), rtol=1e-4, atol=1e-6, err_msg=name)
