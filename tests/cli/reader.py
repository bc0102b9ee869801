"""A reader of a page of docs/ who does what it says, block by block (pages.py)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from pages import Block
from ports import free_port
from program import PROGRAM, environment

HOME = re.compile(r"/home/me/\w+")
NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")
TIMEOUT_S = 120


class Reader:
    """Somebody who does what the page says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said = ""
        path = os.pathsep.join([str(PROGRAM.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = environment(PATH=path)
        del self.environment["OMP_NUM_THREADS"]  # a reader has not set it

    def start(self, command: str) -> subprocess.Popen:
        return subprocess.Popen(["bash", "-ec", command], cwd=self.folder, env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                start_new_session=True)

    def run(self, command: str, code: int = 0) -> None:
        process = self.start(command)
        try:
            self.said, _ = process.communicate(timeout=TIMEOUT_S)
        finally:
            end(process)
        assert process.returncode == code, f"{command}\n{self.said}"

    def interrupt(self, command: str) -> None:
        """Ctrl-C once training goes on, which goes to all processes of the terminal."""
        process = self.start(command)
        try:
            for line in process.stdout:
                if line.startswith("step"):
                    break
            os.killpg(process.pid, signal.SIGINT)
            self.said, _ = process.communicate(timeout=TIMEOUT_S)
        finally:
            end(process)
        assert process.returncode == 75, self.said

    def visit(self, command: str) -> None:
        """TensorBoard, on a port that is free; it must know the run."""
        port = free_port()
        process = self.start(f"exec {command.strip()} --port {port}")
        try:
            deadline = time.monotonic() + TIMEOUT_S
            while "languages" not in self.fetch(f"http://127.0.0.1:{port}/data/runs"):
                assert time.monotonic() < deadline and process.poll() is None
                time.sleep(0.2)
        finally:
            end(process)

    def fetch(self, address: str) -> str:
        try:
            return urllib.request.urlopen(address, timeout=10).read().decode()
        except OSError:
            return ""  # not there yet

    def compare(self, shown: str) -> None:
        """Every line that the page shows came, in that order; numbers and the folder may be others."""
        lines = iter([alike(line) for line in self.said.splitlines()])
        for line in HOME.sub(str(self.folder), shown).splitlines():
            if line != ".." and alike(line) not in lines:
                pytest.fail(f"not printed: '{line}' in\n{self.said}", pytrace=False)

    def do(self, block: Block) -> None:
        if block.kind == "file":
            (self.folder / block.name).write_text(block.text)
        elif block.kind == "shows":
            self.compare(block.text)
        elif block.name == "interrupted":
            self.interrupt(block.text)
        elif block.name == "served":
            self.visit(block.text)
        elif block.kind == "run":
            self.run(block.text, int(block.name.removeprefix("exit ") or 0))


def end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def alike(line: str) -> str:
    return NUMBER.sub("#", " ".join(line.split()))
