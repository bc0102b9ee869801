"""The code in docs/library.md is code: what it takes from the examples stands there, what it invents compiles."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from package import Package, flags_of
from program import ROOT

MANUAL = (ROOT / "docs" / "library.md").read_text()
BLOCKS = re.findall(r"^(<!-- [^\n]* -->\n)?```\w+\n(.*?)^```$", MANUAL, re.MULTILINE | re.DOTALL)
EXCERPTS = [(mark[len("<!-- from "):-len(" -->\n")], code) for mark, code in BLOCKS if mark.startswith("<!-- from ")]
COMPILES = [code for mark, code in BLOCKS if mark == "<!-- compiles -->\n"]  # without LibTorch
COMPILES_WITH_TORCH = [code for mark, code in BLOCKS if mark == "<!-- compiles with LibTorch -->\n"]


def test_every_block_is_checked() -> None:
    assert len(EXCERPTS) + len(COMPILES) + len(COMPILES_WITH_TORCH) == len(BLOCKS)
    assert EXCERPTS and COMPILES and COMPILES_WITH_TORCH


@pytest.mark.parametrize(("file", "code"), EXCERPTS)
def test_excerpt_stands_in_the_example(file: str, code: str) -> None:
    """Verbatim, but for the indentation of the block."""
    text = (ROOT / file).read_text()
    assert any("\n" + textwrap.indent(code, " " * depth) in "\n" + text for depth in (0, 2, 4, 6, 8))


@pytest.mark.parametrize("code", COMPILES)
def test_block_compiles(package: Package, code: str) -> None:
    command = ["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-fsyntax-only",
               "-I", package.prefix / "include", "-x", "c++", "-"]
    compiled = subprocess.run(command, input=code, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr


@pytest.mark.parametrize("code", COMPILES_WITH_TORCH)
def test_block_compiles_with_torch(package: Package, code: str, tmp_path: Path) -> None:
    command = [*flags_of(package, tmp_path / "flags"), "-fsyntax-only", "-x", "c++", "-"]
    compiled = subprocess.run(command, input=code, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
