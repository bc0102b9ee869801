"""docs/python.md: its blocks, in their order, and what it says that they print. Those of Python share one interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pages import Block, blocks_of
from program import PROGRAM, ROOT
from reader import Reader

# Runs each block that comes, and says when it is over.
INTERPRETER = """
import sys, traceback
names = {"__name__": "__main__"}
while length := sys.stdin.readline():
    text = sys.stdin.read(int(length))
    try:
        exec(compile(text, "python.md", "exec"), names)
        print("\\n--- over", flush=True)
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        print("\\n--- failed", flush=True)
"""


class PythonReader(Reader):
    """Somebody who copies the blocks of Python into one interpreter, and the others into a shell."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.environment |= {"PYTHONPATH": str(ROOT / "python"), "DECENT_TRAIN": str(PROGRAM), "OMP_NUM_THREADS": "1"}
        self.python = subprocess.Popen([sys.executable, "-c", INTERPRETER], cwd=folder, env=self.environment, text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def do(self, block: Block) -> None:
        if (block.kind, block.name) != ("run", "python"):
            return super().do(block)
        self.python.stdin.write(f"{len(block.text)}\n{block.text}")
        self.python.stdin.flush()
        lines = []
        for line in self.python.stdout:
            if line.startswith("--- "):
                break
            lines.append(line)
        self.said = "".join(lines)
        assert line == "--- over\n", self.said


def test_the_page(tmp_path: Path) -> None:
    reader = PythonReader(tmp_path)
    try:
        for block in blocks_of("python.md"):
            reader.do(block)
    finally:
        reader.python.kill()
        reader.python.communicate()
    assert {"rings.pt2", "train.safetensors", "test.safetensors", "compare.html", "runs"} <= set(os.listdir(tmp_path))
    assert not (tmp_path / "broken.safetensors").exists()
