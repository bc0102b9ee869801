"""Two small models for the 8x8 digits data set. Input x: float32 [B, 1, 8, 8] in [0, 1]; output: logits [B, 10]."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class DigitsMLP(nn.Module):
    """Two hidden layers, layer norm and GELU."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(64, 128)
        self.norm1 = nn.LayerNorm(128)
        self.fc2 = nn.Linear(128, 64)
        self.norm2 = nn.LayerNorm(64)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.flatten(x, 1)  # [B, 64]
        x = F.gelu(self.norm1(self.fc1(x)))  # [B, 128]
        x = F.gelu(self.norm2(self.fc2(x)))  # [B, 64]
        return self.head(x)


class DigitsCNN(nn.Module):
    """Three 3x3 convolutions with batch norm. The norm has the bias, so the convolutions have none."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1, stride=2, bias=False)
        self.norm2 = nn.BatchNorm2d(64)
        self.conv3 = nn.Conv2d(64, 64, 3, padding=1, bias=False)
        self.norm3 = nn.BatchNorm2d(64)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm1(self.conv1(x)))  # [B, 32, 8, 8]
        x = F.relu(self.norm2(self.conv2(x)))  # [B, 64, 4, 4]
        x = F.relu(self.norm3(self.conv3(x)))  # [B, 64, 4, 4]
        return self.head(x.mean(dim=(2, 3)))
