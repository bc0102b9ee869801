"""What a search has found."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..program import leaves, run
from ..yaml_files import read, write
from .attempt import parameters_text, trial_name
from .ledger import STUDY, Ledger, storage_address, storage_of
from .sweep import Sweep

if TYPE_CHECKING:
    import optuna

_MOST_IN_PAGE = 100  # runs; the figures of more would make a page that browsers open slowly
# Optuna's states as a table says them, in the order of the ranks.
_STATES = {"COMPLETE": "completed", "PRUNED": "pruned", "RUNNING": "unfinished", "FAIL": "failed"}


@dataclass(frozen=True)
class Trial:
    """A run of the search."""

    number: int
    values: dict[str, Any]  # recipe key -> what the search chose
    state: str  # completed | pruned | unfinished | failed
    metric: float | None  # of the last evaluation that counts; None if there is none
    step: int | None  # of that evaluation
    evaluations: dict[int, float]  # step -> metric
    folder: Path
    message: str = ""  # of a failed trial


@dataclass(frozen=True)
class Search:
    """The trials of a search, and the files that it ends with."""

    folder: Path
    metric: str
    direction: str  # minimize | maximize
    trials: list[Trial]  # by number
    best_recipe: Path | None  # best.yaml; None if no trial was completed
    page: Path | None  # compare.html; None if no trial has begun

    @property
    def best(self) -> Trial | None:
        """The completed trial with the best metric; None if there is none."""
        ranked = self.ranked
        return ranked[0] if ranked and ranked[0].state == "completed" else None

    @cached_property
    def ranked(self) -> list[Trial]:
        """Completed trials first, then pruned ones: those that came further first. The best of equally far ones first.
        """
        order = list(_STATES.values())

        def place(trial: Trial) -> tuple[Any, ...]:
            value = math.nan if trial.metric is None else trial.metric
            # Evaluations, not steps: batches of another size make other steps.
            far = 0 if trial.state == "completed" else len(trial.evaluations)
            return order.index(trial.state), -far, math.isnan(value), value if self.direction == "minimize" else -value

        return sorted(self.trials, key=place)

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row for each trial, the best first: rank, trial, the chosen keys, step, the metric, state."""
        return [{"rank": rank, "trial": trial.number, **trial.values, "step": trial.step, self.metric: trial.metric,
                 "state": trial.state} for rank, trial in enumerate(self.ranked, 1)]

    def study(self) -> optuna.Study:
        """Optuna's study of these trials, from its storage."""
        import optuna

        return optuna.load_study(study_name=STUDY, storage=storage_address(storage_of(self.folder)))

    def __str__(self) -> str:
        return table_text(self.table)


def result_of(sweep: Sweep, ledger: Ledger) -> Search:
    """The trials as the ledger has them. Writes best.yaml and compare.html."""
    trials = [_trial(sweep, ledger, each) for each in ledger.trials()]
    found = Search(sweep.output, sweep.metric, sweep.direction, trials, None, None)
    best = None if found.best is None else _write_best(sweep, found.best)
    return Search(sweep.output, sweep.metric, sweep.direction, trials, best, _write_page(found))


def _trial(sweep: Sweep, ledger: Ledger, trial: Any) -> Trial:
    reported = {step: value for step, value in sorted(trial.intermediate_values.items())}
    last = max(reported, default=None)
    value = trial.value if trial.state.name == "COMPLETE" else reported.get(last)
    return Trial(trial.number, sweep.space.values(trial.params), _STATES[trial.state.name], value, last, reported,
                 sweep.output / trial_name(trial.number), ledger.message(trial))


def _write_best(sweep: Sweep, best: Trial) -> Path:
    """The recipe of the best trial: that of the search, with what the search has set and chosen."""
    path = sweep.output / "best.yaml"
    resolved = read(best.folder / "recipe.yaml").value
    keys: dict[str, Any] = {"extends": os.path.relpath(sweep.recipe.resolve(), path.parent.resolve())}
    for key, value in leaves({**sweep.set, **best.values}):
        _put(keys, key.split("."), _as_resolved(value, resolved, key.split(".")))
    write(path, keys, comment=f"The best of {sweep.metric} in this search: {best.folder.name}, {best.metric:.6g}.")
    return path


def _as_resolved(value: Any, resolved: Any, path: list[str]) -> Any:
    """The value, with texts as the resolved recipe has them: relative paths started at another folder than here."""
    for key in path:
        resolved = resolved.get(key) if isinstance(resolved, dict) else None
    has_text = isinstance(value, str) or (isinstance(value, list) and any(isinstance(each, str) for each in value))
    return resolved if has_text and resolved is not None else value


def _put(keys: dict[str, Any], path: list[str], value: Any) -> None:
    """Sets a key as --set does."""
    for key in path[:-1]:
        if not isinstance(keys.get(key), dict):
            keys[key] = {}
        keys = keys[key]
    keys[path[-1]] = value


def _write_page(found: Search) -> Path | None:
    """The best runs in one page."""
    folders = [trial.folder for trial in found.ranked if (trial.folder / "recipe.yaml").exists()]
    if not folders:
        return None
    page = found.folder / "compare.html"
    run(["--report", *folders[:_MOST_IN_PAGE], "--out", page])
    return page


def table_text(rows: list[dict[str, Any]]) -> str:
    """The rows in columns."""
    if not rows:
        return "no trials"
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def best_line(found: Search) -> str:
    """The last line of a search."""
    if found.best is None:
        return "no trial was completed"
    best = found.best
    return (f"best: {best.folder.name}, {found.metric} {best.metric:.6g}  {parameters_text(best.values)}\n"
            f"its recipe: {found.best_recipe}\nall runs:   {found.page}")
