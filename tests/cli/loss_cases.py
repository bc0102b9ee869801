"""Losses with the data and models that go with them, and what PyTorch makes of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from runs import recipe
from tensors import write_safetensors

SAMPLES, FEATURES, CLASSES = 104, 12, 7
SGD = {"name": "sgd", "lr": 0.1, "momentum": 0.9}
# Some 12 steps of float32, rounded in another order: 1e-7 a step.
RTOL = 3e-6


def arrays(kind: str) -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    x = random.normal(size=(SAMPLES, FEATURES)).astype(np.float32)
    if kind == "classes":
        y = random.integers(0, CLASSES, SAMPLES)
    elif kind == "maps":
        y = random.integers(0, CLASSES, (SAMPLES, 3))
    elif kind == "shares":
        y = random.dirichlet(np.ones(CLASSES), SAMPLES).astype(np.float32)
    elif kind == "share maps":
        y = random.dirichlet(np.ones(CLASSES), (SAMPLES, 3)).swapaxes(1, 2).astype(np.float32)
    elif kind == "probabilities":
        y = random.random((SAMPLES, CLASSES)).astype(np.float32).round(1)
    else:
        y = (100 + 3 * random.normal(size=(SAMPLES, CLASSES))).astype(np.float32)
    if kind == "maps":
        y[random.random(y.shape) < 0.3] = 2  # the class that is ignored
    return {"x": x, "y": y}


def make_net(kind: str):
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(FEATURES, CLASSES)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x)

    class LogProbabilities(Plain):
        def forward(self, x: Tensor) -> Tensor:
            return F.log_softmax(self.fc(x), 1)

    class Maps(nn.Module):
        """Logits [B, C, 3]."""

        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(FEATURES, 3 * CLASSES)
            self.classes = CLASSES

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x).view(-1, self.classes, 3)

    class OwnLoss(Plain):
        def forward(self, x: Tensor, labels: Tensor) -> Tensor:
            return F.cross_entropy(self.fc(x), labels) + 0.01 * self.fc.weight.pow(2).sum()

    nets = {"plain": Plain, "log_probabilities": LogProbabilities, "maps": Maps, "own": OwnLoss}
    torch.manual_seed(3)
    return nets[kind]()


# name -> (net, data, recipe's model section, PyTorch's loss)
WEIGHTS = [0.5, 2.0, 1.0, 0.0, 3.0, 1.5, 0.25]


def focal(F, o, y, gamma: float, **more):
    """Of the definition, weighted as cross_entropy is."""
    import torch

    each = F.cross_entropy(o, y, reduction="none", ignore_index=more.get("ignore_index", -100))
    weights = more.get("weight", torch.ones(o.size(1))).to(o.dtype)
    of_target = torch.where(y == more.get("ignore_index", -100), 0.0, weights[y.clamp_min(0)])
    return (of_target * (1 - torch.exp(-each)) ** gamma * each).sum() / of_target.sum()


def weights_of(o):
    import torch

    return torch.tensor(WEIGHTS, dtype=o.dtype)


CASES = {
    "weights": ("plain", "classes", {"loss_weights": WEIGHTS}, lambda F, o, y: F.cross_entropy(o, y, weights_of(o))),
    "weights-smoothing": ("maps", "maps", {"loss_weights": WEIGHTS, "label_smoothing": 0.1, "class_dim": 1, "ignore_index": 2},
                          lambda F, o, y: F.cross_entropy(o, y, weights_of(o), ignore_index=2, label_smoothing=0.1)),
    "share-weights": ("plain", "shares", {"loss_weights": WEIGHTS}, lambda F, o, y: F.cross_entropy(o, y, weights_of(o))),
    "nll-weights": ("log_probabilities", "classes", {"loss": "nll", "loss_weights": WEIGHTS},
                    lambda F, o, y: F.nll_loss(o, y, weights_of(o))),
    "focal": ("plain", "classes", {"loss": "focal"}, lambda F, o, y: focal(F, o, y, 2)),
    "focal-weights": ("maps", "maps", {"loss": "focal", "focal_gamma": 0.5, "class_dim": 1, "ignore_index": 2, "loss_weights": WEIGHTS},
                      lambda F, o, y: focal(F, o, y, 0.5, ignore_index=2, weight=weights_of(o))),
    "kl": ("plain", "shares", {"loss": "kl"}, lambda F, o, y: F.kl_div(F.log_softmax(o, 1), y, reduction="batchmean")),
    "share-kl": ("log_probabilities", "shares", {"loss": "kl"}, lambda F, o, y: F.kl_div(o, y, reduction="batchmean")),
    "cross_entropy": ("plain", "classes", {}, lambda F, o, y: F.cross_entropy(o, y)),
    "smoothing": ("plain", "classes", {"label_smoothing": 0.2}, lambda F, o, y: F.cross_entropy(o, y, label_smoothing=0.2)),
    "maps": ("maps", "maps", {"class_dim": 1, "ignore_index": 2}, lambda F, o, y: F.cross_entropy(o, y, ignore_index=2)),
    "maps-smoothing": ("maps", "maps", {"class_dim": 1, "ignore_index": 2, "label_smoothing": 0.1},
                       lambda F, o, y: F.cross_entropy(o, y, ignore_index=2, label_smoothing=0.1)),
    "shares": ("plain", "shares", {}, lambda F, o, y: F.cross_entropy(o, y)),
    "shares-smoothing": ("plain", "shares", {"label_smoothing": 0.2}, lambda F, o, y: F.cross_entropy(o, y, label_smoothing=0.2)),
    "share-maps": ("maps", "share maps", {"class_dim": 1}, lambda F, o, y: F.cross_entropy(o, y)),
    "nll": ("log_probabilities", "classes", {"loss": "nll", "ignore_index": 4}, lambda F, o, y: F.nll_loss(o, y, ignore_index=4)),
    "mse": ("plain", "numbers", {"loss": "mse"}, lambda F, o, y: F.mse_loss(o, y)),
    "l1": ("plain", "numbers", {"loss": "l1"}, lambda F, o, y: F.l1_loss(o, y)),
    "huber": ("plain", "numbers", {"loss": "huber"}, lambda F, o, y: F.huber_loss(o, y)),
    "bce_with_logits": ("plain", "probabilities", {"loss": "bce_with_logits"},
                        lambda F, o, y: F.binary_cross_entropy_with_logits(o, y)),
    "output": ("own", "classes", {"loss": "output", "inputs": ["x", "y"]}, lambda F, o, y: o),
}


def write_case(name: str, folder: Path, workers_metrics: list[str] | None = None) -> tuple[dict, dict[str, np.ndarray]]:
    import torch

    net, kind, section, _ = CASES[name]
    torch.jit.script(make_net(net)).save(str(folder / "net.pt"))
    data = arrays(kind)
    write_safetensors(folder / "data.safetensors", data)
    own = recipe(folder / "net.pt", folder / "data.safetensors", model=section, data={"shuffle": False}, optimizer=SGD,
                 eval={"at_start": True, "metrics": workers_metrics, "every_steps": None, "every_epochs": None})
    return own, data


def outputs(net, section: dict, x, y):
    return net(x, y) if section.get("inputs") else net(x)
