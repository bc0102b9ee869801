"""One run on its way to a tracker."""

from __future__ import annotations

import enum
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .clock import Clock
from .errors import TrackingError, Unreachable
from .folder import RunFolder
from .news import News
from .process import Process
from .reader import Reader
from .row import Row
from .tracker import Options, Tracker

_LONGEST_PAUSE_S = 30.0


class Mode(enum.Enum):
    DEFAULT = "default"  # as long as a program holds the folder
    ONCE = "once"  # what there is now
    FOLLOW = "follow"  # until the run has completed, over stops, kills and resumes
    FOREVER = "forever"  # whatever comes


@dataclass(frozen=True)
class Plan:
    """What is the same for all runs of a command."""

    tracker: Callable[[RunFolder, Options], Tracker]
    options: Options
    mode: Mode = Mode.DEFAULT
    artifacts: bool = True
    beside: Process | None = None  # follow each run until this process has ended
    patience_s: float = 60  # how long a tracker is asked in vain where no more is to come
    say: Callable[[str], None] = lambda text: None  # for warnings
    # Keeps others from sending the run as long as the result lives.
    claim: Callable[[RunFolder], object] = lambda folder: None


class Feed:
    """Reads a run and sends what the tracker has not got. While the tracker does not answer, nothing more is read: the
    run's own file is the queue.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.folder = RunFolder(path)
        self.is_done = False
        self._plan = plan
        self._tracker: Tracker | None = None
        self._news = News()
        self._reader = Reader(self.folder.metrics)
        self._rows: deque[Row] = deque()  # read and not yet sent
        self._id = ""  # of the run that the tracker was told of
        self._claims: dict[str, object] = {}
        self._status = ""  # that the tracker was told last
        self._failed_at: float | None = None  # since when the tracker does not answer
        self._again_at, self._pause_s = 0.0, 1.0

    def work(self) -> bool:
        """Sends a part of what there is. Returns whether more may be there at once. Raises TrackingError."""
        if self.is_done or time.monotonic() < self._again_at:
            return False
        is_last = self._is_over()  # asked before reading, as the run may end in between
        try:
            if self._pass_on(final=is_last):
                self._note_answer()
                return True
            if is_last:
                self._finish()
                self.is_done = True
            else:
                self._tell(self._state())
            self._note_answer()
        except Unreachable as error:
            self._note_failure(error, is_last)
        return False

    def end(self) -> None:
        """Sends what is there, whether or not the run goes on. Raises TrackingError."""
        if self.is_done:
            return
        try:
            while self._pass_on(final=self._is_over()):
                pass
            self._finish()
        except Unreachable as error:
            raise _given_up(error) from error
        self.is_done = True

    def close(self) -> None:
        self._reader.close()

    def _is_over(self) -> bool:
        """Whether nothing more is to come, as far as the user wants to wait for it."""
        mode = self._plan.mode
        if mode is Mode.ONCE or mode is Mode.FOREVER:
            return mode is Mode.ONCE
        if self._plan.beside is not None:
            return not self._plan.beside.lives()
        return not self.folder.lives() and (mode is Mode.DEFAULT or self._news.ended == "completed")

    def _pass_on(self, final: bool) -> bool:
        """Returns whether anything was read or sent."""
        if not self._is_ready(final):
            return False
        if self._rows:
            self._send()
            return True
        lines = list(self._reader.lines(final))
        if self._reader.is_afresh:
            self._news.restart(self.folder.start_times())
        self._rows.extend(row for line in lines if (row := self._news.row(line)) is not None)
        self._send()
        return bool(lines)

    def _send(self) -> None:
        if self._rows and self._tracker is not None:
            self._tell("running")
            self._tracker.send(self._rows)

    def _is_ready(self, final: bool) -> bool:
        """Whether the run has begun and the tracker knows it."""
        changed = self.folder.refresh()
        if not self.folder.id or not (self.folder.starts or final or not self.folder.lives()):
            return False  # a run that begins writes run.json soon
        if self.folder.id != self._id:
            self._begin()
        elif changed and self._tracker is not None:
            self._news.clock.add(self.folder.start_times())
            self._redo(self._tracker.describe)
        return True

    def _redo(self, call: Callable[[], None]) -> None:
        """A call that is made again if it fails, after the next look at the run's facts."""
        try:
            call()
        except Unreachable:
            self.folder.forget()
            raise

    def _begin(self) -> None:
        """Also where another run has taken the place of the one before: one without checkpoints was started afresh."""
        if self._tracker is not None:
            self._tracker.finish("killed", [])
            self._tracker = None
        if self.folder.id not in self._claims:
            self._claims[self.folder.id] = self._plan.claim(self.folder)
        self._tracker = self._plan.tracker(self.folder, self._plan.options)
        self._news = News(self._tracker.sent.copy(), Clock(self.folder.start_times()))
        self._reader.close()
        self._reader = Reader(self.folder.metrics)
        self._rows.clear()
        self._id, self._status = self.folder.id, "running"

    def _tell(self, status: str) -> None:
        if self._tracker is not None and status != self._status:
            self._tracker.tell(status)
            self._status = status

    def _finish(self) -> None:
        if self._tracker is None:
            return
        status = self._state()
        files = self.folder.files() if self._plan.artifacts and status != "running" else []
        self._tracker.finish(status, files)
        if self._reader.damaged:
            self._plan.say(f"'{self.folder.metrics}' has lines that are damaged: {self._reader.damaged}")

    def _state(self) -> str:
        """completed, stopped, failed, killed or running."""
        return "running" if self.folder.lives() else self._news.ended or "killed"

    def _note_failure(self, error: Unreachable, is_last: bool) -> None:
        now = time.monotonic()
        if self._failed_at is None:
            self._failed_at = now
            self._plan.say(f"{error}; trying again")
        elif is_last and now - self._failed_at > self._plan.patience_s:
            raise _given_up(error) from error
        self._again_at = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def _note_answer(self) -> None:
        if self._failed_at is not None:
            self._plan.say("the tracker answers again")
        self._failed_at, self._again_at, self._pause_s = None, 0.0, 1.0


def _given_up(error: Unreachable) -> TrackingError:
    return TrackingError(f"{error}. What is missing is sent when decent-track is started again", 3)
