"""What the output folder of a run tells without being read."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

SIGNS_OF_A_RUN = ("metrics.jsonl", "run.json", "checkpoints")  # a recipe.yaml may be a user's own


def is_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in SIGNS_OF_A_RUN)


def is_held(folder: Path) -> bool:
    """Whether a program holds the folder. Looks as the program itself does when it only looks: it asks for a shared lock for an
    instant, for which a run that starts waits. False on a file system without locks.
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
