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
from pathlib import Path

import support
import torch
import torch.distributed as dist
import torch.nn.functional as F
from tensors import read_safetensors

LR = 1e-3


def groups(named: list) -> list[dict]:
    """Tensors of fewer than two dimensions do not decay, as in decent-train."""
    decay = [p for _, p in named if p.dim() >= 2]
    rest = [p for _, p in named if p.dim() < 2]
    return [{"params": ps, "weight_decay": wd} for ps, wd in ((decay, 0.1), (rest, 0.0)) if ps]


def adamw(named: list, fused: bool) -> torch.optim.Optimizer:
    return torch.optim.AdamW(groups(named), lr=LR, **({"fused": True} if fused else {}))


def nothing() -> None:
    pass


def build(name: str, model: torch.nn.Module, rank: int, workers: int):
    """Returns forward and what comes after backward."""
    if name in ("decent-dp", "decent-dp fused"):
        from decent_dp.ddp import DecentralizedDataParallel

        ddp = DecentralizedDataParallel(model, optim_fn=lambda named: adamw(named, name.endswith("fused")),
                                        topology="ring")
        return ddp, nothing  # it updates in backward
    if name == "decent-optim-wrapper":
        from decent_optim_wrapper.wrapper import DecentOptimWrapper

        optimizer = DecentOptimWrapper(adamw(list(model.named_parameters()), True), rank, workers, workers, "ring", 25)
        forward = model
    elif name == "DDP":
        # Buffers: the others leave them alone during training too.
        forward = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False,
                                                            gradient_as_bucket_view=True)
        optimizer = adamw(list(model.named_parameters()), True)
    else:
        assert name == "no communication", name
        optimizer = adamw(list(model.named_parameters()), True)
        forward = model

    def update() -> None:
        optimizer.step()
        optimizer.zero_grad()

    return forward, update


def main() -> None:
    name, model_file, data_file = sys.argv[1:4]
    batch_size, steps, warm_up, optimizing = map(int, sys.argv[4:])
    torch.set_num_threads(1)
    torch._C._set_graph_executor_optimize(bool(optimizing))
    if name.startswith("decent"):
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
