"""docs/csv.md: its files and commands, in their order, and what it says that they print."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from pages import blocks_of
from program import PROGRAM, environment

FIGURES = re.compile(r"(accuracy|r2|loss) [\d.]+")  # they differ from machine to machine


def run(command: str, folder: Path) -> str:
    path = os.pathsep.join([str(PROGRAM.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    ended = subprocess.run(["bash", "-ec", command], cwd=folder, env=environment(PATH=path), capture_output=True, text=True,
                           timeout=120)
    assert ended.returncode == 0, command + ended.stderr + ended.stdout
    return ended.stdout


def test_the_page(tmp_path: Path) -> None:
    said = ""
    for block in blocks_of("csv.md"):
        if block.kind == "file":
            (tmp_path / block.name).write_text(block.text)
        elif block.kind == "run":
            said = run(block.text, tmp_path)
        elif block.kind == "shows":
            for line in block.text.splitlines():
                assert line == ".." or FIGURES.sub(r"\1", line) in FIGURES.sub(r"\1", said), f"{line!r} is not in:\n{said}"
    for name, metric in (("price", "r2"), ("district", "accuracy"), ("pairs", "accuracy")):
        lines = map(json.loads, (tmp_path / "runs" / name / "metrics.jsonl").read_text().splitlines())
        assert [line[metric] for line in lines if line["kind"] == "eval"][-1] > 0.9, name
