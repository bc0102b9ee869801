"""Models and data of the tests. Models of "blob" take x [B, 6] and give logits [B, 3]; see make_data."""

from __future__ import annotations

from pathlib import Path
from typing import Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

FEATURES, CLASSES, SAMPLES = 6, 3, 200


class Mlp(nn.Module):
    def __init__(self, outputs: int = CLASSES) -> None:
        super().__init__()
        self.fc1 = nn.Linear(FEATURES, 10)
        self.norm = nn.LayerNorm(10)
        self.fc2 = nn.Linear(10, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.norm(self.fc1(x))))


class Dropout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(FEATURES, 10)
        self.dropout = nn.Dropout(0.5)
        self.fc2 = nn.Linear(10, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.dropout(F.gelu(self.fc1(x))))


class DropoutNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(FEATURES, 10)
        self.norm = nn.BatchNorm1d(10)
        self.dropout = nn.Dropout(0.5)
        self.fc2 = nn.Linear(10, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.dropout(F.gelu(self.norm(self.fc1(x)))))


class Tied(nn.Module):
    """One parameter under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(FEATURES, FEATURES, bias=False)
        self.again = nn.Linear(FEATURES, FEATURES)
        self.again.weight = self.embed.weight
        self.head = nn.Linear(FEATURES, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.gelu(self.again(F.gelu(self.embed(x)))))


class SharedStorage(Tied):
    """Two parameters on the same memory, which PyTorch takes for two."""

    def __init__(self) -> None:
        super().__init__()
        self.again.weight = nn.Parameter(self.embed.weight.data)


class BufferOverlap(Mlp):
    """A buffer that looks at the memory of a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("first_row", self.fc1.weight.data[0])


class Unused(Mlp):
    """`extra` takes part in no step."""

    def __init__(self) -> None:
        super().__init__()
        self.extra = nn.Linear(4, 4)


class Alternating(nn.Module):
    """Every other training step uses `odd`, the others `even`."""

    def __init__(self) -> None:
        super().__init__()
        self.even = nn.Linear(FEATURES, 10)
        self.odd = nn.Linear(FEATURES, 10)
        self.head = nn.Linear(10, CLASSES)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.steps += 1
        if int(self.steps) % 2 == 0:
            return self.head(F.gelu(self.even(x)))
        return self.head(F.gelu(self.odd(x)))


class Branching(nn.Module):
    """The sign of the batch's first number chooses the branch: another one on each worker and in each step."""

    def __init__(self) -> None:
        super().__init__()
        self.above = nn.Linear(FEATURES, 10)
        self.below = nn.Linear(FEATURES, 10)
        self.head = nn.Linear(10, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        if float(x[0, 0]) > 0:
            return self.head(F.gelu(self.above(x)))
        return self.head(F.gelu(self.below(x)))


class Recurrent(nn.Module):
    """An LSTM keeps its weights in a list besides its parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(FEATURES, 8, batch_first=True)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        hidden, _ = self.lstm(torch.stack([x, -x], dim=1))
        return self.head(hidden[:, 1])


class ExpandedBuffer(Mlp):
    """A buffer whose elements are all the same memory, as broadcasting makes them. Nothing writes to it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.full((1,), 0.5).expand(CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * self.fc2(F.gelu(self.norm(self.fc1(x))))


class ComplexBuffer(Mlp):
    """As rotary position embeddings have."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rotations", torch.polar(torch.ones(CLASSES), torch.arange(CLASSES) * 0.1))

    def forward(self, x: Tensor) -> Tensor:
        return self.rotations.real * self.fc2(F.gelu(self.norm(self.fc1(x))))


class ReplacedBuffers(Mlp):
    """Puts new tensors in the place of its buffers, where batch norm writes into its own."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(FEATURES))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        shift = self.mean
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean(dim=0)
            self.count = self.count + 1
        return self.fc2(F.gelu(self.norm(self.fc1(x - shift))))


class GrowingBuffer(Mlp):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(0))

    def forward(self, x: Tensor) -> Tensor:
        self.seen = torch.cat([self.seen, x[0]])
        return self.fc2(F.gelu(self.norm(self.fc1(x))))


class Stopped(nn.Module):
    """Uses its second weight also without a gradient, in a way that backward needs after that weight's own gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(FEATURES, 10)
        self.fc2 = nn.Linear(10, 10, bias=False)
        self.head = nn.Linear(10, CLASSES)

    def stopped(self, weight: Tensor) -> Tensor:
        return weight.detach()

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.linear(F.gelu(self.fc1(x)), self.stopped(self.fc2.weight))
        return self.head(self.fc2(F.gelu(hidden)))


class StoppedByData(Stopped):
    def stopped(self, weight: Tensor) -> Tensor:
        return weight.data


class StoppedByCopy(Stopped):
    """The same function of its own copy, which no update can touch."""

    def stopped(self, weight: Tensor) -> Tensor:
        return weight.detach().clone()


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(FEATURES, 10)
        self.right = nn.Linear(4, 10)
        self.head = nn.Linear(10, CLASSES)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.head(F.gelu(self.left(left) - self.right(right)))


class Conv(nn.Module):
    """On images [B, 2, 5, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.gelu(self.conv(x)).mean(dim=(2, 3)))


class Masked(nn.Module):
    """Buffers at the end of what their types hold, which stay, and running statistics, which differ by worker."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(FEATURES, FEATURES * FEATURES)
        self.norm = nn.BatchNorm1d(FEATURES)
        self.head = nn.Linear(FEATURES, CLASSES)
        above = torch.ones(FEATURES, FEATURES).triu(1).bool()
        none = torch.zeros(FEATURES, FEATURES)
        self.register_buffer("lowest", none.masked_fill(above, torch.finfo(torch.float32).min))
        self.register_buffer("infinite", none.masked_fill(above, -torch.inf))
        self.wall = nn.Parameter(self.infinite.clone(), requires_grad=False)
        self.register_buffer("half16", torch.full((FEATURES,), 40000.0, dtype=torch.float16))
        self.register_buffer("double64", torch.full((), torch.finfo(torch.float64).min, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.mix(x).view(-1, x.size(1), x.size(1))
        attention = torch.softmax(scores + self.lowest, -1) + torch.softmax(scores + self.infinite + self.wall, -1)
        scale = (self.half16.float() / 40000.0) * torch.exp(self.double64).float().add(1.0)
        return self.head(self.norm((attention @ x.unsqueeze(-1)).squeeze(-1)) * scale)


class OverflowingBuffer(Mlp):
    """A step of training makes an infinity of a buffer that the output does not depend on."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.tensor([1.0, -torch.inf, 3e38]))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.seen.mul_(10.0)
        return self.fc2(F.gelu(self.norm(self.fc1(x))))


class LostWeight(Mlp):
    """NaN in the file."""

    def __init__(self) -> None:
        super().__init__()
        with torch.no_grad():
            self.fc2.bias[1] = torch.nan


class TwoOutputs(Mlp):
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        y = self.fc2(F.gelu(self.norm(self.fc1(x))))
        return y, y


def frozen_first_layer() -> nn.Module:
    model = Mlp()
    model.fc1.requires_grad_(False)
    return model


MODELS = {
    "mlp": Mlp,
    "mlp64": lambda: Mlp().double(),
    "regressor": lambda: Mlp(outputs=2),
    "dropout": Dropout,
    "dropout_norm": DropoutNorm,
    "tied64": lambda: Tied().double(),
    "tied": Tied,
    "shared_storage": SharedStorage,
    "buffer_overlap": BufferOverlap,
    "unused": Unused,
    "alternating64": lambda: Alternating().double(),
    "branching64": lambda: Branching().double(),
    "recurrent64": lambda: Recurrent().double(),
    "expanded_buffer": ExpandedBuffer,
    "replaced_buffers": ReplacedBuffers,
    "complex_buffer": ComplexBuffer,
    "growing_buffer": GrowingBuffer,
    "stopped": Stopped,
    "stopped_by_data": StoppedByData,
    "stopped_by_copy": StoppedByCopy,
    "two_inputs64": lambda: TwoInputs().double(),
    "masked": Masked,
    "overflowing_buffer": OverflowingBuffer,
    "lost_weight": LostWeight,
    "conv": Conv,
    "conv64": lambda: Conv().double(),
    "conv_last64": lambda: Conv().double().to(memory_format=torch.channels_last),
    "two_outputs": TwoOutputs,
    "frozen_layer": frozen_first_layer,
    "all_frozen": lambda: Mlp().requires_grad_(False),
}


def make_model(name: str) -> nn.Module:
    torch.manual_seed(3)
    return MODELS[name]()


def make_data(name: str) -> dict[str, np.ndarray]:
    """Data sets by name; ...64 are the same in float64, for models that train in it."""
    rng = np.random.default_rng(5)
    kind, real = (name.removesuffix("64"), np.float64) if name.endswith("64") else (name, np.float32)
    y = rng.integers(CLASSES, size=SAMPLES)
    x = rng.normal(size=(SAMPLES, FEATURES)) + rng.normal(size=(CLASSES, FEATURES))[y]
    if kind == "blob":
        return {"x": x.astype(real), "y": y.astype(np.int64)}
    if kind == "targets":
        return {"x": x.astype(real), "y": np.tanh(x[:, :2] - x[:, 2:4]).astype(real)}
    if kind == "pairs":
        return {"left": x.astype(real), "right": rng.normal(size=(SAMPLES, 4)).astype(real), "y": y.astype(np.int64)}
    if kind == "images":
        images = rng.normal(size=(SAMPLES, 2, 5, 5)) + rng.normal(size=(CLASSES, 2, 1, 1))[y]
        return {"x": images.astype(real), "y": y.astype(np.int64)}
    if kind == "signs":  # with two workers and batches of 8: the sign differs between workers and between steps
        i = np.arange(SAMPLES)
        x[:, 0] = np.where((i // 32 + i % 2) % 2 == 0, 1.0, -1.0)
        return {"x": x.astype(real), "y": y.astype(np.int64)}
    raise ValueError(name)


def save_scripted(model: nn.Module, path: Path) -> None:
    torch.jit.script(model.train()).save(str(path))
