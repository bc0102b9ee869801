"""How the progress of a training is shown: the program's own bar in a terminal, a display in a notebook, else lines."""

from __future__ import annotations

import codecs
import html
import os
import re
import subprocess
import sys
import time
from typing import IO, Any

from .program import message_of

_BETWEEN_UPDATES_S = 0.25  # of a notebook's display
_STEP = re.compile(r"step +(\d+)/(\d+) ")
_CONTROL = re.compile(r"\x1b\[K")


def view_for(quiet: bool) -> View:
    """What fits where Python's output goes."""
    if quiet or sys.stdout is None:
        return View()
    shell = _shell()
    if shell is not None and hasattr(shell, "kernel"):
        return NotebookView()
    return TerminalView() if _is_terminal(sys.stdout) else LinesView()


def _shell() -> object | None:
    """IPython's, if this code runs in it."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _is_terminal(stream: IO[str]) -> bool:
    try:
        return os.isatty(stream.fileno())
    except (OSError, ValueError, AttributeError):
        return False


class View:
    """Shows nothing but warnings. The base of the others."""

    stdout: IO[str] | int = subprocess.DEVNULL  # of the program

    def out(self, text: str) -> None:
        """Takes what the program has written to stdout, if that is a pipe."""

    def say(self, line: str) -> None:
        """Shows a warning, or what Python has to say."""
        if sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)

    def tick(self) -> None:
        """Called some times a second."""

    def close(self) -> None:
        """The program has ended."""


class TerminalView(View):
    """The program writes to the terminal by itself, and draws its bar there."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self.stdout = sys.stdout

    def say(self, line: str) -> None:
        super().say(f"\r\x1b[K{line}" if _is_terminal(sys.stderr) else line)


class LinesView(View):
    """The program's lines, as they come, to sys.stdout, whatever stands for it."""

    stdout = subprocess.PIPE

    def out(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


class NotebookView(View):
    """One display that changes as the run goes on: a bar, the last step, the last evaluation, all other lines below."""

    stdout = subprocess.PIPE

    def __init__(self) -> None:
        from IPython import display

        self._rest = ""
        self._lines: list[str] = []
        self._step, self._evaluation, self._end = "starting", "", ""
        self._done, self._total = 0, 1
        self._changed = False
        self._shown = time.monotonic()
        self._handle: Any = display.display(self, display_id=True)  # type: ignore[no-untyped-call]

    def out(self, text: str) -> None:
        *lines, self._rest = re.split(r"[\r\n]+", self._rest + _CONTROL.sub("", text))
        for line in lines:
            self._take(line)

    def tick(self) -> None:
        if self._changed and time.monotonic() > self._shown + _BETWEEN_UPDATES_S:
            self._update()

    def close(self) -> None:
        self._take(self._rest)
        self._update()

    def _take(self, line: str) -> None:
        if not line:
            return
        self._changed = True
        step = _STEP.match(line)
        if step is not None:
            self._done, self._total = int(step[1]), int(step[2])
            self._step = line
            return
        if line.startswith("eval at step "):
            self._evaluation = line
        if line.startswith("done: "):
            self._end, self._done = line, self._total  # the last line of a step may be an earlier one's
        self._lines.append(line)

    def _update(self) -> None:
        self._changed, self._shown = False, time.monotonic()
        self._handle.update(self)

    @property
    def _main_lines(self) -> list[str]:
        return [line for line in (self._step, self._evaluation, self._end) if line]

    def __repr__(self) -> str:
        return "\n".join(self._main_lines)

    def _repr_html_(self) -> str:
        main, others = (html.escape("\n".join(lines)) for lines in (self._main_lines, self._lines))
        more = f"<details><summary>all lines</summary><pre>{others}</pre></details>" if others else ""
        return (f'<div><progress value="{self._done}" max="{self._total}" style="width: 30em"></progress>'
                f"<pre>{main}</pre>{more}</div>")


class Messages:
    """The program's stderr: warnings are shown as they come, and its last message is kept for the exception.

    The message begins with the first line that begins with the program's name.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept: list[str] = []

    def take(self, text: bytes) -> None:
        *lines, self._rest = (self._rest + self._decoder.decode(text)).split("\n")
        for line in lines:
            self._take(line)

    def message(self) -> str:
        """All that was kept, without the program's name."""
        if self._rest:
            self._take(self._rest)
            self._rest = ""
        return message_of("\n".join(self._kept))

    def _take(self, line: str) -> None:
        if self._kept or line.startswith("decent-train: "):
            self._kept.append(line)
        elif line.strip():
            self._view.say(line)
