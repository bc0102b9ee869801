"""Runs parity cases through decent-dp, decent-optim-wrapper and PyTorch's DistributedDataParallel, as their users would, with N workers:

    python peers.py N PORT FOLDER CASE...

FOLDER holds the exported models and the data; rank 0 writes FOLDER/<case>.<peer>.npz. Each result is written before
the next collective: the peers abort now and then while they are torn down, and what is written stays.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from loguru import logger
from torch.optim.lr_scheduler import LambdaLR

sys.path.append(str(Path(__file__).resolve().parent.parent / "support"))  # pytest.ini does it for the tests

from cases import CASES, DDP, DECENT_DP, WRAPPER, Case
from ddp import run_ddp
from decent_dp.ddp import DecentralizedDataParallel
from decent_dp.optim import AccumAdam, AccumAdamW, lr_scheduler_fn_cosine_with_warmup
from decent_dp.topo import TopologyReg
from decent_optim_wrapper.topo import Topology, TopologyFactory
from decent_optim_wrapper.wrapper import DecentOptimWrapper
from forked import fork_workers
from launch import peer_result_file
from reference import Batches, float_buffers, load_model, loss_of, lr_at, make_optimizer, result


def local_world_size(case: Case) -> int:
    return case.local_world_size or case.workers


def make_schedule(case: Case, optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
    return LambdaLR(optimizer, lambda u: lr_at(case, u + 1) / case.optimizer["lr"])


def own_schedule(case: Case, optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
    s = case.schedule
    t_max = s["t_max"] or case.steps - s["warmup_steps"]
    return lr_scheduler_fn_cosine_with_warmup(optimizer, t_max, s["warmup_steps"], s["eta_min"], s["warmup_decay"])


def total(values: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(values)
    return values


# ---- decent-dp -----------------------------------------------------------------------------------------------------

def decent_dp_optimizer(case: Case, named: list[tuple[str, torch.nn.Parameter]]) -> torch.optim.Optimizer:
    """Our groups; for the accum_ optimizers decent-dp's own classes, which call a method that torch 2.11 has no more."""
    kind = {"accum_adam": AccumAdam, "accum_adamw": AccumAdamW}.get(case.optimizer["name"])
    if kind is None:
        return make_optimizer(case, named)
    kind._cuda_graph_capture_health_check = lambda _: None
    options = {key: value for key, value in case.optimizer.items() if key not in ("name", "weight_decay")}
    decay = case.optimizer["weight_decay"]
    groups = [{"params": [p for _, p in named if p.dim() >= 2], "weight_decay": decay},
              {"params": [p for _, p in named if p.dim() < 2], "weight_decay": 0.0}]
    return kind([group for group in groups if group["params"]], **options)


def run_decent_dp(case: Case, folder: Path) -> dict[str, np.ndarray]:
    model = load_model(case, folder)
    schedule = own_schedule if case.own_schedule else make_schedule
    ddp = DecentralizedDataParallel(
        model,
        optim_fn=lambda named: decent_dp_optimizer(case, named),
        lr_scheduler_fn=lambda optimizer: schedule(case, optimizer),
        topology=case.topology,
        sync_buffer_in_global_avg=True,
        bucket_size_in_mb=case.bucket_mb,  # declared an int, but a fraction works
        grad_clip_norm=case.clip,
        _local_world_size=local_world_size(case),
    )
    ddp._adaptive_factor = case.gamma
    _start_at_phase_0(ddp)
    batches = Batches(case, folder)
    losses = []
    for t in range(1, case.steps + 1):
        x, y = batches.get(t, dist.get_rank())
        loss = loss_of(case, ddp(x), y)
        losses.append(loss.item())
        loss.backward()  # mixes and updates, from the second step on
    ddp.global_avg(will_revert=False)
    assert len(ddp._param_buckets) >= case.min_buckets
    losses = total(torch.tensor(losses, dtype=torch.float64)) / case.workers
    return result(case, folder, losses, dict(model.named_parameters()), float_buffers(model))


def _start_at_phase_0(ddp: DecentralizedDataParallel) -> None:
    """decent-dp mixes in step t with phase t - 1 (in step 2 with data scaled for phase 1, too); we begin at phase 0."""
    original = ddp._topo.get_edge
    ddp._topo.get_edge = lambda step: original(max(step - 2, 0))


# ---- decent-optim-wrapper ------------------------------------------------------------------------------------------

class FromDecentDP(Topology):
    """A topology that decent-optim-wrapper lacks, with the groups of decent-dp's topology of that name."""

    def assign_groups(self) -> list[list[list[int]]]:
        kind = TopologyReg.registry[self._topology]
        source = kind.__new__(kind)  # without __init__, which would create process groups
        source._world_size = self._world_size
        source._local_world_size = self._local_world_size
        source._n_nodes = self._world_size // self._local_world_size
        edges = source._get_topo_edges()
        return [[next(sorted(e.ranks) for e in phase if rank in e.ranks) for phase in edges]
                for rank in range(self._world_size)]


TopologyFactory.add_topology("one-peer-exp", FromDecentDP)
TopologyFactory.add_topology("alternating-exp-ring", FromDecentDP)


def run_wrapper(case: Case, folder: Path) -> dict[str, np.ndarray]:
    model = load_model(case, folder)
    inner = make_optimizer(case, list(model.named_parameters()))
    optimizer = DecentOptimWrapper(
        inner, dist.get_rank(), case.workers, local_world_size(case), case.topology, case.bucket_mb
    )
    schedule = make_schedule(case, inner)
    batches = Batches(case, folder)
    losses = []
    for t in range(1, case.steps + 1):
        x, y = batches.get(t, dist.get_rank())
        loss = loss_of(case, model(x), y)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    optimizer.global_avg()
    assert len(optimizer._param_buckets) >= case.min_buckets
    buffers = float_buffers(model)
    for buffer in buffers.values():  # the wrapper knows of parameters only
        total(buffer).div_(case.workers)
    losses = total(torch.tensor(losses, dtype=torch.float64)) / case.workers
    return result(case, folder, losses, dict(model.named_parameters()), buffers)


# ---- all cases -----------------------------------------------------------------------------------------------------

RUN = {DECENT_DP: run_decent_dp, WRAPPER: run_wrapper, DDP: run_ddp}


def write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Whole or not at all."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        np.savez(file, **arrays)
    os.replace(temporary, path)


def main(folder: Path, cases: list[str]) -> None:
    logger.remove()  # the peers narrate at debug level
    warnings.filterwarnings("ignore", category=UserWarning, module="torch.optim.lr_scheduler")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for case in (CASES[name] for name in cases):
        for peer in case.peers:
            arrays = RUN[peer](case, folder)
            if dist.get_rank() == 0:
                write(peer_result_file(folder, case, peer), arrays)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    fork_workers(main)
