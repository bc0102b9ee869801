"""When lines were written: metrics.jsonl does not say it."""

from __future__ import annotations

from typing import Any


class Clock:
    """The time of a line is worked out from the run's files alone, so that it is the same whoever sends the line, and
    when: the time of the start that trained the step, plus `step_ms` of every step since then. Evaluating and saving
    are not in it.
    """

    def __init__(self, starts: list[tuple[int, float]]) -> None:
        """`starts`: of each start the step after which it begins, and its time in seconds since the epoch."""
        self._starts = starts
        self._begin()

    def _begin(self) -> None:
        self._start = self._starts[0]
        self._step, self._seconds = self._start

    def restart(self, starts: list[tuple[int, float]]) -> None:
        """Before the file is read from its beginning again."""
        self._starts = starts
        self._begin()

    def add(self, starts: list[tuple[int, float]]) -> None:
        """The starts of the run, after a further one; the lines so far keep their times."""
        self._starts = starts

    def at(self, line: dict[str, Any]) -> float:
        """Seconds since the epoch; of lines in the order of the file."""
        step = line["step"]
        # A later start that begins before this step has trained it.
        start = [each for each in self._starts if each[0] < step or each == self._starts[0]][-1]
        if start != self._start:
            self._start = start
            self._step, seconds = start
            self._seconds = max(seconds, self._seconds)
        step_ms = line.get("step_ms")
        if line.get("kind") == "train" and isinstance(step_ms, (int, float)) and step > self._step:
            self._seconds += (step - self._step) * step_ms / 1000
            self._step = step
        return self._seconds
