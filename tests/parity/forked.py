"""The workers of one group as children of one process, so that PyTorch is imported once for all of them."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

Main = Callable[[Path, list[str]], None]


def fork_workers(main: Main) -> None:
    """Runs main(FOLDER, CASES) in N processes, for a script that is called with N PORT FOLDER CASE...

    Forks before the first kernel runs: the threads of autograd and of OpenMP do not live on in a child. As under torchrun,
    a worker that fails ends the others.
    """
    workers, port, folder, *cases = sys.argv[1:]
    left = {_fork(rank, int(workers), port, lambda: main(Path(folder), cases)) for rank in range(int(workers))}
    failed = False
    while left:
        pid, status = os.wait()
        left.remove(pid)
        if status != 0 and not failed:
            failed = True
            for other in left:
                os.kill(other, signal.SIGKILL)
    sys.exit(failed)


def _fork(rank: int, workers: int, port: str, work: Callable[[], None]) -> int:
    """The child's process id. The child does not return."""
    pid = os.fork()
    if pid != 0:
        return pid
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(workers), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(workers),
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
