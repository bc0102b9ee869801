"""The rungs of successive halving."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..program import TrainingError
from .sweep import Sweep

# Where the length of a trial and its evaluations come from: the unit, and the recipe's keys.
_UNITS = {"step": ("steps", "every_steps"), "epoch": ("epochs", "every_epochs")}


@dataclass(frozen=True)
class Ladder:
    """At which evaluations trials are compared. A trial stays as long as it is among the best."""

    unit: str  # step | epoch
    rungs: list[int]  # in that unit, growing, all before the end
    total: int  # of a whole trial
    reduction_factor: int

    def is_reached(self, rung: int, evaluation: Mapping[str, Any]) -> bool:
        """Whether the line of an evaluation is that of the rung of this number, from 0, or a later one."""
        return evaluation[self.unit] >= self.rungs[rung]

    def survivors(self, values: Mapping[int, float], entered: int, minimizes: bool) -> list[int]:
        """Of the trials with these values at a rung that `entered` trials began, the numbers of those that go on, in
        order.

        Equal values: the lower number. Values that are not numbers are the worst; a failed trial has no value.
        """
        def place(number: int) -> tuple[bool, float, int]:
            value = values[number]
            return math.isnan(value), value if minimizes else -value, number

        return sorted(sorted(values, key=place)[:max(1, entered // self.reduction_factor)])

    def text(self, rung: int) -> str:
        return f"rung {rung + 1} of {len(self.rungs)}"


def ladder_of(sweep: Sweep, recipe: Mapping[str, Any]) -> Ladder:
    """The ladder of a sweep with `halving` and its resolved recipe. Raises TrainingError (code 2) if the rungs would
    not lie on evaluations.
    """
    unit = "epoch" if recipe["train"]["steps"] is None else "step"
    length, cadence = _UNITS[unit]
    total, every = recipe["train"][length] or 1, recipe["eval"][cadence]
    _check_same_for_all(sweep)
    if every is None:
        _refuse(sweep, f"a trial of this recipe has train.{length}, so its rungs need eval.{cadence}, which is not set")
    wanted = sweep.halving.rungs
    rungs = wanted if isinstance(wanted, list) else _default_rungs(sweep, total, every, wanted)
    for rung in rungs:
        if rung % every != 0 or rung >= total:
            _refuse(sweep, f"there is no rung at {unit} {rung}: evaluations before the end of a trial, {unit} {total}, "
                           f"are at the multiples of {every} (eval.{cadence})")
    if not rungs:
        _refuse(sweep, f"a trial of {total} {length} has no evaluation before its end (eval.{cadence}: {every}), or "
                       f"{sweep.trials} trials are too few for a reduction_factor of {sweep.halving.reduction_factor}")
    return Ladder(unit, rungs, total, sweep.halving.reduction_factor)


def _default_rungs(sweep: Sweep, total: int, every: int, most: int | None) -> list[int]:
    """At the evaluations nearest to total / factor, total / factor^2, .., as many as leave at least one trial for the
    end.
    """
    factor = sweep.halving.reduction_factor
    count = 0
    while factor ** (count + 1) <= sweep.trials and (most is None or count < most):
        count += 1
    places = {max(1, round(total / factor**k / every)) * every for k in range(1, count + 1)}
    return sorted(place for place in places if place < total)


def _check_same_for_all(sweep: Sweep) -> None:
    """A rung must be the same share of every trial."""
    for section, keys in (("train", ("steps", "epochs")), ("eval", ("every_steps", "every_epochs"))):
        for key in keys:
            if f"{section}.{key}" in sweep.space.dimensions:
                _refuse(sweep, f"trials that differ in {section}.{key} cannot be compared at the same rungs")


def _refuse(sweep: Sweep, problem: str) -> None:
    path = ("halving", "rungs") if isinstance(sweep.halving.rungs, list) else ("halving",)
    raise TrainingError(f"{sweep.document.place(path)}: halving: {problem}", 2)
