"""Runs of configs/digits.yaml and its like, and what they must have come to."""

from __future__ import annotations

import json
from pathlib import Path

from program import ROOT, Ended

CONFIG = ROOT / "configs" / "digits.yaml"
ACCURACY = 0.96
LITTLE = 0.7  # after one epoch; guessing gives 0.1


def check_completed(folder: Path, workers: int, epochs: int = 20, accuracy: float = ACCURACY) -> None:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    evaluation, end = lines[-2:]
    assert (end["kind"], end["status"], end["step"]) == ("end", "completed", epochs * (1442 // (16 * workers)))
    assert evaluation["kind"] == "eval" and evaluation["samples"] == 355
    assert evaluation["accuracy"] >= accuracy
    for name in ("model.pt", "model.safetensors", "recipe.yaml", "run.log"):
        assert (folder / name).stat().st_size > 0


def check_all_well(ended: list[Ended]) -> None:
    assert [e.code for e in ended] == [0] * len(ended), "\n".join(e.err + e.out for e in ended)
    assert "".join(e.err for e in ended) == ""
    assert all(e.out == "" for e in ended[1:])
