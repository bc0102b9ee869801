"""The space of a search: recipe keys, and the values that each of them may take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..program import yaml_text
from ..yaml_files import KeyPath
from .reader import Reader, is_integer, is_number, nearest, shown

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Label = str | int | float | bool | None  # a value as Optuna stores it


@dataclass(frozen=True)
class Dimension:
    """A recipe key and its values."""

    key: str
    distribution: BaseDistribution
    choices: dict[Label, Any] | None = None  # of a choice: what Optuna stores -> the value itself
    points: int | None = None  # of a range: how many values a grid takes

    def value(self, stored: Label) -> Any:
        """The value that the recipe gets."""
        return stored if self.choices is None else self.choices[stored]

    def grid(self) -> list[Label] | None:
        """The values of a grid; None for a range that does not say how many points it has."""
        if self.choices is not None:
            return list(self.choices)
        low, high, step = (getattr(self.distribution, name) for name in ("low", "high", "step"))
        if self.points is not None:
            return self._spread(low, high)
        if step is None or self.distribution.log:
            return None
        count = math.floor((high - low) / step + 1e-9) + 1
        return [low + i * step for i in range(count)]

    def probes(self) -> list[Any]:
        """Values by which the program can check the key before anything is trained: all choices, or both ends."""
        if self.choices is not None:
            return list(self.choices.values())
        return [self.distribution.low, self.distribution.high]

    def _spread(self, low: float, high: float) -> list[Label]:
        """`points` values from low to high, evenly or, in a logarithmic range, with equal ratios."""
        shares = [i / (self.points - 1) if self.points > 1 else 0.5 for i in range(self.points)]
        if self.distribution.log:
            values = [low * (high / low) ** share for share in shares]
        else:
            values = [low + (high - low) * share for share in shares]
        # Rounding must not lead out of the range.
        values = [min(max(value, low), high) for value in values]
        return list(dict.fromkeys(map(round, values))) if isinstance(low, int) else values


@dataclass(frozen=True)
class Space:
    """All dimensions, in the order of the sweep file."""

    dimensions: dict[str, Dimension]

    def distributions(self) -> dict[str, BaseDistribution]:
        return {key: each.distribution for key, each in self.dimensions.items()}

    def values(self, params: Mapping[str, Label]) -> dict[str, Any]:
        """Recipe key -> value, for the parameters of a trial."""
        return {key: each.value(params[key]) for key, each in self.dimensions.items()}

    def grid(self) -> dict[str, list[Label]]:
        """The values of a grid. Only valid after `grid_problems` found none."""
        return {key: each.grid() or [] for key, each in self.dimensions.items()}

    def as_text(self) -> dict[str, str]:
        """Each dimension in one line, for comparing the spaces of two searches."""
        return {key: str(each.distribution) + (f" {each.points} points" if each.points else "")
                for key, each in self.dimensions.items()}


def read_space(reader: Reader, path: KeyPath = ("space",)) -> Space:
    """The space at this path of the document. Problems are noted in the reader."""
    dimensions = {}
    entries = reader.mapping(path)
    if not entries and isinstance(reader.at(path), dict):
        reader.wrong(path, "is empty; write a recipe key and its values, as in optimizer.lr: "
                           "{log_uniform: [1e-4, 1e-1]}")
    for key in entries:
        dimension = _dimension(reader, (*path, key))
        if dimension is not None:
            dimensions[key] = dimension
    return Space(dimensions)


def note_grid_problems(reader: Reader, space: Space, path: KeyPath = ("space",)) -> None:
    """Notes every range of which a grid cannot know the values."""
    for key, dimension in space.dimensions.items():
        if dimension.grid() is None:
            reader.wrong((*path, key), "the sampler 'grid' must know how many values this range has: add points: 5, "
                                       "or write a choice")


@dataclass(frozen=True)
class _Range:
    """A kind of range between two numbers."""

    whole: bool
    log: bool
    options: tuple[str, ...]

    def read(self, reader: Reader, path: KeyPath, name: str) -> Dimension | None:
        ends, step, points = (reader.at((*path, each)) for each in (name, "step", "points"))
        problem = self._problem(ends) or self._problem_of_step(step)
        if problem is None and points is not None and not (is_integer(points) and points >= 1):
            problem = f"points must be an integer >= 1, not {shown(points)}"
        if problem is not None:
            return reader.wrong(path, problem)
        return Dimension(str(path[-1]), self._distribution(ends[0], ends[1], step), points=points)

    def _problem(self, ends: object) -> str | None:
        is_kind, kind = (is_integer, "integers") if self.whole else (is_number, "numbers")
        if not (isinstance(ends, list) and len(ends) == 2 and all(map(is_kind, ends))):
            return f"must be two {kind}, [low, high], not {_listed(ends)}"
        if not all(map(math.isfinite, ends)):
            return "the ends of a range must be finite"
        if not ends[0] < ends[1]:
            return f"the low end, {ends[0]}, must be below the high end, {ends[1]}"
        if self.log and ends[0] <= 0:
            return f"the low end of a logarithmic range must be above 0, not {ends[0]}"
        return None

    def _problem_of_step(self, step: object) -> str | None:
        if step is None or (is_integer(step) if self.whole else is_number(step)) and step > 0:
            return None
        return f"step must be {'an integer' if self.whole else 'a number'} above 0, not {shown(step)}"

    def _distribution(self, low: Any, high: Any, step: Any) -> BaseDistribution:
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.whole:
            step = step or 1
            return IntDistribution(low, high - (high - low) % step, log=self.log, step=step)
        high = high if step is None else low + math.floor((high - low) / step + 1e-9) * step
        return FloatDistribution(float(low), float(high), log=self.log, step=step)


class _Choice:
    """A list of values of any kind. Optuna stores plain values as they are, and lists and mappings as texts."""

    options: tuple[str, ...] = ()

    def read(self, reader: Reader, path: KeyPath, name: str) -> Dimension | None:
        from optuna.distributions import CategoricalDistribution

        values = reader.at((*path, name))
        if not (isinstance(values, list) and values):
            return reader.wrong(path, f"must be a list of values, not {_listed(values)}")
        labels = [yaml_text(each) if isinstance(each, (list, dict)) else each for each in values]
        for i, label in enumerate(labels):
            # Optuna tells choices apart by ==, and for it 1, 1.0 and true are the same.
            if label in labels[:i]:
                return reader.wrong((*path, name, i), f"{shown(values[i])} stands here twice")
        return Dimension(str(path[-1]), CategoricalDistribution(labels), dict(zip(labels, values)))


# Name in a sweep file -> how its values are drawn.
_DISTRIBUTIONS: dict[str, _Range | _Choice] = {
    "choice": _Choice(),
    "uniform": _Range(whole=False, log=False, options=("step", "points")),
    "log_uniform": _Range(whole=False, log=True, options=("points",)),
    "int": _Range(whole=True, log=False, options=("step", "points")),
    "log_int": _Range(whole=True, log=True, options=("points",)),
}


def _dimension(reader: Reader, path: KeyPath) -> Dimension | None:
    entry = reader.at(path)
    names = list(_DISTRIBUTIONS)
    if not isinstance(entry, dict) or not entry:
        return reader.wrong(path, f"must be one of {', '.join(names)}, as in {{choice: [1, 2]}}, not {_listed(entry)}")
    given = [name for name in names if name in entry]
    others = [key for key in entry if key not in names]
    if not given:
        return reader.wrong((*path, others[0]), f"unknown distribution; {nearest(others[0], names)}")
    if len(given) > 1:
        return reader.wrong(path, f"must be one distribution, not {' and '.join(given)}")
    options = _DISTRIBUTIONS[given[0]].options
    for key in others:
        if key not in options:
            reader.wrong((*path, key), f"unknown key; {nearest(key, [given[0], *options])}")
    return _DISTRIBUTIONS[given[0]].read(reader, path, given[0])


def _listed(value: object) -> str:
    return yaml_text(value) if isinstance(value, list) and len(str(value)) < 60 else shown(value)

