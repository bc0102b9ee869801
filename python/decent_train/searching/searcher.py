"""Runs the trials of a search."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


from ..program import TrainingError
from .attempt import Attempt, trial_name
from .ladder import Ladder
from .ledger import Ledger, storage_of
from .plan import HalvingPlan, Plan
from .resolved import Resolved
from .slots import slots_of
from .stop_signals import StopSignals
from .sweep import Sweep

_POLL_S = 0.01
_LADDER = "ladder"  # attribute of the study: the rungs, which must not change when trials are added


def identity_of(sweep: Sweep, resolved: Resolved) -> dict[str, Any]:
    """What decides which trials a search has."""
    halving = sweep.halving
    return {
        "recipe": f"{sweep.recipe.name} of SHA-256 {resolved.digest}",
        "space": sweep.space.as_text(),
        "metric": f"{sweep.metric}, {sweep.direction}",
        "seed": sweep.seed,
        "sampler": sweep.sampler.as_text(),
        "pruner": sweep.pruner.as_text() if sweep.pruner else None,
        "halving": f"reduction_factor {halving.reduction_factor}, rungs {halving.rungs}" if halving else None,
        "workers": sweep.workers,
    }


def check_folder(sweep: Sweep) -> None:
    """Raises TrainingError (code 2) if the output is the folder of a run, or has trials but no ledger of them."""
    if any((sweep.output / name).exists() for name in ("recipe.yaml", "metrics.jsonl", "checkpoints")):
        raise TrainingError(f"'{sweep.output}' is the folder of a run: choose another output for the search", 2)
    if not storage_of(sweep.output).exists() and any(sweep.output.glob("trial-*")):
        name = storage_of(sweep.output).name
        raise TrainingError(f"'{sweep.output}' has trials, but not the {name} with their parameters: "
                            "remove them, or choose another output", 2)


class Searcher:
    """Keeps as many trials running as there are slots, until the plan has no more."""

    def __init__(self, sweep: Sweep, resolved: Resolved, ladder: Ladder | None, ledger: Ledger,
                 say: Callable[[str], None]) -> None:
        self._sweep = sweep
        self._ledger = ledger
        self._say = say
        self._slots = slots_of(sweep, resolved.keys)
        self._ladder = None if ladder is None else self._settled(ladder)
        self._plan = Plan(sweep, ledger) if self._ladder is None else HalvingPlan(sweep, ledger, self._ladder, say)
        self._running: dict[int, Attempt] = {}  # by slot
        self._error: TrainingError | None = None

    def run(self, signals: StopSignals) -> None:
        """To the end of the search. Raises TrainingError: of a trial that ends the search, or with code 75 after a
        signal.
        """
        self._check_trials()
        self._say(self._beginning())
        try:
            while self._step(signals):
                time.sleep(_POLL_S)
        finally:
            for attempt in self._running.values():
                attempt.kill()
        if self._error is not None:
            raise self._error
        if signals.count > 1:
            raise TrainingError("ended at once; run the same command again to go on from what was saved before", 130)
        if signals.count and self._done() < self._sweep.trials:
            raise TrainingError(f"stopped: {self._done()} of {self._sweep.trials} trials are done, the others are "
                                "saved; run the same command again to go on", 75)

    def _step(self, signals: StopSignals) -> bool:
        """Looks at all trials once. Returns whether the search goes on."""
        if signals.count > 1:
            return False
        changed = not self._running
        for slot, attempt in list(self._running.items()):
            if self._has_ended(attempt):
                del self._running[slot]
                changed = True
        if signals.count or self._error is not None:
            for attempt in self._running.values():
                attempt.stop()
        elif changed:
            self._fill()
        return bool(self._running)

    def _has_ended(self, attempt: Attempt) -> bool:
        try:
            return attempt.has_ended(self._say)
        except TrainingError as error:
            self._error = self._error or error
            attempt.kill()
            return True

    def _fill(self) -> None:
        """Starts trials in the slots that are free."""
        for slot, variables in enumerate(self._slots):
            if slot in self._running or self._error is not None:
                continue
            job = self._plan.next({attempt.job.number for attempt in self._running.values()})
            if job is None:
                return
            attempt = Attempt(self._sweep, self._ledger, self._ladder, job)
            try:
                attempt.start(variables)
            except TrainingError as error:
                self._error = error
            else:
                self._running[slot] = attempt

    # ---- before and after -----------------------------------------------------------------------

    def _settled(self, ladder: Ladder) -> Ladder:
        """The ladder that the first trials had, if there are some."""
        stored = self._ledger.attribute(_LADDER)
        if stored is not None and self._ledger.trials():
            return Ladder(**stored)
        self._ledger.remember(_LADDER, ladder.__dict__)
        return ladder

    def _check_trials(self) -> None:
        """A trial's folder and its parameters belong together."""
        there = len(self._ledger.trials())
        if self._sweep.trials < there:
            place = self._sweep.document.place(("trials",))
            raise TrainingError(f"{place}: trials: there are {there} already, so it cannot be {self._sweep.trials}", 2)
        for folder in sorted(self._sweep.output.glob("trial-*")):
            if folder.name not in map(trial_name, range(there)):
                raise TrainingError(f"'{folder}' is no trial of this search: remove it, or choose another output", 2)

    def _done(self) -> int:
        return sum(trial.state.is_finished() for trial in self._ledger.trials())

    def _beginning(self) -> str:
        sweep = self._sweep
        text = (f"search in '{sweep.output}': {sweep.trials} trials of '{sweep.recipe}', {sweep.direction} "
                f"{sweep.metric}")
        if len(self._slots) > 1:
            text += f", {len(self._slots)} at a time"
        if there := len(self._ledger.trials()):
            text += f"\ngoes on: {there} trials are there, {self._done()} of them done"
        if self._ladder is not None:
            rungs = ", ".join(map(str, self._ladder.rungs))
            text += (f"\nhalving: after {self._ladder.unit} {rungs} of {self._ladder.total} the best 1 in "
                     f"{self._ladder.reduction_factor} go on")
        return text
