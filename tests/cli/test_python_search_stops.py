"""decent-sweep: signals, kills, a second search, and trials side by side."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from supervised import wait_until
from sweeps import completed, has_evaluated, lines_of, processes_in, run_search, searching, trials_in, write_sweep


def environment_of(process: int) -> bytes:
    """Empty if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{process}/environ").read_bytes()
    return b""



def test_ctrl_c_saves_and_the_same_command_goes_on(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path, {"train": {"steps": 2000}, "eval": {"every_steps": 100}}, trials=2, sampler="random")
    with searching(sweep) as process:
        wait_until(partial(has_evaluated, sweep, 0))
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        said = process.communicate(timeout=60)[0]
        assert process.returncode == 75, said
    assert "decent-sweep: error: stopped: 0 of 2 trials are done" in said
    assert "run the same command again to go on" in said and "Traceback" not in said and processes_in(tmp_path) == []
    first = tmp_path / "out" / "trial-0000"
    stopped = lines_of(first, "end")[-1]
    assert stopped["status"] == "stopped" and (first / "checkpoints" / f"step-{stopped['step']:08}").is_dir()
    trials = completed(sweep)
    assert [trial.state.name for trial in trials] == ["COMPLETE", "COMPLETE"]
    assert [line["status"] for line in lines_of(first, "end")] == ["completed"]
    assert len(json.loads((first / "run.json").read_text())["starts"]) == 2


def test_a_second_ctrl_c_ends_everything_at_once(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path, {"train": {"steps": 1_000_000}}, trials=1)
    with searching(sweep) as process:
        wait_until(partial(has_evaluated, sweep, 0))
        trial = (set(processes_in(tmp_path)) - {process.pid}).pop()
        os.kill(trial, signal.SIGSTOP)  # so that it cannot save before the second signal
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(2)  # on a busy machine, too, the first is taken before the second comes
        said = process.communicate(timeout=60)[0]
        assert process.returncode == 130 and "ended at once" in said and processes_in(tmp_path) == [], said


def test_a_second_search_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path, {"train": {"steps": 1_000_000}}, trials=1)
    with searching(sweep) as process:
        wait_until(partial(has_evaluated, sweep, 0))
        second = run_search(sweep)
        assert second.code == 2 and second.out == "", second
        assert f"another search works in '{tmp_path / 'out'}' (process {process.pid} on '" in second.err
        process.terminate()
        assert process.wait(60) == 75


def test_a_trial_that_is_killed_ends_the_search_and_goes_on_later(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path, {"train": {"steps": 3000}}, trials=1)
    with searching(sweep) as process:
        wait_until(partial(has_evaluated, sweep, 0))
        for trial in set(processes_in(tmp_path)) - {process.pid}:
            os.kill(trial, signal.SIGKILL)
        said = process.communicate(timeout=60)[0]
        assert process.returncode == 128 + 9 and "trial-0000 was ended by signal 9" in said, said
    assert completed(sweep)[0].state.name == "COMPLETE"


def test_trials_side_by_side_of_several_workers(tmp_path: Path) -> None:
    space = {"parallel.topology": {"choice": ["ring", "complete"]}, "optimizer.lr": {"choice": [1e-3]}}
    sweep = write_sweep(tmp_path, {"train": {"steps": 400}}, space=space, sampler="grid", workers=3, parallel=2)
    with searching(sweep) as process:
        wait_until(lambda: has_evaluated(sweep, 0) and has_evaluated(sweep, 1))
        processes = set(processes_in(tmp_path)) - {process.pid}
        variables = [text for each in processes if (text := environment_of(each))]
        said = process.communicate(timeout=100)[0]
        assert process.returncode == 0, said
    assert "2 at a time" in said and variables and all(b"OMP_NUM_THREADS=1\0" in each for each in variables)
    trials = trials_in(tmp_path / "out")
    assert trials[1].datetime_start < trials[0].datetime_complete, "they were trained one after the other"
    assert trials[0].value != trials[1].value
    for trial in trials:
        facts = json.loads((tmp_path / "out" / f"trial-{trial.number:04d}" / "run.json").read_text())
        assert facts["starts"][0]["workers"] == 3
