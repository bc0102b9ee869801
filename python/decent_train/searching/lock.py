"""One search at a time in a folder."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..program import TrainingError


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the folder, which is made if it is not there. The kernel frees it when this process ends, however it ends.

    Raises TrainingError: code 2 if another search holds it or if it is the folder of something else, 6 if it cannot be
    written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "search.lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise TrainingError(f"cannot write to the folder '{folder}': {error.strerror}", 6) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise TrainingError(f"another search works in '{folder}' ({holder}): wait for its end, or choose "
                                "another output", 2) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on '{socket.gethostname()}' since {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
        file.flush()
        yield
