"""One worker of a PyTorch program that decent-train is compared with. bench.py starts it, with a launcher's variables:

    python contender.py CONTENDER MODEL.pt DATA.safetensors BATCH_SIZE STEPS WARM_UP OPTIMIZING

Each step reads a batch, runs forward, loss, backward and update, and looks at the loss, as decent-train does.
OPTIMIZING: 1 with TorchScript's optimizing executor, 0 without. Rank 0 prints the milliseconds of each step after the
warm-up as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import local_sgd
import support
import torch
import torch.distributed as dist
import torch.nn.functional as F
from comparison import POWER_SGD_RANK, POWER_SGD_START
from tensors import read_safetensors
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook

LR = 1e-3
MakeOptimizer = Callable[[list], torch.optim.Optimizer]


def groups(named: list) -> list[dict]:
    """Tensors of fewer than two dimensions do not decay, as in decent-train."""
    decay = [p for _, p in named if p.dim() >= 2]
    rest = [p for _, p in named if p.dim() < 2]
    return [{"params": ps, "weight_decay": wd} for ps, wd in ((decay, 0.1), (rest, 0.0)) if ps]


def adamw(named: list, fused: bool, lr: float = LR, betas: Sequence[float] = (0.9, 0.999)) -> torch.optim.Optimizer:
    return torch.optim.AdamW(groups(named), lr=lr, betas=tuple(betas), **({"fused": True} if fused else {}))


def fused_adamw(named: list) -> torch.optim.Optimizer:
    return adamw(named, True)


def nothing() -> None:
    pass


def ddp(model: torch.nn.Module, hook: str) -> torch.nn.Module:
    """hook: what DDP does with a bucket of gradients; empty for DDP's default."""
    # No buffers: the other programs do not exchange them during training either. PowerSGD's later all-reduces begin on
    # threads of gloo, in any order for several buckets, so there is only one.
    size = {"bucket_cap_mb": 4096} if hook == "PowerSGD" else {}
    forward = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False, gradient_as_bucket_view=True,
                                                        **size)
    if hook == "fp16":
        forward.register_comm_hook(None, fp16_compress_hook)
    elif hook == "PowerSGD":
        forward.register_comm_hook(PowerSGDState(None, POWER_SGD_RANK, start_powerSGD_iter=POWER_SGD_START),
                                   powerSGD_hook)
    else:
        assert hook == "", hook
    return forward


def build(name: str, model: torch.nn.Module, rank: int, workers: int, make: MakeOptimizer = fused_adamw):
    """Returns forward and what comes after backward. A topology other than a ring follows a comma."""
    kind, _, topology = name.partition(", ")
    topology = topology or "ring"
    if kind in ("decent-dp", "decent-dp fused"):
        from decent_dp.ddp import DecentralizedDataParallel

        optim_fn = make if kind.endswith("fused") else lambda named: adamw(named, False)
        return DecentralizedDataParallel(model, optim_fn=optim_fn, topology=topology), nothing  # it updates in backward
    if kind == "decent-optim-wrapper":
        from decent_optim_wrapper.wrapper import DecentOptimWrapper

        optimizer = DecentOptimWrapper(make(list(model.named_parameters())), rank, workers, workers, topology, 25)
        forward = model
    else:
        optimizer = make(list(model.named_parameters()))
        forward = ddp(model, kind[len("DDP ") :]) if kind.startswith("DDP") else model
        if kind.startswith("local SGD"):
            local_sgd.start(model, optimizer, rank, workers, every=int(kind.split()[-1]))
        else:
            assert kind.startswith("DDP") or kind == "no communication", name

    def update() -> None:
        optimizer.step()
        optimizer.zero_grad()

    return forward, update


def main() -> None:
    name, model_file, data_file = sys.argv[1:4]
    batch_size, steps, warm_up, optimizing = map(int, sys.argv[4:])
    torch.set_num_threads(1)
    torch._C._set_graph_executor_optimize(bool(optimizing))
    if name.startswith("decent-"):
        from loguru import logger

        logger.remove()  # they narrate at debug level
    rank, workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    fields = {n: torch.from_numpy(a.copy()) for n, a in read_safetensors(Path(data_file)).items()}
    model = torch.jit.load(model_file).train()
    forward, update = build(name, model, rank, workers)
    batches = len(fields["x"]) // (workers * batch_size)
    milliseconds = []
    for step in range(steps):
        begin = time.perf_counter()
        rows = torch.arange(batch_size) * workers + rank + step % batches * workers * batch_size
        x, y = fields["x"][rows], fields["y"][rows]
        logits = forward(x)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1).long())
        loss.backward()
        update()
        value = loss.item()
        milliseconds.append(1e3 * (time.perf_counter() - begin))
        assert value < 100
    if rank == 0:
        print(json.dumps(milliseconds[warm_up:]), flush=True)
    dist.barrier()
    os._exit(0)  # decent-dp aborts now and then while it is torn down


if __name__ == "__main__":
    main()
