"""An encoder-decoder transformer, layer norm first, with learned positions: from one sequence of ids to another.

Inputs, as the format `pairs` makes them: x int64 [B, S], the source; x_mask bool [B, S], true where x is no padding; y_in
int64 [B, T], the target one place later. S and T are at most the context. Output: logits [B, T, vocabulary], of the id
that follows each place of y_in. One matrix embeds the ids of both sequences and gives the logits.
"""

import math
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    """Of each place of x to the places of `other` that the mask [B, S] allows; without a mask to the earlier ones and itself."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor, other: Tensor, mask: Optional[Tensor]) -> Tensor:
        batch, length, width = x.shape
        each = width // self.heads
        q = self.q(x).view(batch, length, self.heads, each).transpose(1, 2)  # [B, heads, T, width / heads]
        k, v = self.kv(other).view(batch, other.size(1), 2, self.heads, each).permute(2, 0, 3, 1, 4).unbind(0)
        if mask is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        return self.project(y.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.expand = nn.Linear(width, 4 * width)
        self.project = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.project(F.gelu(self.expand(x)))


class EncoderBlock(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.dropout(self.attention(y, y, mask))
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class DecoderBlock(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.cross_attention = Attention(width, heads)
        self.norm3 = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, y: Tensor, encoded: Tensor, mask: Tensor) -> Tensor:
        z = self.norm1(y)
        y = y + self.dropout(self.attention(z, z, None))
        y = y + self.dropout(self.cross_attention(self.norm2(y), encoded, mask))
        return y + self.dropout(self.feed_forward(self.norm3(y)))


class Seq2Seq(nn.Module):
    def __init__(self, vocabulary: int, context: int, layers: int, width: int, heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.ids = nn.Embedding(vocabulary, width)
        self.source_positions = nn.Embedding(context, width)
        self.target_positions = nn.Embedding(context, width)
        self.encoder = nn.ModuleList([EncoderBlock(width, heads, dropout) for _ in range(layers)])
        self.encoder_norm = nn.LayerNorm(width)
        self.decoder = nn.ModuleList([DecoderBlock(width, heads, dropout) for _ in range(layers)])
        self.decoder_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.scale = math.sqrt(width)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                is_embedding = name.startswith("ids") or "positions" in name
                nn.init.normal_(parameter, std=1 / math.sqrt(width if is_embedding else parameter.size(1)))
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def embedded(self, ids: Tensor, positions: Tensor) -> Tensor:
        return self.dropout((self.ids(ids) + positions[: ids.size(1)]) * self.scale)

    def forward(self, x: Tensor, x_mask: Tensor, y_in: Tensor) -> Tensor:
        encoded = self.embedded(x, self.source_positions.weight)  # [B, S, width]
        for encode in self.encoder:
            encoded = encode(encoded, x_mask)
        encoded = self.encoder_norm(encoded)
        y = self.embedded(y_in, self.target_positions.weight)  # [B, T, width]
        for decode in self.decoder:
            y = decode(y, encoded, x_mask)
        return F.linear(self.decoder_norm(y), self.ids.weight)


def pronunciation() -> Seq2Seq:
    """For configs/pronunciation.yaml: 26 letters, 39 sounds and the 4 ids that `pairs` adds."""
    return Seq2Seq(vocabulary=69, context=16, layers=2, width=64, heads=4)
