#!/usr/bin/env python3
"""Decoder-only transformers as GPT-2: learned positions, layer norm first, GELU, causal attention. Where they are tied,
one matrix both embeds the ids and gives the logits.

Input x: ids [B, T], any integer dtype, T at most the context; output: logits [B, T, vocabulary], of the id that follows
each position. Initialised as GPT-2: normal with deviation 0.02, the projections that write to the residual stream
divided by sqrt(2 * layers), biases 0.

    python models/char_gpt.py gpt.pt --layers 6 --width 384 --heads 6 --context 256 --vocabulary 50257

writes one of any size.
"""

import argparse
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchscript import export


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
    def __init__(self, layers: int, width: int, heads: int, context: int, vocabulary: int = 256,
                 tied: bool = True) -> None:
        super().__init__()
        self.ids = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.ids.weight
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
        h = self.ids(x.long()) + self.positions(positions)  # [B, T, width]
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


def char_gpt() -> GPT:
    """842,496 parameters, context 128."""
    return GPT(layers=4, width=128, heads=4, context=128)


def gpt_11m() -> GPT:
    """10.9 million parameters, context 256, not tied: what docs/performance.md measures."""
    return GPT(layers=6, width=384, heads=6, context=256, tied=False)


def gpt_85m() -> GPT:
    """85.6 million parameters, the blocks of GPT-2 small, context 256, not tied."""
    return GPT(layers=12, width=768, heads=12, context=256, tied=False)


def main() -> None:
    parser = argparse.ArgumentParser(description="Exports a GPT of any size as TorchScript.")
    parser.add_argument("path", type=Path)
    for name, default, meaning in (("layers", 4, "blocks"), ("width", 128, "of the embedding"), ("heads", 4, "of attention"),
                                   ("context", 128, "longest input"), ("vocabulary", 256, "number of ids"), ("seed", 0, "")):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{meaning} (default: {default})".strip())
    sizes = vars(parser.parse_args())
    path = sizes.pop("path")
    torch.manual_seed(sizes.pop("seed"))
    model = GPT(**sizes)
    export(model, path)
    print(f"{path}: {sum(p.numel() for p in model.parameters())} parameters")


if __name__ == "__main__":
    main()
