"""A line of metrics.jsonl as trackers get it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# What tells a line from all others of its run. The first entry is its kind:
#     ["train", step]
#     ["eval", step]                                   an evaluation of the run
#     ["added", step, source, checkpoint, n]           the n-th evaluation that was added to the run later
#     ["resume", step, workers, before, lost]
#     ["end", step, status]
# A last entry {"back": step, "resumes": n} says that the tracker holds lines that no longer count: those of later steps
# (they were trained again by other workers), and the resume lines after the first n.
Identity = list[Any]


@dataclass(frozen=True)
class Row:
    """`values` has the numbers of the line under names such as "train/loss"; NaN where the run had no finite number."""

    identity: Identity
    values: dict[str, float]
    time: float  # seconds since the epoch; see Clock

    @property
    def kind(self) -> str:
        return self.identity[0]

    @property
    def step(self) -> int:
        return self.identity[1]

    @property
    def back(self) -> int | None:
        """The step after which earlier rows no longer count."""
        last = self.identity[-1]
        return last["back"] if isinstance(last, dict) else None
