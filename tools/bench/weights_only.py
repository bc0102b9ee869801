"""A model of almost nothing but weights, so that a step is mostly their update:  weights_only.py FILE.pt MILLIONS

Input x: float32 [B, 1, 8, 8]; output: logits [B, 10]. Forward reads ten weights of each parameter; backward writes
every gradient once, zeros but for those.
"""

import sys

import torch
from torch import Tensor, nn

PARAMETERS = 16


class Piece(nn.Module):
    def __init__(self, numel: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((numel,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight[:10]


class WeightsOnly(nn.Module):
    def __init__(self, numel: int) -> None:
        super().__init__()
        self.pieces = nn.ModuleList([Piece(numel // PARAMETERS) for _ in range(PARAMETERS)])

    def forward(self, x: Tensor) -> Tensor:
        logits = torch.flatten(x, 1)[:, :10]
        for piece in self.pieces:
            logits = piece(logits)
        return logits


if __name__ == "__main__":
    torch.jit.script(WeightsOnly(int(sys.argv[2]) * 1_000_000)).save(sys.argv[1])
