"""What is the same for all trackers: each has a file of its own with a class like this one."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .ledger import Ledger
from .row import Row


@dataclass(frozen=True)
class Options:
    """As on the command line; None: the tracker's own default."""

    project: str = "decent-train"
    uri: str | None = None
    dir: Path | None = None
    host: str = "127.0.0.1"
    port: int = 9464


class Tracker(Protocol):
    """One run at a tracker. Its constructor takes the run's folder and the options, finds the run there or begins it,
    and raises Unreachable if the tracker does not answer and TrackingError if the user has to do something.
    """

    sent: Ledger  # what the tracker holds

    def send(self, rows: deque[Row]) -> None:
        """Takes rows from the left once the tracker holds them. Raises Unreachable; the rows that are left are not
        there, or it does no harm to send them again.
        """

    def describe(self) -> None:
        """The run has started again: its facts have changed. Raises Unreachable."""

    def tell(self, status: str) -> None:
        """How the run stands: completed, stopped, failed, killed or running. More may follow. Raises Unreachable."""

    def finish(self, status: str, files: list[Path]) -> None:
        """The end of the sending. `status` as for tell(); `files`: models and what belongs to them, empty if the user
        wants none. Raises Unreachable.
        """
