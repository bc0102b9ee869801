"""A process beside which a run is followed."""

from __future__ import annotations

from pathlib import Path


class Process:
    """Known by its number and its start, as numbers are given again."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._start = self._look()

    def lives(self) -> bool:
        return self._start is not None and self._look() == self._start

    def _look(self) -> str | None:
        """When it started, in ticks since the machine did; None if it has ended, even if nobody has asked how."""
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text(errors="replace")
        except OSError:
            return None
        state, *rest = text.rpartition(")")[2].split()  # the name may have blanks
        return None if state in "ZX" else rest[18]
