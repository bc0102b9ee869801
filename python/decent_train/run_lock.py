"""Whether a program holds the output folder of a run."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def is_held(folder: Path) -> bool:
    """Looks as the program itself does when it only looks: it asks for a shared lock for an instant, for which a run that starts
    waits. False on a file system without locks.
    """
    try:
        fd = os.open(folder / ".lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False
