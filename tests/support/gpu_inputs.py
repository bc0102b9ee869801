"""Models and data that go wrong on a GPU, or would if nobody had thought of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tensors import write_safetensors


def write_a_bad_sample(path: Path, sample: int, label: int = 0, pixel: float = 0.0) -> None:
    """200 pictures of random pixels, of which one has this label and this pixel in its corner."""
    random = np.random.default_rng(1)
    x, y = random.random((200, 1, 8, 8), np.float32), random.integers(0, 10, 200)
    x[sample, 0, 0, 0], y[sample] = pixel, label
    write_safetensors(path, {"x": x, "y": y})


def save_net(kind: str, path: Path) -> None:
    import torch
    from torch import Tensor, nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(64, 10)
            self.words = nn.Embedding(4, 10)

    class Looks(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x.flatten(1)) + self.words(x.flatten(1)[:, 0].long())

    class OnCpu(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x.flatten(1)) + torch.arange(10)

    class Shifts(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x.flatten(1)) + torch.tensor([float(i) for i in range(10)])

    class Attends(Net):
        """Its shapes are computed with constants, and 2 is one of activations, too."""

        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2)

        def forward(self, x: Tensor) -> Tensor:
            halves = 2 * x.view(x.shape[0] * 2, 4, 8)
            return self.fc(self.attention(halves, halves, halves, need_weights=False)[0].view(x.shape[0], 64))

    class Drops(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.drop, self.fc2 = nn.Linear(64, 32), nn.Dropout(0.3), nn.Linear(32, 10)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc2(self.drop(self.fc1(x.flatten(1)).tanh()))

    class Roots(Net):
        """The derivative of the root at 0 is not finite."""

        def __init__(self) -> None:
            super().__init__()
            self.root = nn.Parameter(torch.zeros(10))

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x.flatten(1)) + (self.root * self.root).sqrt()

    net = {"dropout": Drops, "root": Roots, "index": Looks, "cpu": OnCpu, "constant": Shifts, "attention": Attends}[kind]()
    is_traced = kind in ("constant", "attention")
    made = torch.jit.trace(net, torch.zeros(4, 1, 8, 8)) if is_traced else torch.jit.script(net)
    made.save(str(path))
