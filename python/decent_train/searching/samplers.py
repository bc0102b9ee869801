"""Optuna's samplers and pruners by the names that a sweep file has for them: a row each."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..yaml_files import KeyPath
from .reader import Reader, nearest

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler


@dataclass(frozen=True)
class Seeds:
    """What a sampler is made from."""

    search: int  # the seed of the search
    trial: int  # the seed of the trial that is to be sampled, below 2^32
    grid: Mapping[str, list[Any]]


@dataclass(frozen=True)
class _Kind:
    """A class of Optuna."""

    module: str
    name: str
    given: Callable[[Seeds], dict[str, Any]] = lambda _: {}  # the arguments that the search chooses
    needs: str | None = None  # a package that Optuna does not bring

    def make(self, seeds: Seeds, options: Mapping[str, Any]) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # many are "experimental"
            return self.cls()(**self.given(seeds), **options)

    def cls(self) -> Any:
        return getattr(importlib.import_module(self.module), self.name)

    def options(self) -> list[str]:
        """The names of the arguments that a sweep file may give."""
        taken = self.given(Seeds(0, 0, {}))
        return [name for name in inspect.signature(self.cls().__init__).parameters if name not in {"self", *taken}]


def _independent(seeds: Seeds) -> BaseSampler:
    """For the choices of a sampler that only knows numbers."""
    from optuna.samplers import RandomSampler

    return RandomSampler(seed=seeds.trial)


SAMPLERS = {
    "tpe": _Kind("optuna.samplers", "TPESampler", lambda s: {"seed": s.trial}),
    "random": _Kind("optuna.samplers", "RandomSampler", lambda s: {"seed": s.trial}),
    # Its seed is the order of the points, which must stay the same from trial to trial.
    "grid": _Kind("optuna.samplers", "GridSampler", lambda s: {"seed": s.search % 2**32, "search_space": s.grid}),
    "cmaes": _Kind("optuna.samplers", "CmaEsSampler", lambda s: {
        "seed": s.trial, "independent_sampler": _independent(s), "warn_independent_sampling": False}, needs="cmaes"),
    "gp": _Kind("optuna.samplers", "GPSampler", lambda s: {
        "seed": s.trial, "independent_sampler": _independent(s), "warn_independent_sampling": False}, needs="scipy"),
}

PRUNERS = {
    "median": _Kind("optuna.pruners", "MedianPruner"),
    "percentile": _Kind("optuna.pruners", "PercentilePruner"),
    "successive_halving": _Kind("optuna.pruners", "SuccessiveHalvingPruner"),
    "hyperband": _Kind("optuna.pruners", "HyperbandPruner"),
    "threshold": _Kind("optuna.pruners", "ThresholdPruner"),
}


@dataclass(frozen=True)
class Chosen:
    """A sampler or pruner as the sweep file names it."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def sampler(self, seeds: Seeds) -> BaseSampler:
        return SAMPLERS[self.name].make(seeds, self.options)

    def pruner(self) -> BasePruner:
        return PRUNERS[self.name].make(Seeds(0, 0, {}), self.options)

    def as_text(self) -> str:
        return self.name + (f" {self.options}" if self.options else "")


def read_chosen(reader: Reader, path: KeyPath, kinds: Mapping[str, _Kind], default: str | None) -> Chosen | None:
    """A name, or a mapping of `name` and arguments of Optuna's class. Problems are noted in the reader."""
    value = reader.at(path)
    if not isinstance(value, dict):
        name = reader.one_of(path, kinds, default)
        return None if name is None else _tried(reader, path, kinds[name], Chosen(name))
    if "name" not in value:
        return reader.wrong(path, f"needs a name; valid: {', '.join(kinds)}")
    name = reader.one_of((*path, "name"), kinds)
    if name is None:
        return None
    options = {key: each for key, each in value.items() if key != "name"}
    return _tried(reader, path, kinds[name], Chosen(name, options))


def _tried(reader: Reader, path: KeyPath, kind: _Kind, chosen: Chosen) -> Chosen | None:
    """Makes one, so that wrong arguments show before anything is trained."""
    if kind.needs is not None and importlib.util.find_spec(kind.needs) is None:
        return reader.wrong(path, f"'{chosen.name}' needs the package {kind.needs}: pip install {kind.needs}")
    valid = kind.options()
    unknown = [key for key in chosen.options if key not in valid]
    for key in unknown:
        reader.wrong((*path, key), f"unknown key; {nearest(key, ['name', *valid])}")
    if not unknown:
        try:
            kind.make(Seeds(0, 0, {"x": [0]}), chosen.options)
        except Exception as error:  # Optuna raises several kinds for one kind of mistake
            reader.wrong(path, str(error))
    return chosen
