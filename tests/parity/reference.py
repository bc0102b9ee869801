"""Decentralized training as plain PyTorch: N replicas in one process, no communication, every step spelled out.

It is the definition that decent-train documents, written once more and as simply as possible, so that three
independent programs (decent-train, decent-dp, decent-optim-wrapper) can be checked against it.
"""

from __future__ import annotations

import fnmatch
import inspect
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


class AccumAdam(torch.optim.Optimizer):
    """The definition of accum_adam and accum_adamw that decent-train documents, one tensor at a time."""

    def __init__(self, params, lr, accum_iter, decoupled, weight_decay=0.0, betas=(0.9, 0.999), eps=1e-8) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": eps})
        self.accum_iter = accum_iter
        self.decoupled = decoupled

    @torch.no_grad()
    def step(self) -> None:
        k = self.accum_iter
        for group in self.param_groups:
            (b1, b2), lr, wd = group["betas"], group["lr"], group["weight_decay"]
            for p in (p for p in group["params"] if p.grad is not None):
                state = self.state[p]
                if not state:
                    state.update(s=0, m=torch.zeros_like(p), v=torch.zeros_like(p), a=torch.zeros_like(p))
                state["s"] += 1
                m, v, a, g = state["m"], state["v"], state["a"], p.grad.clone()
                if self.decoupled:
                    p.mul_(1 - lr * wd)
                else:
                    g += wd * p
                a += g / k
                n = math.ceil(state["s"] / k)
                denominator = (v + (1 - b2) * g * g).sqrt() / math.sqrt(1 - b2**n) + group["eps"]
                p -= lr / (1 - b1**n) * (m + (1 - b1) * g) / denominator
                if state["s"] % k == 0:
                    m.copy_(b1 * (m + (1 - b1) * a))
                    v.copy_(b2 * (v + (1 - b2) * a * a))
                    a.zero_()


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of arXiv 2302.06675."""

    def __init__(self, params, lr, weight_decay=0.0, betas=(0.9, 0.99)) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "betas": betas})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p -= group["lr"] * (torch.sign(b1 * m + (1 - b1) * p.grad) + group["weight_decay"] * p)
                m.copy_(b2 * m + (1 - b2) * p.grad)


def torchs_muon_in_float32() -> type[torch.optim.Optimizer]:
    """torch.optim.Muon without its rounding of matrices to bfloat16."""
    from torch.optim import _muon

    source = inspect.getsource(_muon._zeropower_via_newtonschulz)
    if "grad.bfloat16()" in source:
        exec(compile(source.replace("grad.bfloat16()", "grad.clone()"), "muon in float32", "exec"), vars(_muon))
    return torch.optim.Muon


class Muon:
    """Matrices by Muon; all other parameters, and those of groups that say so, by AdamW."""

    def __init__(self, groups, lr, betas=(0.9, 0.999), eps=1e-8, adjust_lr_fn="match_rms_adamw", **options) -> None:
        def part(matrices: bool) -> list[dict]:
            parts = [{**group, "params": [p for p in group["params"] if (group["as_matrix"] and p.dim() == 2) == matrices]}
                     for group in groups]
            return [group for group in parts if group["params"]]

        self.optimizers = [torchs_muon_in_float32()(part(True), lr, adjust_lr_fn=adjust_lr_fn, **options),
                           torch.optim.AdamW(part(False), lr, betas, eps)]
        self.param_groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def step(self) -> None:
        for optimizer in self.optimizers:
            optimizer.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none)


KINDS = {
    "adafactor": lambda groups, eps1=None, eps2=1e-3, **o: torch.optim.Adafactor(groups, eps=(eps1, eps2), **o),
    "muon": Muon,
    "lion": Lion, "rmsprop": torch.optim.RMSprop, "adagrad": torch.optim.Adagrad,
    "nadam": torch.optim.NAdam, "nadamw": lambda groups, **o: torch.optim.NAdam(groups, decoupled_weight_decay=True, **o),
    "radam": torch.optim.RAdam, "radamw": lambda groups, **o: torch.optim.RAdam(groups, decoupled_weight_decay=True, **o),
    "adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "sgd": torch.optim.SGD,
    "accum_adamw": lambda groups, **o: AccumAdam(groups, decoupled=True, **o),
    "accum_adam": lambda groups, **o: AccumAdam(groups, decoupled=False, **o),
}


def settings_of(case: Case, name: str, param: Tensor) -> tuple[float, float, bool]:
    """Weight decay, factor of the learning rate, and whether muon may take it. Without groups tensors of fewer than two dimensions do not decay."""
    decay = case.optimizer["weight_decay"]
    if not case.param_groups:
        return (decay if param.dim() >= 2 else 0.0), 1.0, True
    for group in case.param_groups:
        if fnmatch.fnmatchcase(name, group["match"]):
            return group.get("weight_decay", decay), group.get("lr_scale", 1.0), "optimizer" not in group
    return decay, 1.0, True


def make_optimizer(case: Case, params: list[tuple[str, Tensor]]) -> torch.optim.Optimizer:
    """PyTorch's optimizer, one group for each pair of settings; "lr_scale" is ours to apply."""
    options = dict(case.optimizer)
    kind = KINDS[options.pop("name")]
    options.pop("weight_decay")
    groups: dict[tuple[float, float, bool], dict] = {}
    for name, param in params:
        settings = settings_of(case, name, param)
        group = groups.setdefault(settings, {"params": [], "weight_decay": settings[0], "lr_scale": settings[1],
                                              "as_matrix": settings[2]})
        group["params"].append(param)
    return kind(list(groups.values()), **options)


def trained(case: Case, model: torch.nn.Module) -> list[tuple[str, Tensor]]:
    return [(name, p) for name, p in model.named_parameters()
            if not any(fnmatch.fnmatchcase(name, glob) for glob in case.freeze)]


def loss_of(case: Case, output: Tensor, target: Tensor) -> Tensor:
    if case.loss == "mse":
        return F.mse_loss(output, target)
    return F.cross_entropy(output.flatten(0, -2), target.flatten())


# ---- data ----------------------------------------------------------------------------------------------------------

class Batches:
    """Update t takes the next A*S samples of its epoch, where S is the sum of the batch sizes of all workers, and micro-batch a
    the a-th S of them. They are dealt out in rounds, in the order of ranks, to those whose batch is not full. Epochs drop what
    is left.
    """

    def __init__(self, case: Case, folder: Path) -> None:
        fields = read_safetensors(data_file(folder, case.model, case.samples))
        self.x = torch.from_numpy(fields["x"].copy())
        self.y = torch.from_numpy(fields["y"].copy())
        owners = [rank for turn in range(max(case.sizes)) for rank, size in enumerate(case.sizes) if size > turn]
        self.owners = torch.tensor(owners)
        self.per_batch = len(owners)
        self.per_update = self.per_batch * case.accumulation

    def get(self, t: int, rank: int, a: int = 0) -> tuple[Tensor, Tensor]:
        start = (t - 1) % (len(self.x) // self.per_update) * self.per_update + a * self.per_batch
        rows = start + (self.owners == rank).nonzero().flatten()
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
    optimizers = [make_optimizer(case, trained(case, m)) for m in replicas]
    rounds = case.phases or phases(case.topology, case.workers, case.local_world_size or case.workers)
    matrices = [mixing_matrix(p, case.workers) for p in rounds]
    losses, norms = [], []
    for t in range(1, case.steps + 1):
        losses.append(np.average([_backward(case, m, batches, t, r) for r, m in enumerate(replicas)], weights=case.weights))
        if case.clip:
            norms.append(np.mean([clip(case, trained(case, m)) for m in replicas]))
        if t > 1:  # x^(t-1) is mixed only now, after the gradients were taken at it
            _mix(replicas, matrices[(t - 2) % len(matrices)], case.gamma)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = lr_at(case, t) * group["lr_scale"]
            optimizer.step()
            optimizer.zero_grad()
    outcome = result(case, folder, losses, mean_of([dict(m.named_parameters()) for m in replicas]),
                     mean_of([float_buffers(m) for m in replicas]))
    return {**outcome, "norms": np.asarray(norms)}


def _backward(case: Case, model: torch.nn.Module, batches: Batches, t: int, rank: int) -> float:
    """Mean over the micro-batches, of the loss and of the gradient."""
    losses = []
    for a in range(case.accumulation):
        x, y = batches.get(t, rank, a)
        loss = loss_of(case, model(x), y)
        (loss / case.accumulation).backward()
        losses.append(loss.item())
    return float(np.mean(losses))


def clip(case: Case, params: list[tuple[str, Tensor]]) -> float:
    """Clips as torch does, over everything or bucket by bucket. Returns the norm over everything, before."""
    tensors = [p for _, p in params]
    norm = torch.nn.utils.get_total_norm([p.grad for p in tensors if p.grad is not None]).item()
    for bucket in [tensors] if case.clip_scope == "global" else buckets(case, tensors):
        torch.nn.utils.clip_grad_norm_(bucket, case.clip)
    return norm


def buckets(case: Case, params: list[Tensor]) -> list[list[Tensor]]:
    """In reverse order of registration, a bucket closed once its size reaches bucket_mb; tensors start at multiples of
    128 bytes, as in decent-dp.
    """
    result: list[list[Tensor]] = [[]]
    for p in reversed(params):
        if sum(math.ceil(q.numel() / 32) * 128 for q in result[-1]) >= case.bucket_mb * 2**20:
            result.append([])
        result[-1].append(p)
    return result


@torch.no_grad()
def _mix(replicas: list, matrix: Tensor, gamma: float) -> None:
    for copies in zip(*(m.parameters() for m in replicas)):
        stacked = torch.stack([p.detach() for p in copies])
        mixed = torch.tensordot(matrix.to(stacked.dtype), stacked, dims=1)
        for p, own, other in zip(copies, stacked, mixed):
            p.copy_((1 - gamma) * own + gamma * other)


@torch.no_grad()
def mean_of(replicas: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([r[name] for r in replicas]).mean(0) for name in replicas[0]}
