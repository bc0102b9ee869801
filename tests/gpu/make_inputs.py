"""Models, data and recipes of the steps that need others than the repository's: make_inputs.py FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
from tensors import write_safetensors  # noqa: E402


class Looks(nn.Module):
    """Reads an embedding at the first pixel, which is out of range in one sample."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(64, 10)
        self.words = nn.Embedding(4, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x.flatten(1)) + self.words(x.flatten(1)[:, 0].long())


class Attention(nn.Module):
    """A transformer's layer, to be traced: its shapes are computed with tensors without dimensions."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.fc = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(self.embed(x.reshape(x.shape[0], 8, 8)))
        return self.fc(h.reshape(h.shape[0] // 1, -1, h.shape[-1]).mean(1))


def bad_sample(folder: Path) -> None:
    random = np.random.default_rng(1)
    x, y = random.random((200, 1, 8, 8), np.float32), random.integers(0, 10, 200)
    x[137, 0, 0, 0] = 99
    write_safetensors(folder / "bad.safetensors", {"x": x, "y": y})
    torch.jit.script(Looks()).save(str(folder / "bad.pt"))
    recipe = {"model": {"path": "bad.pt", "device": "cuda"},
              "data": {"train": {"format": "safetensors", "path": "bad.safetensors"}, "batch_size": 4, "shuffle": False},
              "train": {"steps": 50}, "log": {"every_steps": 1}}
    (folder / "bad.yaml").write_text(json.dumps(recipe))


def traced(folder: Path) -> None:
    torch.jit.trace(Attention().train(), torch.zeros(4, 1, 8, 8), check_trace=False).save(str(folder / "traced.pt"))


def weights_only(folder: Path) -> None:
    """A recipe for weights that are made where it is run (step 10): `python make_inputs.py FOLDER MILLIONS`."""
    recipe = {"model": {"path": "weights.pt", "device": "cuda", "loss": "output"},
              "data": {"train": {"format": "safetensors", "path": "bad.safetensors"}, "batch_size": 2},
              "train": {"steps": 20}, "log": {"every_steps": 1}, "checkpoint": {"every_steps": 10}}
    (folder / "weights.yaml").write_text(json.dumps(recipe))


class Weights(nn.Module):
    def __init__(self, millions: float) -> None:
        super().__init__()
        self.parts = nn.ParameterList(nn.Parameter(torch.zeros(int(millions * 1e6 / 8))) for _ in range(8))

    def forward(self, x: Tensor) -> Tensor:
        loss = x.float().mean() * 0
        for part in self.parts:
            loss = loss + (part - 1).square().mean()
        return loss


if __name__ == "__main__":
    out = Path(sys.argv[1])
    if len(sys.argv) > 2:
        torch.jit.script(Weights(float(sys.argv[2]))).save(str(out / "weights.pt"))
    else:
        bad_sample(out)
        traced(out)
        weights_only(out)
