"""Decentralized training as plain PyTorch: N replicas in one process, no communication, every step spelled out.

It is the definition that decent-train documents, written once more and as simply as possible, so that three
independent programs (decent-train, decent-dp, decent-optim-wrapper) can be checked against it.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from cases import Case
from data import data_file
from tensors import read_safetensors

Phase = list[tuple[list[int], float]]  # edges: (ranks, weight that each member gives to itself)


# ---- topologies ----------------------------------------------------------------------------------------------------

def phases(topology: str, n: int, local_world_size: int = 1) -> list[Phase]:
    if topology == "complete":
        return [[(list(range(n)), 1 / n)]]
    if topology == "ring":
        return _ring(n)
    if topology == "one-peer-exp":
        return [_one_peer(n, 2**p) for p in range(max(1, math.ceil(math.log2(n))))]
    if topology == "alternating-exp-ring":
        return _alternating_exp_ring(n, local_world_size)
    raise ValueError(topology)


def _ring(n: int) -> list[Phase]:
    if n == 1:
        return [[([0], 1.0)]]
    if n % 2 == 0:
        return [[([i, (i + 1) % n], 0.5) for i in range(start, n, 2)] for start in (0, 1)]
    return [
        [([(p + 2 * i) % n, (p + 2 * i + 1) % n], 0.5) for i in range((n - 1) // 2)] + [([(p - 1) % n], 1.0)]
        for p in range(n)
    ]


def _one_peer(n: int, hop: int) -> Phase:
    """Walks every cycle j -> j + hop from its smallest rank and pairs consecutive ranks."""
    edges, seen = [], set()
    for first in range(n):
        cycle = []
        rank = first
        while rank not in seen:
            seen.add(rank)
            cycle.append(rank)
            rank = (rank + hop) % n
        edges += [(cycle[i : i + 2], 0.5) for i in range(0, len(cycle) - 1, 2)]
        edges += [([cycle[-1]], 1.0)] if len(cycle) % 2 else []
    return edges


def _alternating_exp_ring(n: int, local: int) -> list[Phase]:
    nodes = n // local
    members = [list(range(j * local, (j + 1) * local)) for j in range(nodes)]
    result: list[Phase] = []
    counter = 0
    for p in range(int(math.log2(nodes))):
        even, odd, used = [], [], set()
        for j in range(nodes):
            if j in used:
                continue
            t = (j + 2**p) % nodes
            used |= {j, t}
            apart: Phase = [(members[j], 1 / local), (members[t], 1 / local)]
            joint: Phase = [(members[j] + members[t], 1 / (2 * local))]
            even += apart if counter % 2 == 0 else joint
            odd += joint if counter % 2 == 0 else apart
            counter += 1
        result += [even, odd]
    return result


def mixing_matrix(phase: Phase, n: int) -> Tensor:
    w = torch.zeros(n, n, dtype=torch.float64)
    for ranks, weight in phase:
        for i in ranks:
            for j in ranks:
                w[i, j] = weight if i == j else (1 - weight) / (len(ranks) - 1)
    return w


# ---- optimizer and schedule ----------------------------------------------------------------------------------------

def lr_at(case: Case, t: int) -> float:
    """Learning rate of update t = 1, 2, .."""
    lr, s = case.optimizer["lr"], case.schedule
    if s["name"] == "constant":
        return lr
    u, warmup, d, eta_min = t - 1, s["warmup_steps"], s["warmup_decay"], s["eta_min"]
    t_max = s["t_max"] if s["t_max"] is not None else max(1, case.steps - warmup)
    if u < warmup:
        return lr * (d + (1 - d) * u / warmup)
    return eta_min + (lr - eta_min) * (1 + math.cos(math.pi * min(u - warmup, t_max) / t_max)) / 2


def make_optimizer(case: Case, params: list[Tensor]) -> torch.optim.Optimizer:
    """PyTorch's optimizer; tensors of fewer than two dimensions do not decay."""
    options = dict(case.optimizer)
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "sgd": torch.optim.SGD}[options.pop("name")]
    decay = options.pop("weight_decay")
    groups = [
        {"params": [p for p in params if p.dim() >= 2], "weight_decay": decay},
        {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
    ]
    return kind([group for group in groups if group["params"]], **options)


def loss_of(case: Case, output: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(output, target) if case.loss == "mse" else F.cross_entropy(output, target)


# ---- data ----------------------------------------------------------------------------------------------------------

class Batches:
    """Update t takes the next N*B samples; worker r every N-th of them, from the r-th on. Epochs drop what is left."""

    def __init__(self, case: Case, folder: Path) -> None:
        fields = read_safetensors(data_file(folder, case.model, case.samples))
        self.x = torch.from_numpy(fields["x"].copy())
        self.y = torch.from_numpy(fields["y"].copy())
        self.workers = case.workers
        self.per_update = case.workers * case.batch_size

    def get(self, t: int, rank: int) -> tuple[Tensor, Tensor]:
        start = (t - 1) % (len(self.x) // self.per_update) * self.per_update
        rows = slice(start + rank, start + self.per_update, self.workers)
        return self.x[rows], self.y[rows]


# ---- results -------------------------------------------------------------------------------------------------------

def load_model(case: Case, folder: Path) -> torch.jit.ScriptModule:
    # TorchScript's optimizing executor rewrites the graph after the first runs, and with it the order of gradients.
    torch._C._set_graph_executor_optimize(False)
    return torch.jit.load(str(folder / f"{case.model}.pt")).train()


def float_buffers(model: torch.nn.Module) -> dict[str, Tensor]:
    return {name: b for name, b in model.named_buffers() if b.is_floating_point()}


def result(case: Case, folder: Path, losses, params: dict[str, Tensor], buffers: dict[str, Tensor]) -> dict:
    """The form in which all runs are compared; start and start_buffer are the model file's values."""
    start = load_model(case, folder)
    groups = {
        "start": dict(start.named_parameters()),
        "param": params,
        "start_buffer": float_buffers(start),
        "buffer": buffers,
    }
    arrays = {f"{g}/{name}": t.detach().double().numpy() for g, ts in groups.items() for name, t in ts.items()}
    return {"losses": np.asarray(losses, dtype=np.float64), **arrays}


# ---- the algorithm -------------------------------------------------------------------------------------------------

def train(case: Case, folder: Path) -> dict[str, np.ndarray]:
    batches = Batches(case, folder)
    replicas = [load_model(case, folder) for _ in range(case.workers)]
    optimizers = [make_optimizer(case, list(m.parameters())) for m in replicas]
    matrices = [mixing_matrix(p, case.workers)
                for p in phases(case.topology, case.workers, case.local_world_size or case.workers)]
    losses = []
    for t in range(1, case.steps + 1):
        losses.append(np.mean([_backward(case, m, *batches.get(t, r)) for r, m in enumerate(replicas)]))
        if t > 1:  # x^(t-1) is mixed only now, after the gradients were taken at it
            _mix(replicas, matrices[(t - 2) % len(matrices)], case.gamma)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = lr_at(case, t)
            optimizer.step()
            optimizer.zero_grad()
    return result(case, folder, losses, _mean([dict(m.named_parameters()) for m in replicas]),
                  _mean([float_buffers(m) for m in replicas]))


def _backward(case: Case, model: torch.nn.Module, x: Tensor, y: Tensor) -> float:
    loss = loss_of(case, model(x), y)
    loss.backward()
    return loss.item()


@torch.no_grad()
def _mix(replicas: list, matrix: Tensor, gamma: float) -> None:
    for copies in zip(*(m.parameters() for m in replicas)):
        stacked = torch.stack([p.detach() for p in copies])
        mixed = torch.tensordot(matrix.to(stacked.dtype), stacked, dims=1)
        for p, own, other in zip(copies, stacked, mixed):
            p.copy_((1 - gamma) * own + gamma * other)


@torch.no_grad()
def _mean(replicas: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([r[name] for r in replicas]).mean(0) for name in replicas[0]}
