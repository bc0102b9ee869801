"""The signals that ask a search to stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """Counts Ctrl-C, SIGTERM and SIGHUP while it is entered, but for those that are ignored: nohup ignores SIGHUP. Only the
    main thread of a process can have them.
    """

    def __init__(self) -> None:
        self.count = 0
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    before = signal.signal(number, self._note)
                    self._before[number] = signal.SIG_DFL if before is None else before
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
