"""Reads metrics.jsonl while a run writes it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import TrackingError

_CHUNK = 1 << 20


class Reader:
    """Gives the whole lines of a file that grows. A run that resumes puts a shortened file in its place: then reading
    begins anew. The file is opened to be read only, and may not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_afresh = False  # whether the last lines were the first of a file
        self.damaged = 0  # lines that are no JSON object with a kind and a step
        self._fd = -1
        self._rest = b""
        self._offset = 0

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def lines(self, final: bool = False) -> list[dict[str, Any]]:
        """The lines of the next part of the file; none if nothing is new. `final`: nobody writes any more, so a last
        line that is whole but for its line end counts.
        """
        self.is_afresh = False
        if not self._is_at_hand():
            return []
        part = os.pread(self._fd, _CHUNK, self._offset)
        self._offset += len(part)
        *lines, self._rest = (self._rest + part).split(b"\n")
        if final and not part and _object(self._rest) is not None:
            lines, self._rest = [self._rest], b""
        return [parsed for line in lines for parsed in self._parsed(line)]

    def _is_at_hand(self) -> bool:
        """Opens the file if it is new. The old one stays open until then, so that no other file gets its number."""
        try:
            now = os.stat(self.path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise TrackingError(f"cannot read '{self.path}': {error.strerror}") from error
        if self._fd >= 0:
            own = os.fstat(self._fd)
            if (own.st_dev, own.st_ino) == (now.st_dev, now.st_ino) and now.st_size >= self._offset:
                return True
        self.close()
        self._open()
        return self._fd >= 0

    def _open(self) -> None:
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return
        except OSError as error:
            raise TrackingError(f"cannot read '{self.path}': {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise TrackingError(f"'{self.path}' is not a file")
        self._fd, self._rest, self._offset = fd, b"", 0
        self.is_afresh = True

    def _parsed(self, text: bytes) -> Iterator[dict[str, Any]]:
        if not text.strip():
            return
        line = _object(text)
        if line is None or not isinstance(line.get("kind"), str) or type(line.get("step")) is not int:
            self.damaged += 1
        else:
            yield line


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None
