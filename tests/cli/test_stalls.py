"""A training thread that hangs while its worker's heartbeats go on: parallel.stall_s."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hanging import HANGS_IN_STEP, STALL_S, WORKERS, make_recipe
from started import GRACE_S, TIMEOUT_S, Started


@pytest.mark.parametrize(("where", "doing"), [("train", "in forward"), ("eval", "evaluating")])
@pytest.mark.parametrize("rank", range(WORKERS))
def test_hanging_worker_is_named(rank: int, where: str, doing: str, tmp_path: Path) -> None:
    config = make_recipe(tmp_path, rank, where, STALL_S)
    with Started(WORKERS, tmp_path / "out", False, "--set", "log.every_steps=1", config=config) as run:
        run.wait_until_it_trains()
        assert run.wait(STALL_S + 10) == [3, 3], run.said()
        errors = [line for line in run.said().splitlines() if line.startswith("decent-train: error:")]
        host = os.uname().nodename
        assert len(errors) == 1, run.said()
        assert errors[0].startswith(
            f"decent-train: error: worker {rank} on '{host}' has been {doing} (step {HANGS_IN_STEP}) for "), run.said()
        assert f"parallel.stall_s: {STALL_S} s" in errors[0]
        assert '"status":"failed"' in run.last_metrics_line()


def test_a_single_worker_is_watched_too(tmp_path: Path) -> None:
    config = make_recipe(tmp_path, 0, "train", STALL_S)
    with Started(1, tmp_path / "out", False, "--set", "log.every_steps=1", config=config) as run:
        assert run.wait(STALL_S + 20) == [3], run.said()
        assert "worker 0 on" in run.said() and "in forward" in run.said()


def test_without_a_limit_it_is_waited_for(tmp_path: Path) -> None:
    """What the README says of the default: heartbeats go on, so that timeout_s does not end the run."""
    config = make_recipe(tmp_path, 1, "train", None)
    with Started(WORKERS, tmp_path / "out", False, "--set", "log.every_steps=1", config=config) as run:
        run.wait_until_it_trains()
        time.sleep(TIMEOUT_S + GRACE_S)
        assert [process.poll() for process in run.processes] == [None, None], run.said()
