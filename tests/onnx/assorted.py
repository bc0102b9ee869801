"""Networks as users write them, with the odd operator or signature."""

from __future__ import annotations

from typing import Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CLASSES = 4
FEATURES = 10
VOCABULARY = 40


class BatchNormMlp(nn.Module):
    """x [B, FEATURES] -> logits. The first linear layer has a bias that batch norm takes away again."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(FEATURES, 48)
        self.bn1 = nn.BatchNorm1d(48)
        self.fc2 = nn.Linear(48, 32, bias=False)
        self.bn2 = nn.BatchNorm1d(32, momentum=0.3)
        self.fc3 = nn.Linear(32, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.fc1(x)))
        return self.fc3(F.elu(self.bn2(self.fc2(x))))


class Juggler(nn.Module):
    """Images [B, 3, 16, 16] -> logits, by way of expand, masked_fill, einsum, pixel_shuffle, interpolate and more."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 8, 3, padding=1)
        self.queries = nn.Parameter(torch.randn(3, 8))
        self.mix = nn.Parameter(torch.randn(3, 8, 6))
        self.scale = nn.Parameter(torch.ones(8, 1, 1))
        self.register_buffer("checkers", (torch.arange(16)[:, None] + torch.arange(16)) % 2 == 0)
        self.fc = nn.Linear(18, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.tanh(self.conv1(x))
        y = F.pixel_shuffle(y, 2)
        y = F.interpolate(F.avg_pool2d(y, 2), scale_factor=0.5, mode="bilinear", align_corners=False)
        y = F.interpolate(y, scale_factor=2.0, mode="nearest")
        y = F.softplus(self.conv2(y)) * self.scale
        y = y.masked_fill(self.checkers, 0.0).clamp(max=6.0)
        cells = y.flatten(2).transpose(1, 2)
        queries = self.queries.unsqueeze(0).expand(x.shape[0], -1, -1)
        weights = torch.softmax(torch.einsum("bqc,bpc->bqp", queries, cells), dim=-1)
        pooled = torch.einsum("bqp,bpc->bqc", weights, cells)
        return self.fc(torch.einsum("bqc,qcd->bqd", pooled, self.mix).flatten(1))


class Stylist(nn.Module):
    """Images [B, 3, 16, 16] -> logits: instance norm, PReLU, leaky ReLU, reflection padding."""

    def __init__(self) -> None:
        super().__init__()
        self.pad = nn.ReflectionPad2d(1)
        self.conv1 = nn.Conv2d(3, 12, 3)
        self.norm1 = nn.InstanceNorm2d(12, affine=True)
        self.act1 = nn.PReLU(12)
        self.conv2 = nn.Conv2d(12, 16, 3, stride=2)
        self.norm2 = nn.InstanceNorm2d(16)
        self.act2 = nn.PReLU()
        self.conv3 = nn.Conv2d(16, 16, 3)
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act1(self.norm1(self.conv1(self.pad(x))))
        x = self.act2(self.norm2(self.conv2(self.pad(x))))
        x = F.leaky_relu(self.conv3(self.pad(x)), 0.2)
        return self.fc(x.mean(dim=(2, 3)))


class BagOfWords(nn.Module):
    """tokens [B, 8] -> logits."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(VOCABULARY, 24, mode="mean")
        self.fc1 = nn.Linear(24, 24)
        self.fc2 = nn.Linear(24, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(torch.sigmoid(self.fc1(self.bag(x))))


class SeveralOutputs(nn.Module):
    """x [B, FEATURES] -> features, logits, norm of the features. The second is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(FEATURES, 32)
        self.fc2 = nn.Linear(32, CLASSES)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        features = F.gelu(self.fc1(x))
        return features, self.fc2(features), features.pow(2).sum(dim=1).sqrt()


class Clicks(nn.Module):
    """As recommenders: categories [B, 3] (integers) and numbers [B, 5] (floats) -> one logit [B]."""

    def __init__(self, dim: int = 12) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(size, dim) for size in (10, 20, 30))
        self.bottom = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, dim), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(dim + 6, 24), nn.ReLU(), nn.Linear(24, 1))
        self.register_buffer("rows", torch.tensor([1, 2, 2, 3, 3, 3]))
        self.register_buffer("columns", torch.tensor([0, 0, 1, 0, 1, 2]))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        dense = self.bottom(numbers)
        vectors = [dense]
        for i, embedding in enumerate(self.embeddings):
            vectors.append(embedding(categories[:, i]))
        stacked = torch.stack(vectors, dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))[:, self.rows, self.columns]
        return self.top(torch.cat([dense, products], dim=1)).squeeze(1)


class Regressor(nn.Module):
    """x [B, FEATURES] -> two numbers [B, 2]; residual, with a norm of its own making."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(FEATURES, 32)
        self.fc2 = nn.Linear(32, 32)
        self.gain = nn.Parameter(torch.ones(32))
        self.fc3 = nn.Linear(32, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.sin(self.fc1(x))
        y = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-3) * self.gain
        return self.fc3(x + torch.relu(self.fc2(y)))


class Plain(nn.Module):
    """x [B, FEATURES] -> logits; weights as MatMul has them."""

    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Parameter(0.3 * torch.randn(FEATURES, 16))
        self.b1 = nn.Parameter(torch.zeros(16))
        self.w2 = nn.Parameter(0.3 * torch.randn(16, CLASSES))
        self.b2 = nn.Parameter(torch.zeros(CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.w1 + self.b1) @ self.w2 + self.b2
