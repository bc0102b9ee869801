"""The models of the parity tests.

No parameter here has a true gradient of zero (such as a bias before batch norm): Adam would move it by rounding noise
alone, differently in every program. GELU instead of ReLU: its derivative has no jump, so that rounding cannot flip one.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MLP(nn.Module):
    """Classifier with layer norm. x: [B, 16], logits: [B, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(16, 64)
        self.norm1 = nn.LayerNorm(64)
        self.fc2 = nn.Linear(64, 64)
        self.norm2 = nn.LayerNorm(64)
        self.head = nn.Linear(64, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.norm1(self.fc1(x)))
        x = F.gelu(self.norm2(self.fc2(x)))
        return self.head(x)


class CNN(nn.Module):
    """Classifier with batch norm. x: [B, 1, 8, 8], logits: [B, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, stride=2, bias=False)
        self.norm2 = nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.norm1(self.conv1(x)))
        x = F.gelu(self.norm2(self.conv2(x)))
        return self.head(x.mean(dim=(2, 3)))


class Regressor(nn.Module):
    """x: [B, 16], prediction: [B, 3]."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(16, 64)
        self.fc2 = nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(torch.tanh(self.fc1(x)))


MODELS = {"mlp": MLP, "cnn": CNN, "regressor": Regressor}


def export_all(folder: Path) -> None:
    """Writes folder/<name>.pt for every model, weights from a fixed seed."""
    for name, make in MODELS.items():
        torch.manual_seed(1)
        torch.jit.script(make()).save(str(folder / f"{name}.pt"))
