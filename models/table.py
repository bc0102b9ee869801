"""A network for tables. Input x: float32 [B, columns], normalized; output: logits [B, classes]."""

import torch
from torch import Tensor, nn


class TableMLP(nn.Module):
    """Two hidden layers with SiLU and dropout."""

    def __init__(self, columns: int, classes: int, width: int = 32, dropout: float = 0.1) -> None:
        super().__init__()
        self.fc1 = nn.Linear(columns, width)
        self.fc2 = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.dropout(torch.nn.functional.silu(self.fc1(x)))  # [B, width]
        x = self.dropout(torch.nn.functional.silu(self.fc2(x)))  # [B, width]
        return self.head(x)


def table_mlp() -> TableMLP:
    """For configs/breast_cancer.yaml."""
    return TableMLP(columns=30, classes=2)
