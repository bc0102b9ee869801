"""The training runs that decent-train, its two Python peers and the plain reference must agree on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DECENT_DP = "decent-dp"
WRAPPER = "decent-optim-wrapper"


@dataclass(frozen=True, eq=False)  # compared and hashed as the one object it is
class Case:
    """One run. optimizer and schedule are written as in a recipe."""

    name: str
    workers: int
    model: str = "mlp"  # a name from models.MODELS
    topology: str = "complete"
    optimizer: dict[str, Any] = field(default_factory=lambda: ADAMW)
    schedule: dict[str, Any] = field(default_factory=lambda: CONSTANT)
    gamma: float = 1.0
    bucket_mb: float = 25.0
    min_buckets: int = 1  # how many buckets bucket_mb must give, at least
    local_world_size: int | None = None
    samples: int = 800  # enough for every case without a second epoch
    batch_size: int = 8
    steps: int = 24
    own_schedule: bool = False  # drive decent-dp with its own cosine scheduler, not with the closed form

    @property
    def loss(self) -> str:
        return "mse" if self.model == "regressor" else "cross_entropy"

    @property
    def peers(self) -> list[str]:
        """decent-optim-wrapper has no mixing strength."""
        return [DECENT_DP, WRAPPER] if self.gamma == 1.0 else [DECENT_DP]


ADAMW = {"name": "adamw", "lr": 3e-3, "weight_decay": 0.1}
ADAM = {"name": "adam", "lr": 3e-3, "betas": [0.8, 0.99], "weight_decay": 0.01}
SGD = {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}
NESTEROV = {**SGD, "nesterov": True}
CONSTANT = {"name": "constant"}


def _cases() -> list[Case]:
    cases = [
        Case(f"adamw-{topology}-{model}-n{workers}", workers, model, topology)
        for workers in (2, 4)
        for topology in ("ring", "complete", "one-peer-exp")
        for model in ("mlp", "cnn")
    ]
    cases += [
        Case(f"adamw-alternating-exp-ring-{model}-n4", 4, model, "alternating-exp-ring", local_world_size=2)
        for model in ("mlp", "cnn")
    ]
    # The warm-up ends inside the run; once t_max lies inside too (the rate stays at eta_min from there on), once at its
    # default, the steps after the warm-up. From t_max on decent-dp's own scheduler would rise again.
    cosine = {"name": "cosine_warmup", "warmup_steps": 6, "t_max": 12, "eta_min": 1e-4, "warmup_decay": 0.05}
    cases += [
        Case("adam-ring-mlp-n2", 2, "mlp", "ring", ADAM),
        Case("sgd-ring-cnn-n2", 2, "cnn", "ring", SGD),
        Case("nesterov-complete-mlp-n2", 2, "mlp", "complete", NESTEROV),
        Case("cosine-ring-mlp-n2", 2, "mlp", "ring", schedule=cosine),
        Case("cosine-own-complete-cnn-n2", 2, "cnn", schedule={**cosine, "t_max": None}, own_schedule=True),
        Case("buckets-ring-mlp-n4", 4, "mlp", "ring", bucket_mb=0.0005, min_buckets=3),
        Case("buckets-complete-cnn-n2", 2, "cnn", "complete", bucket_mb=0.0005, min_buckets=3),
        Case("gamma-ring-mlp-n2", 2, "mlp", "ring", gamma=0.6),
        Case("gamma-one-peer-exp-cnn-n4", 4, "cnn", "one-peer-exp", gamma=0.6),
        Case("gamma-complete-mlp-n4", 4, "mlp", "complete", gamma=0.6),
        Case("mse-ring-regressor-n2", 2, "regressor", "ring"),
        # 200 samples are 12 updates of 2 * 8; the 8 samples left over are dropped, and a second epoch follows.
        Case("epochs-ring-mlp-n2", 2, "mlp", "ring", samples=200),
    ]
    return cases


CASES = {case.name: case for case in _cases()}
