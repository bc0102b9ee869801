"""Training whose gradients are averaged over all workers, as plain PyTorch: replicas in one process, no communication. And
what it shares with PyTorch's DistributedDataParallel (ddp.py), which must agree with it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from cases import Case
from reference import Batches, clip, float_buffers, load_model, loss_of, lr_at, make_optimizer, mean_of, result, trained


def loss_at(case: Case, model: torch.nn.Module, batches: Batches, t: int, rank: int, a: int) -> Tensor:
    x, y = batches.get(t, rank, a)
    with torch.autocast("cpu", dtype=torch.float16, enabled=case.scaler is not None):
        return loss_of(case, model(x), y)


class Step:
    """What follows backward: loss scale, clipping, learning rate and update, of the averaged gradients."""

    def __init__(self, case: Case, model: torch.nn.Module) -> None:
        self.case = case
        self.params = trained(case, model)
        self.optimizer = make_optimizer(case, self.params)
        self.scaler = torch.amp.GradScaler("cpu", enabled=case.scaler is not None, **(case.scaler or {}))
        self.norms: list[float] = []
        self.scales: list[float] = []

    def take(self, t: int) -> None:
        if self.case.scaler:
            self.scales.append(self.scaler.get_scale())
            self.scaler.unscale_(self.optimizer)
        if self.case.clip:
            self.norms.append(clip(self.case, self.params))
        for group in self.optimizer.param_groups:
            group["lr"] = lr_at(self.case, t) * group["lr_scale"]
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()

    def logged(self) -> dict[str, np.ndarray]:
        return {"norms": np.asarray(self.norms), "scales": np.asarray(self.scales)}


def train(case: Case, folder: Path, nudge: np.random.Generator | None = None) -> dict[str, np.ndarray]:
    """The first replica has the optimizer, the others are its copies. `used`: per step, how many workers had a gradient of each
    parameter; `overflows`: how many had one that is not finite. With `nudge`, see _nudge.
    """
    batches = Batches(case, folder)
    replicas = [load_model(case, folder) for _ in range(case.workers)]
    step = Step(case, replicas[0])
    losses, used, overflows = [], [], []
    for t in range(1, case.steps + 1):
        losses.append(np.average([_backward(case, m, batches, t, rank, step.scaler) for rank, m in enumerate(replicas)],
                                 weights=case.weights))
        gradients = [[p.grad for _, p in trained(case, m)] for m in replicas]
        used.append([sum(g is not None for g in of_all) for of_all in zip(*gradients)])
        overflows.append(sum(not all(bool(g.isfinite().all()) for g in own if g is not None) for own in gradients))
        _average_gradients(case, replicas)
        step.take(t)
        if nudge is not None:
            _nudge(replicas[0], nudge)
        _copy_weights(replicas)
    outcome = result(case, folder, losses, dict(replicas[0].named_parameters()),
                     mean_of([float_buffers(m) for m in replicas]))
    return {**outcome, **step.logged(), "used": np.asarray(used), "overflows": np.asarray(overflows)}


def _backward(case: Case, model: torch.nn.Module, batches: Batches, t: int, rank: int, scaler: torch.amp.GradScaler) -> float:
    """Mean over the micro-batches, of the loss and of the gradient."""
    losses = []
    for a in range(case.accumulation):
        loss = loss_at(case, model, batches, t, rank, a)
        scaler.scale(loss / case.accumulation).backward()
        losses.append(loss.item())
    return float(np.mean(losses))


@torch.no_grad()
def _average_gradients(case: Case, replicas: list) -> None:
    """Into the first replica. A parameter that some did not use counts as zero there; one that nobody used has no gradient."""
    for copies in zip(*([p for _, p in trained(case, m)] for m in replicas)):
        gradients = [p.grad * weight for p, weight in zip(copies, case.weights) if p.grad is not None]
        if gradients:
            sent = [g.bfloat16().float() for g in gradients] if case.comm_dtype == "bf16" else gradients
            copies[0].grad = torch.stack(sent).sum(0) / case.workers
        for p in copies[1:]:
            p.grad = None


@torch.no_grad()
def _nudge(model: torch.nn.Module, chance: np.random.Generator) -> None:
    """Moves one weight of a matrix by half the distance of two numbers of float16, to either side: what becomes of a rounding in
    another order where the weight lies at the border between the two.
    """
    weights = [p.view(-1) for p in model.parameters() if p.dim() == 2]
    sizes = [w.numel() for w in weights]
    which = int(chance.choice(len(weights), p=np.divide(sizes, sum(sizes))))
    weights[which][int(chance.integers(sizes[which]))] *= 1 + float(chance.choice([-1, 1])) * 2.0**-11


@torch.no_grad()
def _copy_weights(replicas: list) -> None:
    for first, *others in zip(*(m.parameters() for m in replicas)):
        for p in others:
            p.copy_(first)
