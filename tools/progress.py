#!/usr/bin/env python3
"""Runs a command, and says in few lines how far it is and how long it will still take:

    tools/progress.py ninja -- cmake --build build            61 of 209, about 3 min left
    tools/progress.py pip -- pip install -r requirements.txt  1210 of 2480 MB downloaded, about 2 min left
    tools/progress.py apt -- apt-get install -y g++           30 %

In a terminal it is one line that changes, elsewhere a line every 30 s (--every). Warnings and errors of the command are passed on, and
its exit code is that of this program. pip is asked to report its progress (pip 24.1 or newer). --download-mb and --disk-mb say
what pip will download and write into --folder.
"""

from __future__ import annotations

import argparse
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

MB = 1e6
UNITS = {"bytes": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}
LINES_OF_A_FAILURE = 30
SECONDS_BEFORE_GUESS = 5.0  # a shorter time says too little about the rest


def guess(seconds: float) -> str:
    """A time as people say it, in whole minutes, because it is not known more precisely."""
    if seconds < 50:
        return "less than a minute"
    return f"about {max(1, round(seconds / 60))} min"


def taken(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


@dataclass
class Progress:
    """How much of how much is done; total is 0 if it is not known."""

    done: float = 0
    total: float = 0
    since: float = field(default_factory=time.monotonic)

    def left(self, now: float) -> str:
        """', about 2 min left', if it has taken long enough for this estimate."""
        passed = now - self.since
        if passed < SECONDS_BEFORE_GUESS or not 0 < self.done < self.total:
            return ""
        return f", {guess(passed * (self.total - self.done) / self.done)} left"


# Seconds to compile a unit of these folders, measured on a machine with 2 cores; units of other folders take less.
# Units with LibTorch's headers take longest, and most of them come last.
SECONDS = {"app": 32, "train": 24, "task": 21, "parallel": 15, "comm": 14, "model": 13, "resume": 11, "tests": 10, "config": 9, "pt2": 7,
           "data": 6, "optim": 6, "onnx": 4.5, "report": 4}
UNIT = re.compile(r"(?:object|-o) (?:lib/decent/)?(\w+)/\S*\.o\b")


def cost_of(step: str) -> float:
    """The cost of a step, from a line of ninja or from its command."""
    found = UNIT.search(step)
    return SECONDS.get(found[1], 2.0) if found else 0.5


class Ninja:
    """ninja's status lines; all others are compilers' messages."""

    ENVIRONMENT = {"NINJA_STATUS": "[[%f/%t]] "}
    STATUS = re.compile(r"\[\[(\d+)/(\d+)\]\] (.*)")
    PASSES_ON = True

    def __init__(self, _: argparse.Namespace) -> None:
        self.progress = Progress()  # in the cost of steps
        self.done = self.total = 0
        self.planned: list[str] = []

    def plan(self, command: list[str]) -> None:
        """Asks for the commands of a build from scratch. (ninja's dry run ends where CMake would have to look for new files first.) Where
        it is no such build, all steps are taken for equal."""
        separator = ["--"] if command[0] == "cmake" and "--" not in command else []
        ended = subprocess.run([*command, *separator, "-t", "commands"], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        self.planned = ended.stdout.splitlines()

    def take(self, line: str) -> bool:
        """Whether it was a line about progress."""
        found = self.STATUS.match(line)
        if not found:
            return False
        self.done, self.total = int(found[1]), int(found[2])
        if len(self.planned) == self.total:
            self.progress.total = sum(map(cost_of, self.planned))
            self.progress.done += cost_of(found[3])
        else:
            self.progress.done, self.progress.total = self.done, self.total
        return True

    def text(self, now: float) -> str:
        return f"{self.done} of {self.total}{self.progress.left(now)}" if self.total else ""


class Apt:
    """The status lines of apt-get, which count first its downloads and then its installing up to 100 %."""

    ENVIRONMENT = {}
    STATUS = re.compile(r"(dl|pm)status:[^:]*:([\d.]+):")
    PASSES_ON = False
    DOING = {"dl": "downloaded", "pm": "installed"}

    def __init__(self, _: argparse.Namespace) -> None:
        self.stage = ""
        self.progress = Progress()

    def take(self, line: str) -> bool:
        found = self.STATUS.match(line)
        if found and found[1] != self.stage:
            self.stage, self.progress = found[1], Progress(total=100)
        if found:
            self.progress.done = float(found[2])
        return found is not None

    def text(self, now: float) -> str:
        return f"{self.progress.done:.0f} % {self.DOING[self.stage]}{self.progress.left(now)}" if self.stage else ""


class Pip:
    """pip's downloads, counted together, and then its writing, which it does not report: the folder grows."""

    ENVIRONMENT = {"PIP_PROGRESS_BAR": "raw"}
    FILE = re.compile(r"\s*(Downloading|Using cached) (\S+?)(?:-\d\S*)? \(([\d.]+) (bytes|kB|MB|GB)\)")
    BYTES = re.compile(r"Progress (\d+) of (\d+)")
    PASSES_ON = False

    def __init__(self, options: argparse.Namespace) -> None:
        self.downloads = Progress(total=options.download_mb * MB)
        self.folder = options.folder
        self.before = self.size() if options.folder else 0
        self.disk_bytes = options.disk_mb * MB
        self.name, self.of_file, self.complete = "", Progress(), 0.0
        self.writing: Progress | None = None

    def size(self) -> int:
        return sum(entry.stat(follow_symlinks=False).st_size for entry in files_below(self.folder))

    def take(self, line: str) -> bool:
        if found := self.FILE.match(line):
            self.complete += self.of_file.total
            size = float(found[3]) * UNITS[found[4]]
            self.name = found[2]
            self.of_file = Progress(size if found[1] == "Using cached" else 0.0, size)
        elif found := self.BYTES.match(line):
            self.of_file.done, self.of_file.total = float(found[1]), float(found[2])
        elif line.startswith("Installing collected packages"):
            self.writing = Progress(total=self.disk_bytes)
        else:
            return False
        return True

    def text(self, now: float) -> str:
        if self.writing:
            self.writing.done = self.size() - self.before if self.folder else 0
            return amounts("written to disk", self.writing, now)
        if not self.name:
            return ""
        if self.downloads.total:
            self.downloads.done = self.complete + self.of_file.done
        return amounts("downloaded", self.downloads if self.downloads.total else self.of_file, now) + f" ({self.name})"


def amounts(what: str, progress: Progress, now: float) -> str:
    of = f" of {progress.total / MB:.0f}" if progress.total >= progress.done else ""
    return f"{progress.done / MB:.0f}{of} MB {what}{progress.left(now)}"


def files_below(folder: Path):
    """Files that vanish meanwhile do not count."""
    for path, _, names in os.walk(folder):
        try:
            with os.scandir(path) as entries:
                yield from [entry for entry in entries if entry.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            pass


class Screen:
    """The line that changes, or lines now and then, and between them what the command says."""

    def __init__(self, label: str, seconds_between_lines: float) -> None:
        self.label = label
        self.seconds_between_lines = seconds_between_lines
        self.begin = time.monotonic()
        self.terminal = sys.stdout.isatty()
        self.shown = ""
        self.next = self.begin + (0.0 if self.terminal else seconds_between_lines)

    def progress(self, text: str, now: float) -> None:
        if not text or text == self.shown or now < self.next:
            return
        self.shown = text
        line = f"{self.label}: {text}"
        if self.terminal:
            columns = os.get_terminal_size(sys.stdout.fileno()).columns or 80
            sys.stdout.write(f"\r{line[:columns - 1]}\x1b[K")
            self.next = now + 0.2
        else:
            sys.stdout.write(line + "\n")
            self.next = now + self.seconds_between_lines
        sys.stdout.flush()

    def clear(self) -> None:
        if self.terminal and self.shown:
            sys.stdout.write("\r\x1b[K")
            sys.stdout.flush()
            self.shown = ""

    def done(self) -> None:
        """What remains visible at the end."""
        self.say(f"{self.label}: done after {taken(time.monotonic() - self.begin)}\n")

    def say(self, line: str, stream=None) -> None:
        self.clear()
        stream = stream or sys.stdout
        stream.write(line)
        stream.flush()


def follow(process: subprocess.Popen, reader: Ninja | Apt | Pip, screen: Screen) -> list[str]:
    """Reads until the command has closed both of its streams. Returns its lines that were not passed on."""
    kept: list[str] = []

    def take_out(line: str) -> None:
        if reader.take(line):
            return
        if reader.PASSES_ON:
            screen.say(line)
        else:
            kept.append(line)

    streams: dict[object, Callable[[str], None]] = {
        process.stdout: take_out, process.stderr: lambda line: screen.say(line, sys.stderr)}
    rest = {stream: b"" for stream in streams}
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(timeout=1.0):
                data = os.read(key.fd, 65536)
                *lines, rest[key.fileobj] = (rest[key.fileobj] + data).split(b"\n")
                if not data:
                    selector.unregister(key.fileobj)
                    lines, rest[key.fileobj] = [rest[key.fileobj]] if rest[key.fileobj] else [], b""
                for line in lines:
                    streams[key.fileobj](line.decode(errors="replace") + "\n")
            now = time.monotonic()
            if now >= screen.next:
                screen.progress(reader.text(now), now)
    return kept


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--label", default="progress")
    parser.add_argument("--every", type=float, default=30.0)
    parser.add_argument("--download-mb", type=float, default=0.0)
    parser.add_argument("--disk-mb", type=float, default=0.0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("command", nargs="+")
    return parser.parse_args(arguments)


KINDS = {"ninja": Ninja, "apt": Apt, "pip": Pip}


def main() -> int:
    options = options_of(sys.argv[1:])
    reader = KINDS[options.kind](options)
    # The command handles Ctrl-C: it ends, and its last output is passed on. (This sets a handler, because the command
    # would inherit an ignored signal.)
    signal.signal(signal.SIGINT, lambda *_: None)
    screen = Screen(options.label, options.every)
    if isinstance(reader, Ninja):
        reader.plan(options.command)
    process = subprocess.Popen(options.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, **reader.ENVIRONMENT})
    kept = follow(process, reader, screen)
    code = process.wait()
    screen.clear()
    if code == 0:
        screen.done()
    else:
        screen.say("".join(kept[-LINES_OF_A_FAILURE:]), sys.stderr)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
