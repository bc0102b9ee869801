"""Machines with folders of their own: each keeps the run's history up to the last checkpoint, and any of them goes on with it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from typing import TYPE_CHECKING

import pytest

from runs import Run, assert_says, merged, on_each, recipe, train, write_recipe
from started import Started

if TYPE_CHECKING:
    from pathlib import Path

    from program import Ended

WHOLE = recipe(train={"steps": 12}, checkpoint={"every_steps": 4, "keep": 9}, eval={"every_steps": 4},
               parallel={"topology": "ring"}, log={"every_steps": 1})


def until(steps: int, **changes: dict) -> dict:
    return merged(merged(WHOLE, {"train": {"steps": steps}}), changes)


def done(ended: list[Ended]) -> list[Ended]:
    assert [each.code for each in ended] == [0] * len(ended), ended
    return ended


def without_times(run: Run) -> list[dict]:
    return [line for line in run.metrics_without_times if line["kind"] != "end"]


def starts_of(run: Run) -> list[dict]:
    return json.loads((run.folder / "run.json").read_text())["starts"]


def run_ids(run: Run) -> set[str]:
    return {json.loads((run.checkpoint(step) / "manifest.json").read_text())["run"] for step in run.checkpoints}


@pytest.mark.parametrize("background", [True, False], ids=["in the background", "at once"])
def test_each_machine_keeps_it(background: bool, tmp_path: Path) -> None:
    """As far as the last checkpoint; the evaluation that follows a save is among it."""
    done(on_each(tmp_path, until(14, checkpoint={"background": background}), outputs=("a", "b", "c")))
    first, *others = (Run(tmp_path / name, []) for name in "abc")
    assert [line["step"] for line in first.lines("train")] == list(range(1, 15))
    for other in others:
        lines = (other.folder / "metrics.jsonl").read_bytes()
        assert (first.folder / "metrics.jsonl").read_bytes().startswith(lines)
        assert other.checkpoints[-1] == 14 and other.lines("train")[-1]["step"] == 14
        assert [line["step"] for line in other.lines("eval")][:3] == [4, 8, 12]
        assert (other.folder / "run.json").read_bytes() == (first.folder / "run.json").read_bytes()


def test_any_machine_goes_on_with_it(tmp_path: Path) -> None:
    """The machines in another order; the ranks' replicas are in the folders of others, so the bits differ, not the lines."""
    done(on_each(tmp_path, until(8)))
    done(on_each(tmp_path, until(12), "--resume", "auto", outputs=("b", "a")))
    run = Run(tmp_path / "b", [])
    assert [line["step"] for line in run.lines("train")] == list(range(1, 13))
    assert [line["step"] for line in run.lines("eval")] == [4, 8, 12]
    assert [start["step"] for start in starts_of(run)] == [0, 8] and len(run_ids(run)) == 1
    other = Run(tmp_path / "a", [])
    assert without_times(other) == without_times(run) and starts_of(other) == starts_of(run)


@pytest.mark.parametrize("stale", [False, True], ids=["new", "with the history of an earlier time"])
def test_a_newcomer_is_given_it(stale: bool, tmp_path: Path) -> None:
    """Also as the one that writes it from then on; the run stays the same one."""
    if stale:
        done(on_each(tmp_path, until(4), outputs=("a", "b", "c")))
        shutil.rmtree(tmp_path / "c" / "checkpoints")
        done(on_each(tmp_path, until(8), "--resume", "auto", "--set", "checkpoint.allow_missing=true"))
    else:
        done(on_each(tmp_path, until(8)))
    before = without_times(Run(tmp_path / "a", []))
    ended = done(on_each(tmp_path, until(12), "--resume", "auto", outputs=("c", "a", "b")))
    run = Run(tmp_path / "c", [])
    assert_says(ended[0].out, "after step 8 of 12", "the checkpoint is of 2 workers, this run has 3")
    assert without_times(run)[:len(before)] == before
    assert [line["step"] for line in run.lines("train")] == list(range(1, 13))
    assert len(starts_of(run)) == len(starts_of(Run(tmp_path / "a", []))) == (3 if stale else 2)
    assert run_ids(run) | run_ids(Run(tmp_path / "b", [])) == run_ids(Run(tmp_path / "a", []))
    assert len(run_ids(Run(tmp_path / "a", []))) == 1


def test_a_copy_that_was_shortened_is_whole_again(tmp_path: Path) -> None:
    done(on_each(tmp_path, until(8)))
    copy = tmp_path / "b" / "metrics.jsonl"
    copy.write_bytes(copy.read_bytes()[:700])
    done(on_each(tmp_path, until(12), "--resume", "auto"))
    first, second = (Run(tmp_path / name, []) for name in "ab")
    assert without_times(first) == without_times(second)
    assert [line["step"] for line in second.lines("train")] == list(range(1, 13))


def test_going_back_takes_the_later_lines_everywhere(tmp_path: Path) -> None:
    done(on_each(tmp_path, until(12)))
    done(on_each(tmp_path, until(8), "--resume", tmp_path / "a" / "checkpoints" / "step-00000004",
                 "--set", "checkpoint.allow_missing=true"))
    for name in "ab":
        run = Run(tmp_path / name, [])
        assert [line["step"] for line in run.lines("train")] == list(range(1, 9))
        kept = (run.folder / "set-aside" / "1" / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(line)["step"] for line in kept if '"train"' in line] == list(range(1, 13))


@pytest.mark.parametrize("lost", [0, 1])
def test_the_writer_is_lost(lost: int, tmp_path: Path) -> None:
    """Its machine is gone for good: the other one, and a newcomer that writes from then on, have it up to the last checkpoint."""
    endless = recipe(train={"steps": 1000000}, checkpoint={"every_steps": 50, "keep": 9}, data={"eval": None},
                     parallel={"topology": "ring"})
    flags = ("--set", "log.every_steps=1", "--set", "parallel.farewell_s=20")
    with Started(3, tmp_path, False, *flags, config=write_recipe(tmp_path, endless), outputs=("a", "b", "c")) as started:
        deadline = time.monotonic() + 60
        while len(Run(tmp_path / "b", []).checkpoints) < 3:
            assert time.monotonic() < deadline, started.said()
            time.sleep(0.01)
        os.kill(started.processes[lost].pid, signal.SIGKILL)
        assert started.wait(30, without=lost) == [3, 3], started.said()
    step = Run(tmp_path / "c", []).checkpoints[-1]
    shutil.rmtree(tmp_path / "ab"[lost])
    survivor = "ba"[lost]
    done(on_each(tmp_path, merged(endless, {"train": {"steps": step + 4}, "log": {"every_steps": 1}}), "--resume", "auto",
                 outputs=("new", "c", survivor)))
    for name in ("new", "c", survivor):
        run = Run(tmp_path / name, [])
        steps = [line["step"] for line in run.lines("train")]
        last = max(at for at in steps if at <= step)
        assert steps == [*range(1, last + 1), *range(step + 1, step + 5)]
        # The figures of a line are of all workers, so the last steps have none.
        assert last >= (step - 3 if lost == 1 else 150)
        (resume,) = run.lines("resume")
        assert resume["step"] == step and resume["lost"] == [lost] and resume["workers"] == resume["before"] == 3
    assert not (tmp_path / "ab"[lost]).exists()


def test_one_folder_has_one_copy(tmp_path: Path) -> None:
    run = train(tmp_path, until(8), workers=2)
    assert [path.name for path in run.folder.glob("**/metrics.jsonl")] == ["metrics.jsonl"]
