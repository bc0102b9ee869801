"""The evaluations of a living run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class Evaluations:
    """Reads the lines of evaluations of metrics.jsonl as they are written.

    A resumed run replaces the file: it is then read from its beginning again, and evaluations may come a second time,
    with the same figures.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "metrics.jsonl"
        self._file = 0  # inode
        self._offset = 0  # of the first byte that was not read

    def new(self) -> list[dict[str, Any]]:
        """The evaluations that were written since the last call, oldest first."""
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._file or status.st_size < self._offset:
                    self._file, self._offset = status.st_ino, 0
                if status.st_size == self._offset:
                    return []
                file.seek(self._offset)
                whole = file.read().rpartition(b"\n")[0]
        except FileNotFoundError:
            return []
        self._offset += len(whole) + 1 if whole else 0
        return [line for line in map(_evaluation, whole.split(b"\n")) if line is not None]


def _evaluation(text: bytes) -> dict[str, Any] | None:
    """The line if it is one of the run's own evaluations after an update."""
    if b'"eval"' not in text:
        return None
    try:
        line = json.loads(text)
    except ValueError:  # a line that a killed process left
        return None
    own = line.get("kind") == "eval" and "source" not in line and "checkpoint" not in line
    return line if own and line["step"] > 0 else None
