"""docs/data.md: its files and commands, in their order, and what it says that they print."""

from __future__ import annotations

from pathlib import Path

from pages import blocks_of
from program import ROOT
from reader import Reader


def test_the_page(tmp_path: Path) -> None:
    (tmp_path / "models").symlink_to(ROOT / "models")
    reader = Reader(tmp_path)
    for block in blocks_of("data.md"):
        reader.do(block)
