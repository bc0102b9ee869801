"""Decoder-only transformers over bytes, as GPT-2: learned positions, layer norm first, GELU, causal attention.

Input x: bytes [B, T], any integer dtype, T at most the context; output: logits [B, T, 256], of the byte that follows
each position. Initialised as GPT-2: normal with deviation 0.02, the projections that write to the residual stream
divided by sqrt(2 * layers), biases 0.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

VOCABULARY = 256


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each [B, heads, T, width / heads]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.project = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.project(F.gelu(self.expand(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.bytes = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        self._initialise(layers)

    def _initialise(self, layers: int) -> None:
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif "norm" not in name:
                onto_residuals = name.endswith("project.weight")
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if onto_residuals else 0.02)

    def forward(self, x: Tensor) -> Tensor:
        positions = torch.arange(x.size(1), device=x.device)
        h = self.bytes(x.long()) + self.positions(positions)  # [B, T, width]
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


def char_gpt() -> GPT:
    """0.9 million parameters, context 128."""
    return GPT(layers=4, width=128, heads=4, context=128)


def gpt_11m() -> GPT:
    """10.9 million parameters, context 256."""
    return GPT(layers=6, width=384, heads=6, context=256)


def gpt_85m() -> GPT:
    """85.6 million parameters, the blocks of GPT-2 small, context 256."""
    return GPT(layers=12, width=768, heads=12, context=256)
