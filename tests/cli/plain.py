"""Training as plain PyTorch: replicas in one process, no communication, every step spelled out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

OPTIMIZERS = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "sgd": torch.optim.SGD}


@dataclass(frozen=True)
class Trained:
    losses: np.ndarray  # per step, mean over workers
    state: dict[str, np.ndarray]  # of the average; buffers of the first worker
    distance: float  # of the workers from their average
    scales: list[float]  # per step, what the first worker's loss was multiplied with


def load(path: Path) -> torch.jit.ScriptModule:
    # TorchScript's optimizing executor rewrites the graph after the first runs, and with it the rounding.
    torch._C._set_graph_executor_optimize(False)
    return torch.jit.load(str(path)).train()


def make_optimizer(model: torch.nn.Module, settings: dict) -> torch.optim.Optimizer:
    """Tensors of fewer than two dimensions do not decay."""
    options = dict(settings)
    kind, decay = OPTIMIZERS[options.pop("name")], options.pop("weight_decay", 0.0)
    trained = [p for p in model.parameters() if p.requires_grad]
    return kind([{"params": [p for p in trained if p.dim() >= 2], "weight_decay": decay},
                 {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0}], **options)


def train(path: Path, data: dict[str, np.ndarray], optimizer: dict, inputs: tuple[str, ...] = ("x",),
          loss: str = "cross_entropy", steps: int = 12, batch_size: int = 8, workers: int = 1,
          autocast: torch.dtype | None = None, scaler: dict | None = None) -> Trained:
    """Data in order, complete topology: all workers' weights are averaged with a delay of one step."""
    fields = {name: torch.from_numpy(array.copy()) for name, array in data.items()}
    loss_of = F.mse_loss if loss == "mse" else F.cross_entropy
    replicas = [load(path) for _ in range(workers)]
    optimizers = [make_optimizer(model, optimizer) for model in replicas]
    scalers = [torch.amp.GradScaler("cpu", enabled=scaler is not None, **(scaler or {})) for _ in replicas]
    losses, scales = [], []
    for t in range(1, steps + 1):
        losses.append(0.0)
        for rank, model in enumerate(replicas):
            rows = _rows(t, rank, workers, batch_size, len(fields["y"]))
            with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
                value = loss_of(model(*(fields[name][rows] for name in inputs)), fields["y"][rows])
            scalers[rank].scale(value).backward()
            losses[-1] += value.item() / workers
        if t > 1:
            _average(replicas)
        scales.append(scalers[0].get_scale())
        for own, its_scaler in zip(optimizers, scalers):
            its_scaler.step(own)
            its_scaler.update()
            own.zero_grad()
    distance = _distance(replicas)
    _average(replicas)
    state = {name: tensor.detach().numpy() for name, tensor in replicas[0].state_dict().items()}
    return Trained(np.array(losses), state, distance, scales)


def _rows(t: int, rank: int, workers: int, batch_size: int, samples: int) -> slice:
    """Update t takes the next samples of all workers, worker r every N-th of them; an epoch drops what is left."""
    per_update = workers * batch_size
    start = (t - 1) % (samples // per_update) * per_update
    return slice(start + rank, start + per_update, workers)


@torch.no_grad()
def _means(replicas: list) -> list[Tensor]:
    return [torch.stack(list(copies)).mean(0) for copies in zip(*(model.parameters() for model in replicas))]


@torch.no_grad()
def _average(replicas: list) -> None:
    for mean, *copies in zip(_means(replicas), *(list(model.parameters()) for model in replicas)):
        for copy in copies:
            copy.copy_(mean)


@torch.no_grad()
def _distance(replicas: list) -> float:
    means = _means(replicas)
    squares = [sum(float(((p - m) ** 2).sum()) for p, m in zip(model.parameters(), means)) for model in replicas]
    return math.sqrt(sum(squares) / len(squares))
