"""docs/tutorial.md: its files and commands, in their order, and what it says that they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages import blocks_of
from reader import Reader


def test_reader_notices_what_differs(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.said = "step 1 loss 2.5e-3\nmodel /tmp/x\ndone: 3 updates\n"
    reader.compare("step 7 loss 0.1\n..\ndone: 4 updates\n")
    for wrong in ("done: 3 steps\n", "done: 3 updates\nstep 1 loss 2\n"):
        with pytest.raises(pytest.fail.Exception):
            reader.compare(wrong)


def test_the_tutorial(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for block in blocks_of("tutorial.md"):
        reader.do(block)
    accuracy = re.search(r'"kind":"eval".*"accuracy":([\d.]+)', (tmp_path / "runs/languages/metrics.jsonl").read_text())
    assert float(accuracy[1]) > 0.85  # after the first of three epochs
