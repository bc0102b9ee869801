"""The models of the parity tests.

No parameter here has a true gradient of zero (such as a bias before batch norm): Adam would move it by rounding noise
alone, differently in every program. GELU instead of ReLU: its derivative has no jump, so that rounding cannot flip one.
"""

import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adapted import adapted
from data import LENGTH, TOKENS, base_of, make_data
from tensors import write_safetensors


class MLP(nn.Module):
    """Classifier with layer norm. x: [B, 16], logits: [B, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(16, 64)
        self.norm1 = nn.LayerNorm(64)
        self.fc2 = nn.Linear(64, 64)
        self.norm2 = nn.LayerNorm(64)
        self.head = nn.Linear(64, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.norm1(self.fc1(x)))
        x = F.gelu(self.norm2(self.fc2(x)))
        return self.head(x)


class CNN(nn.Module):
    """Classifier with batch norm. x: [B, 1, 8, 8], logits: [B, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, stride=2, bias=False)
        self.norm2 = nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.norm1(self.conv1(x)))
        x = F.gelu(self.norm2(self.conv2(x)))
        return self.head(x.mean(dim=(2, 3)))


class Regressor(nn.Module):
    """x: [B, 16], prediction: [B, 3]."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(16, 64)
        self.fc2 = nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(torch.tanh(self.fc1(x)))


class Branches(nn.Module):
    """The sign of the batch's first number chooses the layer; no batch uses `extra`. x: [B, 16], logits: [B, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.above = nn.Linear(16, 64)
        self.below = nn.Linear(16, 64)
        self.extra = nn.Linear(16, 64)
        self.norm = nn.LayerNorm(64)
        self.head = nn.Linear(64, 5)

    def forward(self, x: Tensor) -> Tensor:
        if float(x[0, 0]) > 0:
            x = self.above(x)
        else:
            x = self.below(x)
        return self.head(F.gelu(self.norm(x)))


class Attention(nn.Module):
    """The keys have no bias: softmax would take it away, so that its gradient is 0."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project(y.transpose(1, 2).reshape(batch, length, width))


class GPT(nn.Module):
    """One block of a decoder-only transformer. x: tokens [B, T], logits: [B, T, 32]."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, 32)
        self.positions = nn.Embedding(LENGTH, 32)
        self.norm1 = nn.LayerNorm(32)
        self.attention = Attention(32, 2)
        self.norm2 = nn.LayerNorm(32)
        self.expand = nn.Linear(32, 64)
        self.project = nn.Linear(64, 32)
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, TOKENS, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h = self.tokens(x) + self.positions(torch.arange(x.size(1)))
        h = h + self.attention(self.norm1(h))
        h = h + self.project(F.gelu(self.expand(self.norm2(h))))
        return self.head(self.norm(h))


MODELS = {"mlp": MLP, "cnn": CNN, "regressor": Regressor, "branches": Branches, "gpt": GPT, "spiked": MLP}


RANK, ALPHA = 3, 4.5
# Models with adapters of their own: (layers that have one, globs of what else trains). decent-train gets the model without them.
ADAPTED = {
    "adapted-mlp": (["fc1", "fc2"], ["norm?.*", "head.*"]),
    "adapted-cnn": (["conv1", "conv2"], ["norm?.*", "head.*"]),
    "adapted-gpt": (["attention.qkv", "attention.project", "expand", "project"], ["norm*", "tokens.*", "positions.*", "head.*"]),
}


def make_model(name: str) -> nn.Module:
    """Weights from a fixed seed."""
    torch.manual_seed(1)
    model = MODELS[base_of(name)]()
    return adapted(model, ADAPTED[name][0], RANK, ALPHA) if name in ADAPTED else model


def export_all(folder: Path) -> None:
    """Writes folder/<name>.pt for every model, and what its adapters begin with."""
    for name in (*MODELS, *ADAPTED):
        model = make_model(name)
        torch.jit.script(model).save(str(folder / f"{name}.pt"))
        if name in ADAPTED:
            write_safetensors(folder / f"{name}.safetensors", {key: value.numpy() for key, value in model.state_dict().items()})


def lora_of(name: str, folder: Path) -> dict | None:
    """The recipe's model.lora."""
    if name not in ADAPTED:
        return None
    layers, others = ADAPTED[name]
    return {"match": [f"{layer}.weight" for layer in layers], "rank": RANK, "alpha": ALPHA, "train": others,
            "adapters": str(folder / f"{name}.safetensors")}


def export_onnx(name: str, folder: Path) -> None:
    """Writes folder/<name>.onnx, in eval mode: the exporter runs the model, which must not change its running means."""
    example = torch.from_numpy(make_data(name, 2)["x"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this exporter is deprecated, and what the tracer takes for constant
        torch.onnx.export(make_model(name).eval(), (example,), str(folder / f"{name}.onnx"), dynamo=False,
                          training=torch.onnx.TrainingMode.EVAL, do_constant_folding=False, opset_version=20,
                          input_names=["x"], output_names=["logits"],
                          dynamic_axes={"x": {0: "batch"}, "logits": {0: "batch"}})
