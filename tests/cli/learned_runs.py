"""A model whose classes can be seen in its data, for tests of what a run learns of these."""

from __future__ import annotations

import torch


class Bright(torch.nn.Module):
    """Scores that are highest for the class whose pixel is bright."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(9.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1) * self.scale
