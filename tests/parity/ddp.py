"""Runs a parity case with PyTorch's DistributedDataParallel and torch.optim, as their users would. See peers.py."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.nn.parallel import DistributedDataParallel

from all_reduce import Step, loss_at
from cases import Case
from reference import Batches, float_buffers, load_model, result, trained


def run_ddp(case: Case, folder: Path) -> dict[str, np.ndarray]:
    model = load_model(case, folder)
    of_training = {name for name, _ in trained(case, model)}
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in of_training)
    # Every worker has buffers of its own. With find_unused_parameters a parameter that nobody used in a step keeps its gradient
    # of before, which is none here, so that torch.optim leaves it out; for one that some used, the others count as zero.
    ddp = DistributedDataParallel(model, broadcast_buffers=False, find_unused_parameters=case.unused is not None,
                                  bucket_cap_mb=case.bucket_mb)
    if case.comm_dtype == "bf16":
        ddp.register_comm_hook(None, bf16_compress_hook)
    step, batches = Step(case, model), Batches(case, folder)
    losses = []
    for t in range(1, case.steps + 1):
        losses.append(np.mean([_backward(case, ddp, batches, t, a, step) for a in range(case.accumulation)]))
        step.take(t)
    buffers = float_buffers(model)
    for buffer in buffers.values():
        dist.all_reduce(buffer)
        buffer /= case.workers
    total = torch.tensor(losses, dtype=torch.float64)
    dist.all_reduce(total)
    return {**result(case, folder, total / case.workers, dict(model.named_parameters()), buffers), **step.logged()}


def _backward(case: Case, ddp: DistributedDataParallel, batches: Batches, t: int, a: int, step: Step) -> float:
    """The last micro-batch sends the gradients. With batches of different sizes, DDP's users weigh their losses."""
    with nullcontext() if a == case.accumulation - 1 else ddp.no_sync():
        loss = loss_at(case, ddp, batches, t, dist.get_rank(), a) * case.weights[dist.get_rank()]
        step.scaler.scale(loss / case.accumulation).backward()
    return loss.item()
