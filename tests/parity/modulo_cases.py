"""What parity_modulo is to train for test_modulo.py, and the same problem for the reference: weights that are drawn to
targets, others on each worker and in each of a few steps, so that copies are apart and stay near.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from modulo_reference import Modulo, Phase, Whole
from reference import phases
from tensors import read_safetensors, write_safetensors

PERIOD = 7  # steps after which the targets come again
ALIGNMENT = 128  # bytes, of every parameter in its bucket
BETAS = {"adamw": (0.9, 0.95), "lion": (0.9, 0.99)}
WEIGHT_DECAY = 0.01
THREES: dict[int, list[Phase]] = {  # edges of three by number of workers, in which somebody rests now and then
    3: [[([0, 1, 2], 0.5)], [([0, 2], 0.7), ([1], 1.0)]],
    4: [[([0, 1, 3], 0.4), ([2], 1.0)], [([1, 2, 3], 1 / 3), ([0], 1.0)]],
    5: [[([0, 1, 2], 0.5), ([3, 4], 0.7)], [([0, 3], 0.5), ([1, 2, 4], 0.25)], [([0, 2, 4], 1 / 3), ([1], 1.0), ([3], 1.0)]],
}


@dataclass(frozen=True)
class Parameter:
    name: str
    numel: int
    dtype: str  # of safetensors: F32, F64
    lr_scale: float = 1.0

    @property
    def kind(self) -> type:
        return {"F32": np.float32, "F64": np.float64}[self.dtype]


@dataclass(frozen=True)
class Cosine:
    lr: float = 0.01
    warmup_steps: int = 5
    t_max: int = 60
    eta_min: float = 1e-4
    warmup_decay: float = 0.1

    def __call__(self, t: np.ndarray) -> np.ndarray:
        u = t - 1.0
        rising = self.lr * (self.warmup_decay + (1 - self.warmup_decay) * u / max(1, self.warmup_steps))
        angle = np.pi * np.minimum(u - self.warmup_steps, self.t_max) / self.t_max
        return np.where(u < self.warmup_steps, rising, self.eta_min + (self.lr - self.eta_min) * (1 + np.cos(angle)) / 2)


# In reverse order with a bucket closed at 524 bytes: 176 of float64, 448 and 160 of float32, which are 6 (the last one
# half), 14 and 5 blocks of 32; K = 3 divides the first of these numbers, K = 4 none.
BOTH_TYPES = (Parameter("a", 150, "F32"), Parameter("b", 300, "F32", 2.0), Parameter("c", 70, "F32", 0.5),
              Parameter("d", 5, "F32", 0.0), Parameter("e", 100, "F64"), Parameter("f", 37, "F64", 0.5),
              Parameter("g", 1, "F64", 0.0))


@dataclass(frozen=True)
class ModuloCase:
    workers: int
    topology: str | list[Phase]
    exchange: str
    slices: int = 1
    gamma: float = 1.0
    modulo_range: float | None = None
    optimizer: str = "adamw"
    schedule: Cosine = Cosine()
    first: int = 0  # the update after which it begins; copies are apart then
    steps: int = 30
    recorded: bool = True
    parameters: tuple[Parameter, ...] = BOTH_TYPES
    bucket_mb: float = 0.0005
    apart: float = 0.03  # standard deviation of copies at the start, where that is not the first step
    direct: bool = False  # the exchange by itself; parameters are buckets, and have given values before every mixing

    @property
    def name(self) -> str:
        topology = self.topology if isinstance(self.topology, str) else "custom"
        kind = "-direct" if self.direct else "" if self.recorded else "-whole"
        given = f"-R{self.modulo_range:g}" if self.modulo_range is not None else ""
        return (f"{self.exchange}-{topology}{self.workers}-K{self.slices}-gamma{self.gamma:g}{given}-{self.optimizer}"
                f"-from{self.first}{kind}")

    def phases(self) -> list[Phase]:
        return phases(self.topology, self.workers) if isinstance(self.topology, str) else self.topology

    def reference(self) -> Whole:
        common = (self.exchange, self.slices, self.gamma, self.phases())
        if not self.exchange.startswith("modulo"):
            return Whole(*common)
        return Modulo(*common, self.schedule, max(p.lr_scale for p in self.parameters), self.modulo_range)

    def start(self) -> dict[str, np.ndarray]:
        """[workers, numel] of each parameter."""
        random = np.random.default_rng(1)
        equal = {p.name: np.repeat(random.standard_normal((1, p.numel)), self.workers, 0) for p in self.parameters}
        if self.first > 0:
            equal = {name: x + self.apart * random.standard_normal(x.shape) for name, x in equal.items()}
        return {p.name: equal[p.name].astype(p.kind) for p in self.parameters}

    def targets(self) -> dict[str, np.ndarray]:
        """[workers, PERIOD, numel] of each parameter."""
        random = np.random.default_rng(2)
        return {p.name: random.standard_normal((self.workers, PERIOD, p.numel)).astype(p.kind) for p in self.parameters}

    def values(self) -> dict[str, np.ndarray]:
        """[workers, PERIOD, numel] of each parameter: copies that are near, and among them what is odd."""
        return {p.name: near_and_odd(self.workers, p, self.apart) for p in self.parameters}


def near_and_odd(workers: int, p: Parameter, apart: float) -> np.ndarray:
    """Every eighth value of a copy is no number, or as large or small as they come, or on the grid or between two of its
    points.
    """
    random = np.random.default_rng(3)
    shape, kind = (workers, PERIOD, p.numel), np.finfo(p.kind)
    x = random.standard_normal((1, PERIOD, p.numel)) + apart * random.standard_normal(shape)
    odd = [np.nan, np.inf, -np.inf, kind.max, -kind.max, kind.tiny, -kind.smallest_subnormal, 0.0, -0.0, 1.0, -1.0, 2.0**-6,
           -(2.0**-7), 3 * 2.0**-8, 1e30, -1e9]
    return np.where(random.random(shape) < 1 / 8, random.choice(odd, shape), x).astype(p.kind)


@dataclass
class Bucket:
    kind: type
    numel: int = 0
    offsets: dict[str, int] = field(default_factory=dict)  # of its parameters
    scales: np.ndarray = field(default_factory=lambda: np.zeros(0))  # [numel] lr_scale; padding has its parameter's

    def flat(self, values: dict[str, np.ndarray]) -> np.ndarray:
        x = np.zeros(self.numel, self.kind)
        for name, offset in self.offsets.items():
            x[offset:offset + values[name].size] = values[name]
        return x


def layout(case: ModuloCase) -> list[Bucket]:
    """Parameters in reverse order, a bucket closed once it has bucket_mb MiB and before the type changes."""
    if case.direct:
        return [Bucket(p.kind, p.numel, {p.name: 0}, np.full(p.numel, p.lr_scale)) for p in case.parameters]
    buckets: list[Bucket] = []
    for p in reversed(case.parameters):
        width = np.dtype(p.kind).itemsize
        if not buckets or buckets[-1].kind != p.kind or buckets[-1].numel * width >= case.bucket_mb * 2**20:
            buckets.append(Bucket(p.kind))
        bucket, length = buckets[-1], -(-p.numel * width // ALIGNMENT) * ALIGNMENT // width
        bucket.offsets[p.name] = bucket.numel
        bucket.scales = np.concatenate([bucket.scales, np.full(length, p.lr_scale)])
        bucket.numel += length
    return buckets


def write_cases(folder: Path, cases: list[ModuloCase]) -> None:
    """cases.json and the tensors of each case, for parity_modulo."""
    described = []
    for case in cases:
        fields = asdict(case) | {"name": case.name, "betas": BETAS[case.optimizer], "weight_decay": WEIGHT_DECAY}
        fields["phases"] = [[{"ranks": ranks, "weight": weight} for ranks, weight in phase] for phase in case.phases()]
        described.append(fields)
        tensors = {f"start.{name}": x for name, x in case.start().items()}
        tensors |= {f"target.{name}": x for name, x in case.targets().items()}
        tensors |= {f"value.{name}": x for name, x in case.values().items()} if case.direct else {}
        write_safetensors(folder / f"{case.name}.input.safetensors", tensors)
    (folder / "cases.json").write_text(json.dumps(described))


def result_of(folder: Path, case: ModuloCase) -> list[dict[str, np.ndarray]]:
    """By worker: what parity_modulo wrote."""
    return [read_safetensors(folder / f"{case.name}.{rank}.safetensors") for rank in range(case.workers)]
