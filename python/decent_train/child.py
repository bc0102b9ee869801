"""The program as a child process that Python waits for, that Ctrl-C stops, and that never outlives Python."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any

from .program import environment

# Becomes the program after it has asked the kernel for a SIGTERM at the end of its parent, on which the program saves. Not
# preexec_fn of subprocess: its code would run in a copy of this process, whose other threads may hold locks.
_LAUNCH = """
import ctypes, os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # not ignored, as it is in a job in the background
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
if os.getppid() != int(sys.argv[1]):
    os._exit(128 + signal.SIGTERM)
try:
    os.execv(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"decent-train: error: cannot start '{sys.argv[2]}': {error.strerror}")
"""
_TICK_S = 0.1
_SAVES_S = 30  # after a first signal: a step and a save


def start(command: Sequence[str], *, stdout: IO[Any] | int, stderr: IO[Any] | int, cwd: Path | None = None,
          variables: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Starts the program in a session of its own: a Ctrl-C in the terminal reaches Python alone, which then decides.

    The kernel's signal at the end of the parent comes at the end of the *thread* that has started the child: that thread must
    wait for it.
    """
    launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *command]
    # SIGINT stays blocked until the program takes signals; its workers clear what is blocked.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(launch, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, cwd=cwd,
                                env={**environment(), **(variables or {})}, start_new_session=True)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Child:
    """The program while Python waits for it. See start()."""

    def __init__(self, command: Sequence[str], stdout: IO[str] | int) -> None:
        self.process = start(command, stdout=stdout, stderr=subprocess.PIPE)
        self.asked = 0  # how often it was asked to stop
        self.suspended = 0  # how often

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Whatever ended the wait: the program is asked to save, and ended if it does not."""
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_SAVES_S)
        self.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def interrupt(self) -> None:
        """The first time the program saves and stops, the second time it ends at once."""
        self.asked += 1
        if self.asked > 1:
            self.kill()
        elif self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)

    def suspend(self) -> None:
        """Stops the program and this process, as Ctrl-Z does, until the shell lets this process go on."""
        self.suspended += 1
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Ends the program and its workers at once. Its process group exists until the last of them has ended."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self, on_out: Callable[[bytes], None], on_err: Callable[[bytes], None], tick: Callable[[], None]) -> int:
        """Passes on what the program writes, calls `tick` some times a second, and returns its exit code, or minus the signal
        that ended it.
        """
        with selectors.DefaultSelector() as selector:
            for pipe, take in ((self.process.stdout, on_out), (self.process.stderr, on_err)):
                if pipe is not None:
                    selector.register(pipe, selectors.EVENT_READ, take)
            while selector.get_map():
                ended = self.process.poll() is not None
                ready = selector.select(0 if ended else _TICK_S)
                for key, _ in ready:
                    text = os.read(key.fd, 1 << 16)
                    if text:
                        key.data(text)
                    else:
                        selector.unregister(key.fileobj)
                tick()
                if ended and not ready:
                    break  # a stranger has inherited the other end of a pipe
        while self.process.poll() is None:
            time.sleep(_TICK_S / 2)
            tick()
        return self.process.returncode


class Keys:
    """While it lasts, Ctrl-C and Ctrl-Z are counted, in place of raising KeyboardInterrupt somewhere in the middle of
    things or of stopping Python alone. Only the main thread can have this, and only there Python raises KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.ctrl_c = 0
        self.ctrl_z = 0
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int] = {}

    def __enter__(self) -> Keys:
        if threading.current_thread() is threading.main_thread():
            # Where SIGINT is ignored (a job in the background), it stays so; so does another program's own Ctrl-Z.
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                self._count(signal.SIGINT)
            if signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:
                self._count(signal.SIGTSTP)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _count(self, number: signal.Signals) -> None:
        before = signal.signal(number, self._pressed)
        self._before[number] = signal.SIG_DFL if before is None else before

    def _pressed(self, number: int, _: object) -> None:
        if number == signal.SIGINT:
            self.ctrl_c += 1
        else:
            self.ctrl_z += 1
