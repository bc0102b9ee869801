"""Weights that are exchanged in bfloat16."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from runs import DIGITS_CNN, assert_same_run, attempt, recipe, train

BF16 = {"comm_dtype": "bf16", "bucket_mb": 0.02}


def settings(topology: str, **changes: object) -> dict:
    return recipe(DIGITS_CNN, parallel={"topology": topology, **BF16}, eval={"every_steps": 6}, **changes)


@pytest.mark.parametrize(("topology", "workers"), [("ring", 2), ("complete", 3), ("complete", 5)])
def test_trains_and_resumes(topology: str, workers: int, tmp_path: Path) -> None:
    """Resuming sends the same weights again, rounded the same way."""
    own = settings(topology, checkpoint={"every_steps": 6})
    whole = train(tmp_path / "whole", own, workers=workers)
    train(tmp_path / "parts", {**own, "train": {"steps": 6}}, workers=workers)
    assert_same_run(whole, train(tmp_path / "parts", own, "--resume", "auto", workers=workers))
    assert whole.evaluation["consensus_distance"] > 0


def test_rounding_is_small(tmp_path: Path) -> None:
    """Step 2 is the first that mixes, and its loss was taken before."""
    full, rounded = (train(tmp_path / name, recipe(DIGITS_CNN, parallel={"topology": "ring", **parallel}), workers=2)
                     for name, parallel in (("full", {}), ("rounded", BF16)))
    assert list(full.losses[:2]) == list(rounded.losses[:2])
    assert not np.array_equal(full.losses, rounded.losses)
    np.testing.assert_allclose(full.losses, rounded.losses, rtol=1e-2)


@pytest.mark.parametrize(("topology", "workers", "share"), [("ring", 2, 0.5), ("complete", 3, 0.75),
                                                            ("complete", 4, 1.0), ("complete", 5, 1.0)])
def test_dry_run_tells_the_bytes(topology: str, workers: int, share: float, tmp_path: Path) -> None:
    sent = {}
    for dtype in ("fp32", "bf16"):
        own = recipe(DIGITS_CNN, parallel={"topology": topology, "comm_dtype": dtype})
        ended = attempt(tmp_path / dtype, own, "--dry-run", workers=workers)
        sent[dtype] = float(re.search(r"sent: ([\d.]+) KiB a worker and step", ended[0].out)[1])
    assert sent["bf16"] == pytest.approx(share * sent["fp32"], abs=0.1)  # a digit after the point is shown


def test_half_the_bytes_are_sent(tmp_path: Path) -> None:
    """As the trace has it."""
    bytes_of = {}
    for dtype in ("fp32", "bf16"):
        run = train(tmp_path / dtype, recipe(DIGITS_CNN, parallel={"comm_dtype": dtype, "topology": "ring"},
                                             log={"trace": [2, 3]}), workers=2)
        events = json.loads((run.folder / "trace-rank-0000.json").read_text())["traceEvents"]
        bytes_of[dtype] = sum(event.get("args", {}).get("bytes", 0) for event in events)
    assert bytes_of["bf16"] == bytes_of["fp32"] / 2 > 0
