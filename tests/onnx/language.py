"""Networks on sequences: GPT, BERT, an encoder-decoder as T5, recurrent classifiers; written in plain PyTorch."""

from __future__ import annotations

import math
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CLASSES = 4
VOCABULARY = 40
LENGTH = 12


# ---- GPT -----------------------------------------------------------------------------------------------------------

class CausalAttention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(dim, 3 * dim)
        self.c_proj = nn.Linear(dim, dim)
        self.register_buffer("bias", torch.tril(torch.ones(LENGTH, LENGTH)).view(1, 1, LENGTH, LENGTH))

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.c_attn(x).split(C, dim=2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        weights = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(C // self.heads))
        weights = weights.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(weights, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class GptBlock(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(dim)
        self.attn = CausalAttention(dim, heads)
        self.ln_2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh"), nn.Linear(4 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """tokens [B, T] -> logits of the next ones [B, T, VOCABULARY]. The embedding is the head's weight."""

    def __init__(self, dim: int = 32, depth: int = 3, heads: int = 4) -> None:
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, dim)
        self.wpe = nn.Embedding(LENGTH, dim)
        self.h = nn.ModuleList(GptBlock(dim, heads) for _ in range(depth))
        self.ln_f = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, VOCABULARY, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, x: Tensor) -> Tensor:
        y = self.wte(x) + self.wpe(torch.arange(x.shape[1], device=x.device))
        for block in self.h:
            y = block(y)
        return self.lm_head(self.ln_f(y))


# ---- BERT ----------------------------------------------------------------------------------------------------------

class BertLayer(nn.Module):
    """Normalises after each sum."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.output = nn.Linear(dim, dim)
        self.norm1 = nn.LayerNorm(dim, eps=1e-12)
        self.intermediate = nn.Linear(dim, 4 * dim)
        self.dense = nn.Linear(4 * dim, dim)
        self.norm2 = nn.LayerNorm(dim, eps=1e-12)
        self.dropout = nn.Dropout(0.0)

    def split(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, x.shape[2] // self.heads).permute(0, 2, 1, 3)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1]) + mask
        context = torch.matmul(self.dropout(F.softmax(scores, dim=-1)), v)
        context = context.permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[1], x.shape[2])
        x = self.norm1(x + self.dropout(self.output(context)))
        return self.norm2(x + self.dropout(self.dense(F.gelu(self.intermediate(x)))))


class Bert(nn.Module):
    """tokens [B, T], mask [B, T] (1: a token, 0: padding) -> logits of the sentence [B, CLASSES]."""

    def __init__(self, dim: int = 32, depth: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCABULARY, dim, padding_idx=0)
        self.position_embeddings = nn.Embedding(LENGTH, dim)
        self.token_type_embeddings = nn.Embedding(2, dim)
        self.register_buffer("position_ids", torch.arange(LENGTH).unsqueeze(0))
        self.norm = nn.LayerNorm(dim, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(dim, heads) for _ in range(depth))
        self.pooler = nn.Linear(dim, dim)
        self.classifier = nn.Linear(dim, CLASSES)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        extended = (1.0 - mask[:, None, None, :].to(torch.float32)) * -10000.0
        x = self.word_embeddings(tokens) + self.position_embeddings(self.position_ids[:, :tokens.shape[1]])
        x = self.norm(x + self.token_type_embeddings(torch.zeros_like(tokens)))
        for layer in self.layers:
            x = layer(x, extended)
        return self.classifier(torch.tanh(self.pooler(x[:, 0])))


# ---- T5 ------------------------------------------------------------------------------------------------------------

class RmsNorm(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def relative_buckets(queries: int, keys: int, bidirectional: bool, buckets: int = 8, furthest: int = 16) -> Tensor:
    """T5's numbers of the distances between positions: near ones each their own, far ones by their logarithm."""
    distance = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
    result = torch.zeros_like(distance)
    if bidirectional:
        buckets = buckets // 2
        result = result + (distance > 0).to(torch.long) * buckets
        distance = torch.abs(distance)
    else:
        distance = -torch.min(distance, torch.zeros_like(distance))
    exact = buckets // 2
    log_ratio = torch.log(distance.float() / exact + 1e-6) / math.log(furthest / exact)
    far = exact + (log_ratio * (buckets - exact)).to(torch.long)
    far = torch.min(far, torch.full_like(far, buckets - 1))
    return result + torch.where(distance < exact, distance, far)


class T5Attention(nn.Module):
    """Without scale and biases; `bias` is added to the scores."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, dim, bias=False)
        self.o = nn.Linear(dim, dim, bias=False)

    def split(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, x.shape[2] // self.heads).transpose(1, 2)

    def forward(self, x: Tensor, source: Tensor, bias: Optional[Tensor]) -> Tensor:
        q, k, v = self.split(self.q(x)), self.split(self.k(source)), self.split(self.v(source))
        scores = torch.matmul(q, k.transpose(3, 2))
        if bias is not None:
            scores = scores + bias
        y = torch.matmul(F.softmax(scores.float(), dim=-1).type_as(scores), v)
        return self.o(y.transpose(1, 2).reshape(x.shape[0], x.shape[1], x.shape[2]))


class T5Block(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm1 = RmsNorm(dim)
        self.attention = T5Attention(dim, heads)
        self.norm2 = RmsNorm(dim)
        self.wi = nn.Linear(dim, 2 * dim, bias=False)
        self.wo = nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, bias)
        return x + self.wo(F.relu(self.wi(self.norm2(x))))


class T5DecoderBlock(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm0 = RmsNorm(dim)
        self.attention = T5Attention(dim, heads)
        self.norm1 = RmsNorm(dim)
        self.cross = T5Attention(dim, heads)
        self.norm2 = RmsNorm(dim)
        self.wi = nn.Linear(dim, 2 * dim, bias=False)
        self.wo = nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x: Tensor, source: Tensor, bias: Tensor) -> Tensor:
        y = self.norm0(x)
        x = x + self.attention(y, y, bias)
        x = x + self.cross(self.norm1(x), source, None)
        return x + self.wo(F.relu(self.wi(self.norm2(x))))


class T5(nn.Module):
    """source [B, S], previous [B, T] -> logits of the next tokens [B, T, VOCABULARY]. One embedding for all."""

    def __init__(self, dim: int = 32, depth: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.scale = dim ** -0.5
        self.shared = nn.Embedding(VOCABULARY, dim)
        self.encoder_bias = nn.Embedding(8, heads)
        self.decoder_bias = nn.Embedding(8, heads)
        self.encoder = nn.ModuleList(T5Block(dim, heads) for _ in range(depth))
        self.decoder = nn.ModuleList(T5DecoderBlock(dim, heads) for _ in range(depth))
        self.encoder_norm = RmsNorm(dim)
        self.decoder_norm = RmsNorm(dim)
        self.lm_head = nn.Linear(dim, VOCABULARY, bias=False)
        self.lm_head.weight = self.shared.weight

    def forward(self, source: Tensor, previous: Tensor) -> Tensor:
        S, T = source.shape[1], previous.shape[1]
        bias = self.encoder_bias(relative_buckets(S, S, True)).permute(2, 0, 1).unsqueeze(0)
        x = self.shared(source)
        for block in self.encoder:
            x = block(x, bias)
        x = self.encoder_norm(x)
        bias = self.decoder_bias(relative_buckets(T, T, False)).permute(2, 0, 1).unsqueeze(0)
        bias = bias + torch.full((T, T), -1e9).triu(1)
        y = self.shared(previous)
        for decoder_block in self.decoder:
            y = decoder_block(y, x, bias)
        return self.lm_head(self.decoder_norm(y) * self.scale)


# ---- recurrent networks --------------------------------------------------------------------------------------------

class LstmClassifier(nn.Module):
    """tokens [B, T] -> logits [B, CLASSES], from what both directions of the last layer end with."""

    def __init__(self, dim: int = 24) -> None:
        super().__init__()
        self.dim = dim
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.lstm = nn.LSTM(16, dim, num_layers=2, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(2 * dim, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        outputs, _ = self.lstm(self.embedding(x))
        return self.fc(torch.cat([outputs[:, -1, :self.dim], outputs[:, 0, self.dim:]], dim=1))


class LstmStates(LstmClassifier):
    """The same from the last states."""

    def forward(self, x: Tensor) -> Tensor:
        _, (hidden, _) = self.lstm(self.embedding(x))
        return self.fc(torch.cat([hidden[-2], hidden[-1]], dim=1))


class GruClassifier(nn.Module):
    """x [B, T, 6] -> logits [B, CLASSES], from the mean of the outputs of two layers."""

    def __init__(self, dim: int = 24) -> None:
        super().__init__()
        self.gru = nn.GRU(6, dim, num_layers=2, batch_first=True)
        self.fc = nn.Linear(dim, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        outputs, _ = self.gru(x)
        return self.fc(outputs.mean(dim=1))


class RnnClassifier(nn.Module):
    """x [B, T, 6] -> logits [B, CLASSES]; tanh, both directions, time first inside."""

    def __init__(self, dim: int = 24) -> None:
        super().__init__()
        self.rnn = nn.RNN(6, dim, bidirectional=True)
        self.fc = nn.Linear(2 * dim, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        outputs, _ = self.rnn(x.transpose(0, 1))
        return self.fc(outputs[-1])
