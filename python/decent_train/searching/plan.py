"""What a search does next. All of it follows from the ledger, so that a search that was stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from optuna.trial import FrozenTrial, TrialState

from .ladder import Ladder
from .ledger import Ledger
from .sweep import Sweep

_BRACKETS = "brackets"  # attribute of the study: how many trials there were each time that the first rung was decided


@dataclass(frozen=True)
class Job:
    """A trial to train."""

    number: int
    rung: int | None  # until the evaluation of this rung, from 0; None: to its end


class Plan:
    """Without halving: trials that were interrupted, then new ones."""

    def __init__(self, sweep: Sweep, ledger: Ledger) -> None:
        self._sweep = sweep
        self._ledger = ledger

    def next(self, active: Collection[int]) -> Job | None:
        """The next job beside those of the trials `active`; None if there is none at the moment."""
        for trial in self._ledger.trials():
            if trial.state == TrialState.RUNNING and trial.number not in active:
                return Job(trial.number, None)
        if len(self._ledger.trials()) < self._sweep.trials:
            return Job(self._ledger.ask(), None)
        return None


class HalvingPlan:
    """All trials of a bracket come to a rung before any goes on from there.

    A bracket is what a search starts with. Trials that are added after its first rung was decided are a bracket of
    their own.
    """

    def __init__(self, sweep: Sweep, ledger: Ledger, ladder: Ladder, say: Callable[[str], None]) -> None:
        self._sweep = sweep
        self._ledger = ledger
        self._ladder = ladder
        self._say = say

    def next(self, active: Collection[int]) -> Job | None:
        """The next job beside those of the trials `active`; None if there is none until one of them has ended."""
        closed = self._ledger.attribute(_BRACKETS) or []
        begins = [0, *closed]
        for begin, end in zip(begins, [*closed, None]):
            job, is_waiting = self._next_of(begin, end, active)
            if job is not None or is_waiting:
                return job
        return None

    def _next_of(self, begin: int, end: int | None, active: Collection[int]) -> tuple[Job | None, bool]:
        """The next job of the bracket of trials from `begin` to before `end` (None: it takes new trials still), and
        whether the bracket waits for trials that are active.
        """
        trials = self._ledger.trials()
        members = [trial.number for trial in trials[begin:end]]
        if end is None and begin + len(members) >= self._sweep.trials and not members:
            return None, False
        for rung in range(len(self._ladder.rungs)):
            ahead = [n for n in members if not self._has_reached(trials[n], rung)]
            if job := self._first(ahead, rung, active):
                return job, False
            if rung == 0 and end is None and begin + len(members) < self._sweep.trials:
                return Job(self._ledger.ask(), 0), False
            if ahead:
                return None, True
            members = self._decide(trials, members, rung, end is None)
        ahead = [n for n in members if not trials[n].state.is_finished()]
        job = self._first(ahead, None, active)
        return job, bool(ahead) and job is None

    def _first(self, numbers: list[int], rung: int | None, active: Collection[int]) -> Job | None:
        return next((Job(number, rung) for number in numbers if number not in active), None)

    def _has_reached(self, trial: FrozenTrial, rung: int) -> bool:
        return trial.state == TrialState.FAIL or len(self._ledger.rungs(trial)) > rung

    def _decide(self, trials: list[FrozenTrial], members: list[int], rung: int, is_open: bool) -> list[int]:
        """Who goes on from a rung that all members have reached; the others end. Does nothing that was done before."""
        steps = {n: self._ledger.rungs(trials[n]) for n in members}
        values = {n: trials[n].intermediate_values[steps[n][rung]] for n in members if len(steps[n]) > rung}
        survivors = self._ladder.survivors(values, len(members), self._sweep.minimizes) if values else []
        if rung == 0 and is_open:
            # From here on no trial may join: what was decided would change.
            self._ledger.remember(_BRACKETS, [*(self._ledger.attribute(_BRACKETS) or []), len(trials)])
        ending = [n for n in values if n not in survivors and not trials[n].state.is_finished()]
        for number in ending:
            self._ledger.prune(number)
        if ending:
            self._say(f"{self._ladder.text(rung)} is decided: {len(survivors)} of {len(members)} trials go on "
                      f"({', '.join(map(str, survivors))})")
        return survivors
