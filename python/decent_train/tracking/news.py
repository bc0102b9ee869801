"""Tells the lines of metrics.jsonl that a tracker has not got from those that it has."""

from __future__ import annotations

import math
from typing import Any

from .clock import Clock
from .ledger import Ledger, added_key
from .row import Identity, Row

_NO_FIGURES = {"kind", "step", "lost"}


class News:
    """Sees all lines of a run in the order of the file, from the first on; begins again when the file is replaced."""

    def __init__(self, ledger: Ledger | None = None, clock: Clock | None = None) -> None:
        self.ledger = ledger or Ledger()  # what the tracker will have when it has all rows so far
        self.clock = clock or Clock([(0, 0.0)])
        self._begin()

    def restart(self, starts: list[tuple[int, float]]) -> None:
        """The file is read from its beginning (again)."""
        self.clock.restart(starts)
        self._begin()

    def _begin(self) -> None:
        self.ended: str | None = None  # how, if the last line says so; evaluations may follow
        self._resumes = 0  # seen
        self._evals: set[int] = set()  # steps whose evaluation was seen
        self._highest_eval = -1
        self._added: dict[str, int] = {}  # seen

    def row(self, line: dict[str, Any]) -> Row | None:
        """What the tracker has to get; None if it has it, or if the line is of a kind that this version does not know.
        """
        time = self.clock.at(line)
        if line["kind"] != "eval":
            self.ended = str(line.get("status")) if line["kind"] == "end" else None
        identity = self._identity(line)
        if identity is None:
            return None
        self.ledger.note(identity)
        return Row(identity, _values(identity[0], line), time)

    def _identity(self, line: dict[str, Any]) -> Identity | None:
        kind, step = line["kind"], line["step"]
        if kind == "resume":
            return self._resume([step, line.get("workers"), line.get("before"), line.get("lost")])
        if kind == "train":
            return self._figures(["train", step], self.ledger.train)
        if kind == "eval":
            return self._eval(step, str(line.get("source", "")), str(line.get("checkpoint", "")))
        if kind == "end":
            end = [step, line.get("status")]
            return None if self.ledger.end == end else ["end", *end]
        return None

    def _resume(self, resume: list[Any]) -> Identity | None:
        """Other workers go on from this step: what the tracker has of later steps no longer counts."""
        known = self.ledger.resumes
        seen, self._resumes = self._resumes, self._resumes + 1
        if known[seen:seen + 1] == [resume]:
            return None
        back = min([resume[0], *(each[0] for each in known[seen:seen + 1])])
        return ["resume", *resume, {"back": back, "resumes": seen}]

    def _eval(self, step: int, source: str, checkpoint: str) -> Identity | None:
        """--eval-only adds lines: of other data, or of a step that was evaluated or passed before."""
        if not source and not checkpoint and step > self._highest_eval:
            self._highest_eval = step
            return self._figures(["eval", step], self.ledger.eval)
        key = added_key(step, source, checkpoint)
        self._added[key] = number = self._added.get(key, 0) + 1
        return ["added", step, source, checkpoint, number] if number > self.ledger.added.get(key, 0) else None

    def _figures(self, identity: Identity, known: Any) -> Identity | None:
        step = identity[1]
        # The tracker was told of a resume at an earlier step that is no more: the run went back before it.
        missing = self.ledger.resumes[self._resumes:self._resumes + 1]
        if missing and step > missing[0][0]:
            return [*identity, {"back": missing[0][0], "resumes": self._resumes}]
        return None if step in known else identity


def _values(kind: str, line: dict[str, Any]) -> dict[str, float]:
    prefix = "eval_added" if kind == "added" else kind
    values = {f"{prefix}/{name}": _number(value) for name, value in line.items()
              if name not in _NO_FIGURES and (value is None or isinstance(value, (bool, int, float)))}
    if kind == "resume":
        values["resume/lost"] = float(len(line.get("lost") or []))
    return values


def _number(value: float | None) -> float:
    """A number that is not finite is null in the file."""
    if value is None:
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan
