"""One process at a time sends a run to a place."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import time
from pathlib import Path

from .errors import TrackingError
from .folder import RunFolder
from .tracker import Options


class Claim:
    """A lock on a file of decent-track's own, kept as long as this object lives; the system frees it when the process
    ends. Two processes would send the same lines at once.
    """

    def __init__(self, folder: RunFolder, tracker: str, options: Options, state: Path | None = None,
                 patience_s: float = 0) -> None:
        """`patience_s`: how long to wait for another process to end. Raises TrackingError if it does not."""
        self._fd = -1
        place = "\n".join((tracker, options.project, str(options.uri), str(options.dir), folder.id))
        base = state or _state_folder()
        path = base / f"{hashlib.sha256(place.encode()).hexdigest()[:24]}.lock"
        try:
            base.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise TrackingError(f"cannot write to '{base}': {error.strerror}; choose another place for decent-track's "
                                "locks with --state DIR", 6) from error
        self._take(folder, patience_s)

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def _take(self, folder: RunFolder, patience_s: float) -> None:
        end = time.monotonic() + patience_s
        while not self._try():
            if time.monotonic() >= end:
                holder = os.pread(self._fd, 100, 0).decode(errors="replace").strip()
                raise TrackingError(f"another decent-track (process {holder}) sends the run in '{folder.path}' to the "
                                    "same place already")
            time.sleep(0.1)
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def _try(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True


def _state_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path(os.environ.get("HOME") or "/", ".local", "state")
    folder = Path(base, "decent-train", "track")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a container's user without a home
        return Path(tempfile.gettempdir(), f"decent-train-{os.getuid()}", "track")
    return folder
