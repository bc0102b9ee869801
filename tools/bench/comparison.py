"""The methods that compare.py puts side by side, the training that all of them do, and how long each must train.

Nothing here runs anything: what is measured comes in as figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Steps of all_reduce; every length below is a whole number of EVALUATIONS parts, so that the last step is evaluated.
STEPS, EVALUATIONS, WARM_UP = 300, 5, 30
LENGTHS = tuple(round(STEPS * part) for part in (1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0))
RATES = (2.5e-4, 5e-4, 1e-3)
BETAS = (0.9, 0.95)
WORKERS = (4, 2)
LINKS = (50, 200, 1000, None)  # Mbit/s; None: workers of one machine
# PowerSGD's first steps send whole gradients, as few as it allows: its default of 1000 is longer than these trainings.
POWER_SGD_RANK, POWER_SGD_START = 4, 2
TARGET = "all_reduce"  # the method whose final loss all others must reach


@dataclass(frozen=True)
class Method:
    """How workers exchange. Ours have a section `parallel` of the recipe, without its topology; the others are PyTorch
    programs, which contender.py knows by their names.
    """

    name: str
    sends: float  # about the share of float32 weights in a step with 4 workers: decides how long to measure
    parallel: Mapping[str, object] | None = None
    losses_of: str | None = None  # the method that trains the same numbers, up to rounding
    rate_of: str | None = None  # the method whose best learning rate it takes; None: it tries all of them
    ends: bool = True  # False: no length of training is searched, because none would suffice
    period: int = 1  # steps after which what they send repeats

    @property
    def ours(self) -> bool:
        return self.parallel is not None

    @property
    def tuned(self) -> bool:
        return self.losses_of is None and self.rate_of is None


FP32, MODULO2, ALONE = "gossip fp32", "gossip modulo2", "none"
DDP, POWER_SGD, DECENT_DP = "DDP", "DDP PowerSGD", "decent-dp fused"
METHODS = {m.name: m for m in (  # methods to be compared are neighbours in the order of a round
    Method(ALONE, 0, {"method": "none"}, rate_of=MODULO2, ends=False),
    Method(TARGET, 1.5, {"method": "all_reduce"}),
    Method(DDP, 1.5, losses_of=TARGET),
    Method("all_reduce bf16", 0.75, {"method": "all_reduce", "comm_dtype": "bf16"}, rate_of=TARGET),
    Method("DDP fp16", 0.75, losses_of=TARGET),
    Method(POWER_SGD, 0.05, rate_of=TARGET),
    Method(FP32, 1, {}),
    Method(DECENT_DP, 1, losses_of=FP32),
    Method("gossip bf16", 0.5, {"comm_dtype": "bf16"}, rate_of=MODULO2),
    Method(MODULO2, 0.075, {"comm_dtype": "modulo2"}),
    Method("gossip modulo2, slices 4", 0.02, {"comm_dtype": "modulo2", "slices": 4}, rate_of=MODULO2),
    Method("local SGD 32", 0.05, rate_of=MODULO2, period=32),
)}


def topology(workers: int) -> str:
    """The topology of all methods that gossip: pairs."""
    return "ring" if workers == 2 else "one-peer-exp"


def parallel(method: Method, workers: int) -> dict:
    return {"topology": topology(workers), **method.parallel}


def next_length(ended: Mapping[int, float], target: float, lengths: Sequence[int] = LENGTHS) -> int | None:
    """The length to train next where those in `ended` ended with these losses, or None where the shortest that reaches
    the target is known, or that none does. Longer trainings are taken to end lower. Most methods need little more
    than all_reduce's length, so that going up takes fewer steps than halving what is left.
    """
    above = min((n for n, loss in ended.items() if loss <= target), default=lengths[-1] + 1)
    below = max((n for n, loss in ended.items() if loss > target and n < above), default=0)
    return next((n for n in lengths if below < n < above), None)


def length_to(ended: Mapping[int, float], target: float) -> int | None:
    """The steps of the shortest training that ended at the target or below."""
    return min((steps for steps, loss in ended.items() if loss <= target), default=None)


def best_rate(ended: Mapping[float, float]) -> float:
    """The learning rate of the lowest loss."""
    return min(ended, key=ended.__getitem__)


def seconds(steps: int | None, ms: float | None) -> float | None:
    return None if steps is None or ms is None else 1e-3 * steps * ms
