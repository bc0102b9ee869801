"""A trial while its program runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..program import TrainingError
from .evaluations import Evaluations
from .ladder import Ladder
from .ledger import Ledger
from .plan import Job
from .reader import nearest
from .resolved import base_arguments
from .sweep import Sweep
from .trial_process import TrialProcess, wait_until_free

DIVERGED = 5
_STOPPED = (75, 128 + 2, 128 + 15, -2, -15)  # saved, or before there was anything to save
_WELL = (0, DIVERGED, 75)  # how a trial may end that was told to


class Attempt:
    """Trains a trial until its rung, its end, or until the pruner ends it.

    What is decided follows from the evaluations alone, in their order. How far the program comes before its signal
    arrives has no influence.
    """

    def __init__(self, sweep: Sweep, ledger: Ledger, ladder: Ladder | None, job: Job) -> None:
        self._sweep = sweep
        self._ledger = ledger
        self._ladder = ladder
        self.job = job
        self.name = trial_name(job.number)
        self.folder = sweep.output / self.name
        trial = ledger.trials()[job.number]
        self.values = sweep.space.values(trial.params)
        self._reported = dict(trial.intermediate_values)
        self._evaluations = Evaluations(self.folder)
        self._process: TrialProcess | None = None
        self._last: tuple[int, float] | None = None  # step and value of the last evaluation
        self._decided = False
        self._stops = False
        self._begin = time.monotonic()

    def start(self, variables: Mapping[str, str]) -> None:
        """Starts the program, unless the evaluations of an earlier start are enough. Raises TrainingError."""
        wait_until_free(self.folder)
        self._read()
        if self._decided:
            return
        arguments = base_arguments(self._sweep, self.values, self.folder)
        workers = ["--workers", self._sweep.workers] if self._sweep.workers > 1 else []
        self._process = TrialProcess([*arguments, *workers, "--resume", "auto"], self._sweep.folder, variables)

    def stop(self) -> None:
        """The search ends: the trial is saved and stays unfinished."""
        self._stops = True
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        self._stops = True
        if self._process is not None:
            self._process.kill()

    def has_ended(self, say: Callable[[str], None]) -> bool:
        """Takes the new evaluations, and the end if it has come: then the ledger has its result.

        Raises TrainingError with the program's message and exit code if the search cannot go on.
        """
        code = None if self._process is None else self._process.code()
        self._read()
        if self._process is not None and code is None:
            return False
        self._end(code, say)
        return True

    def _read(self) -> None:
        for line in self._evaluations.new():
            if not self._decided:
                self._take(int(line["step"]), self._figure(line), line)
        if self._decided and self._process is not None:
            self._process.stop()

    def _figure(self, line: Mapping[str, Any]) -> float:
        if self._sweep.metric not in line:
            place = self._sweep.document.place(("metric",))
            raise TrainingError(f"{place}: metric: an evaluation has no '{self._sweep.metric}'; "
                                f"{nearest(self._sweep.metric, list(line))}", 2)
        value = line[self._sweep.metric]
        return math.nan if value is None else float(value)

    def _take(self, step: int, value: float, line: Mapping[str, Any]) -> None:
        self._last = step, value
        is_rung = self.job.rung is not None and self._ladder.is_reached(self.job.rung, line)
        if is_rung and self._process is not None:
            # Before anything is written: every further step is lost on a trial that does not go on.
            self._process.stop()
        if step not in self._reported:
            self._ledger.report(self.job.number, step, value)
            self._reported[step] = value
        if is_rung:
            self._decide(lambda: self._ledger.reach(self.job.number, step))
        # At evaluations that come a second time the pruner let the trial go on.
        elif self._sweep.pruner is not None and step == max(self._reported):
            if self._ledger.should_prune(self.job.number):
                self._decide(lambda: self._ledger.prune(self.job.number))

    def _decide(self, note: Callable[[], None]) -> None:
        note()
        self._decided = True

    # ---- the end --------------------------------------------------------------------------------

    def _end(self, code: int | None, say: Callable[[str], None]) -> None:
        if self._stops and (code in _STOPPED or code == -9):
            return
        if code is not None and code not in (_WELL if self._decided else (0, DIVERGED)):
            raise TrainingError(*self._failure(code))
        if self._decided:
            reached = "pruned" if self.job.rung is None else self._ladder.text(self.job.rung)
            return say(self._line(reached))
        if code == DIVERGED:
            self._ledger.fail(self.job.number, self._process.message())
            return say(f"{self.name}  failed: {self._process.message().splitlines()[0]}{self._parameters()}")
        self._complete(say)

    def _complete(self, say: Callable[[str], None]) -> None:
        """The program has done all steps, or train.stop has ended them."""
        if self._last is None:
            raise TrainingError(f"{self.name} has ended without an evaluation: set eval.every_steps or every_epochs", 2)
        step, value = self._last
        if self.job.rung is not None:
            self._ledger.reach(self.job.number, step)
            say(self._line(f"{self._ladder.text(self.job.rung)}, ended early"))
        elif math.isnan(value):
            self._ledger.fail(self.job.number, f"its {self._sweep.metric} is not a number")
            say(self._line("failed"))
        else:
            self._ledger.complete(self.job.number, value)
            say(self._line("completed"))

    def _failure(self, code: int) -> tuple[str, int]:
        if code == 75:
            return f"{self.name} was stopped by a signal and has saved; run the same command again to go on", 75
        if code < 0:
            return f"{self.name} was ended by signal {-code}; its log is '{self.folder / 'run.log'}'", 128 - code
        message = self._process.message() or f"decent-train ended with {code}; its log is '{self.folder / 'run.log'}'"
        return f"{self.name}{self._parameters()}: {message}", code

    def _line(self, what: str) -> str:
        step, value = self._last
        seconds = time.monotonic() - self._begin
        figures = f"step {step}  {self._sweep.metric} {value:.6g}  {seconds:.1f} s"
        return f"{self.name}  {what}  {figures}{self._parameters()}"

    def _parameters(self) -> str:
        return "  " + parameters_text(self.values)


def trial_name(number: int) -> str:
    """The name of a trial's folder."""
    return f"trial-{number:04d}"


def parameters_text(values: Mapping[str, Any]) -> str:
    """The values of a trial in one line."""
    def text(value: object) -> str:
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    return " ".join(f"{key}={text(value)}" for key, value in values.items())
