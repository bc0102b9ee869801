"""The script of docs/deploy.md on a machine without a network: what each worker's program is given."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pages import block

# ssh -o OPTION ADDRESS COMMAND: the command, by another shell than the script's.
SSH = """#!/bin/sh
exec sh -c "$4"
"""
PROGRAM = """#!/bin/sh
printf '%s\\n' "$@" > "got-$RANK"
"""


@pytest.mark.parametrize("arguments", [[], ["--set", "train.epochs=40"],
                                       ["--set", "data.eval={format: csv, path: a b.csv}", "--set", "name=it's \"so\"", "--quiet", "*", "$HOME"]])
def test_arguments_arrive_as_they_are_given(arguments: list[str], tmp_path: Path) -> None:
    program = tmp_path / "train" / "decent-train-0.1.0-linux-x86_64" / "bin" / "decent-train"
    program.parent.mkdir(parents=True)
    for path, text in ((program, PROGRAM), (tmp_path / "ssh", SSH), (tmp_path / "train.sh", block("deploy.md", "train.sh"))):
        path.write_text(text)
        path.chmod(0o755)
    subprocess.run([tmp_path / "train.sh", *arguments], cwd=tmp_path, check=True, timeout=60,
                   env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    for rank in range(4):
        got = (tmp_path / "train" / f"got-{rank}").read_text().splitlines()
        assert got == ["--config", "recipe.yaml", "--resume", "auto", *arguments]
