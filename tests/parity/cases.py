"""The training runs that decent-train, its two Python peers and the plain reference must agree on."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

DECENT_DP = "decent-dp"
WRAPPER = "decent-optim-wrapper"
DDP = "ddp"  # PyTorch's DistributedDataParallel
ALL = "DECENT_ALL_COMBINATIONS" in os.environ  # whole grids of cases


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
    batch_sizes: tuple[int, ...] = ()  # by rank, in place of batch_size
    steps: int = 24
    own_schedule: bool = False  # drive decent-dp with its own cosine scheduler, not with the closed form
    phases: list | None = None  # custom: [[(ranks, weight), ..], ..], in place of topology
    clip: float = 0.0
    clip_scope: str = "global"
    accumulation: int = 1
    freeze: tuple[str, ...] = ()
    param_groups: tuple[dict[str, Any], ...] = ()
    update: str = "auto"
    loss_name: str | None = None
    loss_options: dict[str, Any] = field(default_factory=dict)  # keys of the recipe's model section
    method: str = "gossip"
    format: str = "pt"  # of the model file that decent-train gets
    unused: tuple[str, ...] | None = None  # parameters that no step uses; None: every step uses all of them
    comm_dtype: str = "fp32"
    scaler: dict[str, Any] | None = None  # float16 with this loss scale: keys of the recipe's amp section

    @property
    def loss(self) -> str:
        return self.loss_name or ("mse" if self.model == "regressor" else "cross_entropy")

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.batch_sizes or (self.batch_size,) * self.workers

    @property
    def weights(self) -> list[float]:
        """Of the workers' means in the mean over all samples; 1 on average."""
        return [self.workers * size / sum(self.sizes) for size in self.sizes]

    @property
    def peers(self) -> list[str]:
        """Those that have what the case asks for. decent-optim-wrapper has no mixing strength; neither has custom phases,
        accumulation of micro-batches or groups in their mixing step that the reference would not show as well. decent-dp
        clips inside its hooks: one bucket makes its bucket norm the global one.
        """
        if self.method == "all_reduce":
            return [DDP]
        if self.optimizer["name"] == "muon":  # two optimizers side by side
            return []
        if self.phases or self.accumulation > 1 or self.batch_sizes or self.freeze or self.param_groups or self.loss_options:
            return []
        if self.clip:
            return [DECENT_DP] if self.clip_scope == "bucket" and self.min_buckets == 1 else []
        if self.optimizer["name"].startswith("accum_"):
            return [DECENT_DP]
        return [DECENT_DP, WRAPPER] if self.gamma == 1.0 else [DECENT_DP]


ADAMW = {"name": "adamw", "lr": 3e-3, "weight_decay": 0.1}
ADAM = {"name": "adam", "lr": 3e-3, "betas": [0.8, 0.99], "weight_decay": 0.01}
SGD = {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}
LION = {"name": "lion", "lr": 1e-3, "weight_decay": 0.1}
RMSPROP = {"name": "rmsprop", "lr": 1e-3, "alpha": 0.9, "momentum": 0.9, "weight_decay": 0.01}
MUON = {"name": "muon", "lr": 3e-3, "weight_decay": 0.1}
ADAGRAD = {"name": "adagrad", "lr": 2e-2, "lr_decay": 0.01, "initial_accumulator_value": 1e-4, "weight_decay": 0.01}
NADAM = {"name": "nadam", "lr": 3e-3, "momentum_decay": 0.01, "weight_decay": 0.01}
NADAMW = {"name": "nadamw", "lr": 3e-3, "betas": [0.8, 0.99], "weight_decay": 0.1}
RADAM = {"name": "radam", "lr": 2e-2, "weight_decay": 0.01}
RADAMW = {"name": "radamw", "lr": 1e-2, "betas": [0.8, 0.99], "weight_decay": 0.1}
ADAFACTOR = {"name": "adafactor", "lr": 0.02, "weight_decay": 0.1}
# At SGD's rate a difference of one rounding to float16 grows forty times within 24 steps.
SLOW_SGD = {**SGD, "lr": 0.01}
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
        Case("lion-ring-mlp-n2", 2, "mlp", "ring", LION),
        Case("rmsprop-ring-mlp-n2", 2, "mlp", "ring", RMSPROP),
        Case("muon-ring-mlp-n2", 2, "mlp", "ring", MUON),
        Case("muon-original-one-peer-exp-gpt-n4", 4, "gpt", "one-peer-exp",
             {**MUON, "lr": 0.02, "adjust_lr_fn": "original", "nesterov": False, "momentum": 0.9, "ns_steps": 4, "betas": [0.8, 0.99]}),
        Case("muon-clip-gamma-buckets-cnn-n2", 2, "cnn", "ring", MUON, gamma=0.6, clip=0.9, bucket_mb=0.0005, min_buckets=3),
        Case("muon-groups-mlp-n2", 2, "mlp", "complete", MUON,
             param_groups=({"match": "fc1.weight", "optimizer": "adamw", "lr_scale": 0.5}, {"match": "*.bias", "weight_decay": 0.0})),
        Case("adafactor-gamma-buckets-cnn-n2", 2, "cnn", "ring", {**ADAFACTOR, "beta2_decay": -0.6}, gamma=0.6, bucket_mb=0.0005,
             min_buckets=3),
        Case("adafactor-clip-groups-gpt-n4", 4, "gpt", "one-peer-exp", {**ADAFACTOR, "eps1": 1e-4, "eps2": 0.1, "d": 1.5}, clip=0.9,
             param_groups=({"match": "tokens.weight", "weight_decay": 0.0, "lr_scale": 0.5}, {"match": "*.bias", "weight_decay": 0.0})),
        *(Case(f"{optimizer['name']}-ring-mlp-n2", 2, "mlp", "ring", optimizer)
          for optimizer in (ADAGRAD, NADAM, NADAMW, RADAM, RADAMW, ADAFACTOR)),
        Case("nesterov-complete-mlp-n2", 2, "mlp", "complete", NESTEROV),
        Case("cosine-ring-mlp-n2", 2, "mlp", "ring", schedule=cosine),
        Case("cosine-own-complete-cnn-n2", 2, "cnn", schedule={**cosine, "t_max": None}, own_schedule=True),
        Case("buckets-ring-mlp-n4", 4, "mlp", "ring", bucket_mb=0.0005, min_buckets=3),
        Case("buckets-complete-cnn-n2", 2, "cnn", "complete", bucket_mb=0.0005, min_buckets=3),
        Case("gamma-ring-mlp-n2", 2, "mlp", "ring", gamma=0.6),
        Case("gamma-one-peer-exp-cnn-n4", 4, "cnn", "one-peer-exp", gamma=0.6),
        Case("gamma-complete-mlp-n4", 4, "mlp", "complete", gamma=0.6),
        *(Case(f"gamma-{gamma}-ring-mlp-n4-long", 4, "mlp", "ring", gamma=gamma, steps=40, samples=1600)
          for gamma in (0.0, 0.5, 1.0)),
        Case("mse-ring-regressor-n2", 2, "regressor", "ring"),
        # 200 samples are 12 updates of 2 * 8; the 8 samples left over are dropped, and a second epoch follows.
        Case("epochs-ring-mlp-n2", 2, "mlp", "ring", samples=200),
        Case("batch-sizes-ring-mlp-n2", 2, "mlp", "ring", batch_sizes=(6, 2)),
        Case("batch-sizes-accumulation-one-peer-exp-cnn-n4", 4, "cnn", "one-peer-exp", SGD, batch_sizes=(12, 3, 8, 8),
             accumulation=2, samples=2000),
    ]
    return cases + _update_cases() + _topology_cases() + _adapted_cases()


def _adapted_cases() -> list[Case]:
    """Low-rank adapters: model.lora against networks that have adapters of their own."""
    groups = ({"match": "*.lora_B", "lr_scale": 2.0, "weight_decay": 0.0}, {"match": "*.lora_A", "weight_decay": 0.3})
    return [
        *(Case(f"adamw-{topology}-adapted-{model}-n{workers}", workers, f"adapted-{model}", topology)
          for topology, model, workers in (("ring", "mlp", 2), ("complete", "cnn", 3), ("one-peer-exp", "gpt", 4))),
        Case("sgd-gamma-buckets-adapted-cnn-n2", 2, "adapted-cnn", "ring", SGD, gamma=0.6, bucket_mb=0.0005, min_buckets=3),
        Case("clip-accumulation-adapted-gpt-n2", 2, "adapted-gpt", "ring", accumulation=3, samples=2000, clip=0.675),
        Case("groups-adapted-mlp-n2", 2, "adapted-mlp", "ring", param_groups=groups),
        Case("accum_adamw-adapted-mlp-n2", 2, "adapted-mlp", "ring",
             optimizer={"name": "accum_adamw", "lr": 3e-3, "weight_decay": 0.05, "accum_iter": 3}),
    ]


def _update_cases() -> list[Case]:
    cases = [
        Case(f"{name}-{k}-{topology}-{model}-n{workers}", workers, model, topology, bucket_mb=bucket_mb, gamma=gamma,
             optimizer={"name": name, "lr": 3e-3, "weight_decay": 0.05, "accum_iter": k})
        for name, k, topology, model, workers, bucket_mb, gamma in (
            ("accum_adamw", 1, "ring", "mlp", 2, 25.0, 1.0), ("accum_adamw", 3, "ring", "cnn", 2, 0.0005, 1.0),
            ("accum_adamw", 4, "one-peer-exp", "mlp", 4, 25.0, 0.5), ("accum_adam", 1, "complete", "cnn", 2, 25.0, 1.0),
            ("accum_adam", 3, "ring", "mlp", 4, 25.0, 1.0), ("accum_adam", 4, "ring", "mlp", 2, 25.0, 0.5))
    ]
    # Ten rounds of four updates, thirteen and a third of three.
    cases += [
        Case(f"{name}-{k}-{topology}-{model}-n4-long", 4, model, topology, steps=40, samples=1600,
             optimizer={"name": name, "lr": 3e-3, "weight_decay": 0.05, "accum_iter": k})
        for name, k, topology, model in (
            ("accum_adam", 1, "ring", "mlp"), ("accum_adam", 3, "one-peer-exp", "cnn"), ("accum_adam", 4, "ring", "cnn"),
            ("accum_adamw", 1, "complete", "cnn"), ("accum_adamw", 3, "ring", "mlp"),
            ("accum_adamw", 4, "complete", "mlp"))
    ]
    # The norms of these gradients lie around the one that is allowed: some steps clip and some do not (checked).
    cases += [
        Case("clip-global-mlp-n2", 2, "mlp", "ring", SGD, clip=1.5, bucket_mb=0.0005, min_buckets=3),
        Case("clip-global-cnn-n4", 4, "cnn", "one-peer-exp", clip=1.0, bucket_mb=0.0005, min_buckets=3),
        Case("clip-bucket-one-mlp-n2", 2, "mlp", "ring", SGD, clip=1.5, clip_scope="bucket"),
        Case("clip-bucket-cnn-n2", 2, "cnn", "ring", SGD, clip=0.7, clip_scope="bucket", bucket_mb=0.0005,
             min_buckets=3),
    ]
    cases += [
        Case(f"accumulation-{a}-ring-{model}-n2", 2, model, "ring", accumulation=a, samples=2000,
             clip=1.5 if a == 3 else 0.0)
        for a, model in ((2, "mlp"), (2, "cnn"), (3, "mlp"))
    ]
    cases += [
        Case("freeze-ring-mlp-n2", 2, "mlp", "ring", freeze=("fc1.*", "*norm?.bias")),
        Case("groups-ring-mlp-n2", 2, "mlp", "ring", param_groups=(
            {"match": "fc1.*", "lr_scale": 0.3}, {"match": "*.bias", "weight_decay": 0.5},
            {"match": "head.weight", "weight_decay": 0.0, "lr_scale": 2.0})),
    ]
    return cases


def _topology_cases() -> list[Case]:
    """Edges of 1, 2, 3 and 4 members with unequal weights, against dense mixing matrices."""
    phases = [
        [([0, 3], 0.7), ([1], 1.0), ([2], 1.0)],
        [([0, 1, 2], 0.2), ([3], 1.0)],
        [([2, 3], 0.45), ([0, 1], 0.9)],
        [([0, 1, 2, 3], 0.4)],
    ]
    return [
        Case("phases-mlp-n4", 4, "mlp", phases=phases, bucket_mb=0.0005, min_buckets=3),
        Case("phases-gamma-cnn-n4", 4, "cnn", phases=phases, gamma=0.7, optimizer=SGD),
        Case("phases-two-mlp-n2", 2, "mlp", phases=[[([0, 1], 0.8)], [([0], 1.0), ([1], 1.0)]]),
    ]


def _all_reduce(name: str, workers: int, model: str, **options: Any) -> Case:
    """Small buckets, so that there are several."""
    return Case(f"all-reduce-{name}-n{workers}", workers, model, method="all_reduce",
                **{"bucket_mb": 0.0005, "min_buckets": 3, "samples": 1000, **options})


# Far too large at first, and soon again: some steps overflow, on all workers or on some, most do not.
SCALER = {"init_scale": 2.0**20, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2}
BRANCHES: dict[str, Any] = {"unused": ("extra.weight", "extra.bias")}
ONNX: dict[str, Any] = {"format": "onnx"}


def _all_reduce_cases() -> list[Case]:
    cases = [
        _all_reduce("adamw-mlp", 2, "mlp"),
        _all_reduce("adamw-cnn", 3, "cnn"),
        _all_reduce("adamw-gpt", 4, "gpt"),
        _all_reduce("sgd-onnx-cnn", 2, "cnn", optimizer=SGD, **ONNX),
        _all_reduce("adamw-adapted-mlp", 3, "adapted-mlp"),
        _all_reduce("sgd-adapted-cnn", 2, "adapted-cnn", optimizer=SGD),
        _all_reduce("adamw-branches", 3, "branches", **BRANCHES),
        _all_reduce("adamw-accumulation-branches", 2, "branches", accumulation=3, samples=1200, clip=1.0, **BRANCHES),
        _all_reduce("sgd-accumulation-cnn", 4, "cnn", optimizer=SGD, accumulation=3, samples=2400),
        _all_reduce("batch-sizes-mlp", 2, "mlp", batch_sizes=(6, 2)),
        _all_reduce("batch-sizes-accumulation-gpt", 3, "gpt", batch_sizes=(8, 1, 5), accumulation=2),
        _all_reduce("clip-global-mlp", 4, "mlp", optimizer=SGD, clip=1.2),
        _all_reduce("clip-bucket-cnn", 3, "cnn", optimizer=SGD, clip=0.6, clip_scope="bucket"),
        _all_reduce("fp16-sgd", 3, "spiked", scaler=SCALER, optimizer=SLOW_SGD),
        _all_reduce("bf16-mlp", 2, "mlp", comm_dtype="bf16"),
        _all_reduce("bf16-cnn", 3, "cnn", comm_dtype="bf16", optimizer=SGD),
        # Workers of one machine each sum up a part of a bucket; in one bucket the parts end inside a matrix.
        _all_reduce("muon-parts-mlp", 2, "mlp", optimizer=MUON, bucket_mb=25.0, min_buckets=1),
        _all_reduce("adafactor-parts-mlp", 2, "mlp", optimizer=ADAFACTOR, bucket_mb=25.0, min_buckets=1),
        _all_reduce("muon-parts-gpt", 3, "gpt", optimizer={**MUON, "lr": 0.02}, bucket_mb=25.0, min_buckets=1),
    ]
    return cases + (_more_all_reduce_cases() if ALL else [])


def _more_all_reduce_cases() -> list[Case]:
    """Every model with every number of workers; what can be set beside them with two models and every number of workers."""
    models = {"mlp": {}, "cnn": {}, "onnx-cnn": ONNX, "gpt": {}, "onnx-gpt": ONNX, "branches": BRANCHES}
    every: dict[str, dict[str, Any]] = {
        "adamw": {}, "sgd": {"optimizer": SGD}, "one-bucket": {"bucket_mb": 25.0, "min_buckets": 1},
        "accumulation": {"accumulation": 3, "samples": 3000},
    }
    # Within the range of the norms, so that some steps clip and some do not (checked).
    norms = {"mlp": 1.2, "cnn": 0.55, "onnx-cnn": 0.55, "gpt": 0.65, "onnx-gpt": 0.65, "branches": 1.2}
    groups = ({"match": "*.bias", "weight_decay": 0.5}, {"match": "head.weight", "weight_decay": 0.0, "lr_scale": 2.0})
    cosine = {"name": "cosine_warmup", "warmup_steps": 6, "t_max": 12, "eta_min": 1e-4, "warmup_decay": 0.05}
    some: dict[str, dict[str, Any]] = {
        "adam": {"optimizer": ADAM}, "nesterov": {"optimizer": NESTEROV}, "rmsprop": {"optimizer": RMSPROP},
        "muon": {"optimizer": MUON}, "adafactor": {"optimizer": ADAFACTOR},
        "accum_adamw": {"optimizer": {"name": "accum_adamw", "lr": 3e-3, "weight_decay": 0.05, "accum_iter": 3}},
        "groups": {"param_groups": groups},
        "freeze": {"freeze": ("head.weight",)}, "cosine": {"schedule": cosine}, "after": {"update": "after_backward"},
        "epochs": {"samples": 400},
    }
    cases = [_all_reduce(f"{setting}-{model}", workers, model.removeprefix("onnx-"), **models[model], **own)
             for workers in (2, 3, 4) for settings, chosen in ((every, models), (some, ("cnn", "branches")))
             for setting, own in settings.items() for model in chosen]
    for name, clip in norms.items():
        model, own = name.removeprefix("onnx-"), models[name]
        cases += [_all_reduce(f"clip-global-{name}", workers, model, clip=clip, optimizer=SGD, **own) for workers in (2, 3, 4)]
        if model != "gpt":  # gradients of single buckets are all small, and the .onnx file has them in another order
            cases += [_all_reduce(f"clip-bucket-{name}", workers, model, clip=clip, clip_scope="bucket", **own)
                      for workers in (2, 3, 4)]
    # Of 3000 samples one step's largest gradient with three workers is where float16 ends, so that one rounding decides.
    cases += [_all_reduce(f"fp16-{name}", workers, "spiked", scaler=SCALER, **own) for workers in (2, 3, 4)
              for name, own in {"adamw": {}, "sgd": {"optimizer": SLOW_SGD}, "clip": {"clip": 1.0},
                                "accumulation": {"accumulation": 3, "samples": 3200}}.items()]
    cases += [_all_reduce(f"bf16-{model}", workers, model, comm_dtype="bf16", optimizer=optimizer)
              for model, optimizer in (("mlp", ADAMW), ("cnn", SGD), ("gpt", ADAMW)) for workers in (2, 3, 4)]
    return cases


CASES = {case.name: case for case in _cases() + _all_reduce_cases()}
