"""A model that reads the fields of pairs."""

from __future__ import annotations

import torch


class Translator(torch.nn.Module):
    """A bag of the source's words, and the target so far. What it says of a token depends on no padding."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(vocabulary, 8)
        self.head = torch.nn.Linear(8, vocabulary)

    def forward(self, x: torch.Tensor, x_mask: torch.Tensor, y_in: torch.Tensor, y_mask: torch.Tensor) -> torch.Tensor:
        bag = (self.words(x) * x_mask.unsqueeze(-1)).sum(1, keepdim=True)
        return self.head((bag + self.words(y_in)) * y_mask.unsqueeze(-1))
