"""Exported networks, the recipes that train them, and the same training in eager PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim

from networks import Fields
from runs import merged, recipe
from tensors import write_safetensors

BATCH, STEPS = 8, 20


def example(data: Fields) -> Tensor:
    return torch.from_numpy(data["x"][:2].copy())


def program_of(model: nn.Module, x: Tensor) -> torch.export.ExportedProgram:
    """With a free batch."""
    return torch.export.export(model, (x,), dynamic_shapes=({0: Dim("batch")},))


def export(model: nn.Module, data: Fields, folder: Path, name: str = "model.pt2") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    torch.export.save(program_of(model, example(data)), folder / name)
    return folder / name


def settings(file: Path, fields: Fields, lr: float = 0.02, steps: int = STEPS, **changes: object) -> dict:
    """Momentum without decay, the data in order, an evaluation at the end."""
    path = file.parent / "data.safetensors"
    write_safetensors(path, fields)
    sgd = {"name": "sgd", "lr": lr, "momentum": 0.9, "weight_decay": 0.0}
    base = {"data": {"batch_size": BATCH, "eval_batch_size": BATCH, "shuffle": False}, "train": {"steps": steps},
            "optimizer": sgd, "eval": {"every_steps": steps}}
    return recipe(file, path, **merged(base, changes))


def loss_of(output: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(output.flatten(0, -2), y.flatten())


@dataclass(frozen=True)
class Trained:
    losses: np.ndarray  # per step
    evaluation: float


@torch.no_grad()
def evaluate(model: nn.Module, data: Fields) -> float:
    """The mean loss, in eval mode."""
    x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"])
    was_training = model.training
    model.eval()
    losses = [loss_of(model(x[i:i + BATCH]), y[i:i + BATCH]).item() for i in range(0, len(y), BATCH)]
    model.train(was_training)
    return float(np.mean(losses))


def steps_of(model: nn.Module, data: Fields, lr: float, steps: int = STEPS) -> list[float]:
    """The loss of each step of training, which changes the model."""
    x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"])
    sgd = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses = []
    for step in range(steps):
        first = step * BATCH % len(y)
        loss = loss_of(model(x[first:first + BATCH]), y[first:first + BATCH])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses


def train_eagerly(model: nn.Module, data: Fields, lr: float, steps: int = STEPS) -> Trained:
    losses = steps_of(model, data, lr, steps)
    return Trained(np.array(losses), evaluate(model, data))


def load_weights(model: nn.Module, weights: dict[str, np.ndarray]) -> nn.Module:
    """`model` with what a run wrote, which has all that the state_dict has."""
    model.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
    return model
