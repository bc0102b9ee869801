"""All that was measured of each method: what a table and a picture of compare.py show."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

from comparison import LINKS, METHODS, Method, seconds
from losses import Losses, Trained
from timings import Timing, Timings


@dataclass(frozen=True)
class Row:
    """All that is known of a method with a number of workers."""

    method: Method
    workers: int
    trained: Trained | None
    timings: dict[int | None, Timing]  # by link
    rounds: dict[int | None, int]  # by link: those that all methods have, as the machine's speed differs between rounds

    def ms(self, mbit: int | None) -> float | None:
        """Of a step."""
        measured = self.timings[mbit].ms[: self.rounds[mbit]]
        return mean(measured) if measured else None

    def seconds(self, mbit: int | None) -> float | None:
        """To the target."""
        return seconds(self.trained.length if self.trained else None, self.ms(mbit))


def rows(losses: Losses, timings: Timings, workers: int) -> list[Row]:
    measured = {m.name: {mbit: timings.timing(m, workers, mbit) for mbit in LINKS} for m in METHODS.values()}
    shared = {mbit: min((len(of[mbit].ms) for of in measured.values() if of[mbit].ms), default=0) for mbit in LINKS}
    made = [Row(m, workers, losses.trained(m, workers), measured[m.name], shared) for m in METHODS.values()]
    return [row for row in made if row.trained or any(t.ms for t in row.timings.values())]
