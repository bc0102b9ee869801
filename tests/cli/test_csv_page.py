"""docs/csv.md: its files and commands, in their order, and what it says that they print."""

from __future__ import annotations

import json
from pathlib import Path

from pages import blocks_of
from reader import Reader


def test_the_page(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.environment["OMP_NUM_THREADS"] = "1"  # other tests run beside it
    for block in blocks_of("csv.md"):
        reader.do(block)
    for name, metric in (("price", "r2"), ("district", "accuracy"), ("pairs", "accuracy")):
        lines = map(json.loads, (tmp_path / "runs" / name / "metrics.jsonl").read_text().splitlines())
        assert [line[metric] for line in lines if line["kind"] == "eval"][-1] > 0.9, name
