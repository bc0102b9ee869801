"""Networks that are exported and trained: small ones in plain PyTorch, and those of packages with random weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

WORDS, LENGTH, CLASSES, WIDTH = 32, 12, 4, 32


# ---- plain PyTorch -------------------------------------------------------------------------------------------------

def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.GELU(), nn.Linear(16, CLASSES))


class Cnn(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 16, 3, stride=2), nn.BatchNorm2d(16)
        self.dropout, self.head = nn.Dropout(dropout), nn.Linear(16, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.head(self.dropout(x.mean((2, 3))))


class Attention(nn.Module):
    def __init__(self, dropout: float, causal: bool) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.dropout, self.causal = dropout, causal

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, 4, WIDTH // 4).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self, dropout: float, causal: bool) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention(dropout, causal)
        self.norm2, self.dropout = nn.LayerNorm(WIDTH), nn.Dropout(dropout)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class Gpt(nn.Module):
    """The head's weight is the table's."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block(dropout, causal=True) for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden))


class Bert(nn.Module):
    """A classifier on its first word; places are a buffer that the state_dict does not have."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.register_buffer("positions", torch.arange(LENGTH).expand((1, -1)), persistent=False)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)
        self.blocks = nn.ModuleList([Block(dropout, causal=False) for _ in range(2)])
        self.pooler = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.norm(self.tokens(x) + self.places(self.positions[:, :x.shape[1]]))
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(torch.tanh(self.pooler(hidden[:, 0])))


class RmsNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class LlamaBlock(nn.Module):
    """Rotary places, two heads of keys for four of queries, a gated MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(), RmsNorm()
        self.q, self.k, self.v = (nn.Linear(WIDTH, size, bias=False) for size in (WIDTH, WIDTH // 2, WIDTH // 2))
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    @staticmethod
    def turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = x.shape
        hidden = self.norm1(x)
        q, k, v = (part(hidden).view(batch, length, -1, WIDTH // 4).transpose(1, 2) for part in (self.q, self.k, self.v))
        q, k = self.turn(q, cos, sin), self.turn(k, cos, sin).repeat_interleave(2, 1)
        y = F.scaled_dot_product_attention(q, k, v.repeat_interleave(2, 1), is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, length, WIDTH))
        hidden = self.norm2(x)
        return x + self.down(F.silu(self.gate(hidden)) * self.up(hidden))


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList([LlamaBlock() for _ in range(2)])
        self.norm, self.head = RmsNorm(), nn.Linear(WIDTH, WORDS, bias=False)
        self.register_buffer("rates", 10000 ** (-torch.arange(0, WIDTH // 4, 2) / (WIDTH // 4)), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            angles = torch.outer(torch.arange(x.shape[1], device=x.device).float(), self.rates).repeat(1, 2)
            cos, sin = angles.cos(), angles.sin()
        hidden = self.tokens(x)
        for block in self.blocks:
            hidden = block(hidden, cos, sin)
        return self.head(self.norm(hidden))


class BiLstm(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.tokens = nn.Embedding(WORDS, 16)
        self.lstm = nn.LSTM(16, 12, 2, batch_first=True, bidirectional=True, dropout=dropout)
        self.head = nn.Linear(24, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(self.tokens(x))[0].mean(1))


def drop_as_torchvision(y: Tensor, keep: float) -> Tensor:
    return y * y.new_empty((y.shape[0], 1)).bernoulli_(keep).div_(keep)


def drop_as_transformers(y: Tensor, keep: float) -> Tensor:
    return y.div(keep) * torch.floor(torch.rand((y.shape[0], 1), dtype=y.dtype) + keep)


def drop_in_place(y: Tensor, keep: float) -> Tensor:
    noise = keep + torch.rand((y.shape[0], 1), dtype=y.dtype)
    return y.div(keep) * noise.floor_()


class StochasticDepth(nn.Module):
    """What a block adds is left out for some samples. `drop` gives what is added, for a probability of being kept."""

    def __init__(self, drop: Callable[[Tensor, float], Tensor], keep: float = 0.5) -> None:
        super().__init__()
        self.drop = drop
        self.stem, self.head = nn.Linear(8, 16), nn.Linear(16, CLASSES)
        self.blocks = nn.ModuleList([nn.Linear(16, 16) for _ in range(3)])
        self.keep = keep

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            y = torch.relu(block(x))
            if self.training:
                y = self.drop(y, self.keep)
            x = x + y
        return self.head(x)


# ---- data ----------------------------------------------------------------------------------------------------------

Fields = dict[str, np.ndarray]
SAMPLES = 32


def vectors() -> Fields:
    rng = np.random.default_rng(2)
    return {"x": rng.standard_normal((SAMPLES, 8)).astype(np.float32), "y": rng.integers(0, CLASSES, SAMPLES)}


def images(size: int) -> Fields:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((SAMPLES, 3, size, size)).astype(np.float32)
    return {"x": x, "y": rng.integers(0, CLASSES, SAMPLES)}


def words() -> Fields:
    rng = np.random.default_rng(4)
    return {"x": rng.integers(0, WORDS, (SAMPLES, LENGTH)), "y": rng.integers(0, CLASSES, SAMPLES)}


def next_words() -> Fields:
    x = words()["x"]
    return {"x": x, "y": np.roll(x, -1, 1)}


# ---- packages ------------------------------------------------------------------------------------------------------

def without_dropout(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.Dropout) or type(module).__name__ == "StochasticDepth":
            module.p = 0.0
    return model


def torchvision(name: str, **options: object) -> nn.Module:
    models = pytest.importorskip("torchvision").models
    return without_dropout(getattr(models, name)(num_classes=CLASSES, **options))


def timm(name: str, **options: object) -> nn.Module:
    return pytest.importorskip("timm").create_model(name, num_classes=CLASSES, **options)


class Logits(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model(input_ids=x)["logits"]


def transformers(name: str, **options: object) -> nn.Module:
    package = pytest.importorskip("transformers")
    config = getattr(package, name.split("For")[0].split("LMHead")[0].removesuffix("Model") + "Config")
    return Logits(getattr(package, name)(config(vocab_size=WORDS, **options)))


SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
         "max_position_embeddings": 32}


@dataclass(frozen=True)
class Network:
    make: Callable[[], nn.Module]
    data: Callable[[], Fields]
    lr: float = 0.02


# Rounding grows by 1000 and more in 20 steps of deep networks with batch norms over few pixels: small steps there.
GENTLE = 1e-5
NETWORKS = {
    "mlp": Network(mlp, vectors),
    "cnn": Network(Cnn, partial(images, 16)),
    "gpt": Network(Gpt, next_words),
    "bert": Network(Bert, words),
    "llama": Network(Llama, next_words),
    "bilstm": Network(BiLstm, words),
    "resnet18": Network(partial(torchvision, "resnet18"), partial(images, 64), GENTLE),
    "mobilenet_v3_small": Network(partial(torchvision, "mobilenet_v3_small"), partial(images, 64), GENTLE),
    "efficientnet_b0": Network(partial(torchvision, "efficientnet_b0"), partial(images, 64), GENTLE / 50),
    "convnext_tiny": Network(partial(torchvision, "convnext_tiny"), partial(images, 64), 1e-3),
    "swin_t": Network(partial(torchvision, "swin_t"), partial(images, 64), 1e-3),
    "vit": Network(partial(torchvision, "VisionTransformer", image_size=32, patch_size=8, num_layers=2, num_heads=4,
                           hidden_dim=32, mlp_dim=64), partial(images, 32), 1e-3),
    "densenet121": Network(partial(torchvision, "densenet121"), partial(images, 64), GENTLE),
    "timm_vit": Network(partial(timm, "vit_tiny_patch16_224", img_size=32), partial(images, 32), 1e-3),
    "timm_regnet": Network(partial(timm, "regnetx_002"), partial(images, 64), GENTLE),
    "timm_mixer": Network(partial(timm, "mixer_s32_224", img_size=64), partial(images, 64), 1e-3),
    "transformers_bert": Network(partial(transformers, "BertForSequenceClassification", num_labels=CLASSES,
                                         hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **SHAPE), words),
    "transformers_llama": Network(partial(transformers, "LlamaForCausalLM", use_cache=False, **SHAPE), next_words),
    "transformers_gpt2": Network(partial(transformers, "GPT2LMHeadModel", use_cache=False, n_embd=32, n_layer=2, n_head=4,
                                         n_positions=32, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0), next_words),
}
PLAIN = ("mlp", "cnn", "gpt", "bert", "llama", "bilstm")


def make(name: str) -> nn.Module:
    """In training mode, the same each time."""
    torch.manual_seed(1)
    return NETWORKS[name].make().train()
