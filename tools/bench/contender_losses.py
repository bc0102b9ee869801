"""One worker of a PyTorch program that trains as a recipe of losses.py says, which starts it with a launcher's
variables:

    python contender_losses.py CONTENDER MODEL.pt RECIPE

RECIPE is JSON. Rank 0 prints [[step, loss of the averaged model], ..] as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import support
import torch
import torch.distributed as dist
import torch.nn.functional as F
from contender import adamw, build
from contender_schedule import rate
from tensors import read_safetensors

def read(path: str) -> tuple[torch.Tensor, torch.Tensor]:
    fields = read_safetensors(Path(path))
    return torch.from_numpy(fields["x"].copy()), torch.from_numpy(fields["y"].copy()).long()


def loss_of(forward, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    logits = forward(x)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


@torch.no_grad()
def evaluate(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, rank: int, workers: int) -> float:
    """The loss of the average of all copies; each worker looks at a part of the samples."""
    own = [p.detach().clone() for p in model.parameters()]
    for p in model.parameters():
        dist.all_reduce(p)
        p /= workers
    x, y = x[rank::workers], y[rank::workers]
    total = torch.stack([loss_of(model.eval(), x[i : i + 1], y[i : i + 1]).double() for i in range(len(x))]).sum()
    count = torch.tensor(float(len(x)), dtype=torch.float64)
    dist.all_reduce(total)
    dist.all_reduce(count)
    model.train()
    for p, was in zip(model.parameters(), own):
        p.copy_(was)
    return (total / count).item()


def main() -> None:
    name, model_file, recipe = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    torch.set_num_threads(1)
    torch._C._set_graph_executor_optimize(False)
    rank, workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    x, y = read(recipe["data"]["train"]["path"])
    held_out = read(recipe["data"]["eval"]["path"])
    model = torch.jit.load(model_file).train()
    optimizers = []

    def make(named: list) -> torch.optim.Optimizer:
        optimizers.append(adamw(named, True, recipe["optimizer"]["lr"], recipe["optimizer"]["betas"]))
        return optimizers[-1]

    forward, update = build(name, model, rank, workers, make)
    steps, curve = recipe["train"]["steps"], []
    batches = len(x) // workers
    for step in range(1, steps + 1):
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate(step, steps, recipe["optimizer"]["lr"], recipe["schedule"]["warmup_steps"])
        row = (step - 1) % batches * workers + rank
        loss_of(forward, x[row : row + 1], y[row : row + 1]).backward()
        update()
        if step % recipe["eval"]["every_steps"] == 0:
            curve.append([step, evaluate(model, *held_out, rank, workers)])
    if rank == 0:
        print(json.dumps(curve), flush=True)
    dist.barrier()
    os._exit(0)  # as contender.py does


if __name__ == "__main__":
    main()
