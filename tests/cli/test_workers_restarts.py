"""kill -9 of what --workers started, and of what started it: nobody stays behind, and the run goes on bit for bit."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from runs import DIGITS, Run, assert_same_run, assert_says, error_message, merged, train
from supervised import (ENDLESS, SETTINGS, TIMEOUT_S, Supervised, assert_whole, run_supervised, train_supervised,
                        wait_until)

ROUNDS = int(os.environ.get("DECENT_KILL_ROUNDS", "2"))  # of the parent, at random moments
GONE_S = 30
# Long enough for something to be done to it.
LONG = merged(SETTINGS, {"train": {"steps": 1500}, "eval": {"every_steps": 500}})
RESTARTING = re.compile(r"decent-train: starting all workers again, (\d+) of (\d+) times")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("undisturbed"), LONG, workers=2)


def assert_goes_on(undisturbed: Run, folder: Path, settings: dict = LONG, workers: int = 2) -> None:
    assert_same_run(undisturbed, train_supervised(folder, settings, workers, "--resume", "auto"))


# ---- kill -9 of the parent -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("workers", [1, 3])
def test_parent_killed_at_random_moments(workers: int, tmp_path: Path) -> None:
    whole = train_supervised(tmp_path / "whole", SETTINGS, workers)
    chance = random.Random(workers)
    for round_ in range(ROUNDS):
        folder = tmp_path / str(round_)
        with Supervised(folder, SETTINGS, workers) as run:
            time.sleep(chance.uniform(0, 1.1 * whole.ended[0].seconds))
            run.process.kill()
            run.wait_until_none_is_left(GONE_S)
            if run.run.checkpoints:
                assert_whole(run.run)
            assert run.errors == [], run.said()
        assert_goes_on(whole, folder, SETTINGS, workers)
        shutil.rmtree(folder)


def test_parent_killed_while_workers_load(tmp_path: Path) -> None:
    """Before they are connected there is nobody who could notice it but the kernel."""
    for i in range(6):
        with Supervised(tmp_path / str(i), ENDLESS, 4) as run:
            run.wait_for(lambda: len(run.living()) > i % 4)
            time.sleep(0.03 * i)
            run.process.kill()
            run.wait_until_none_is_left(TIMEOUT_S)
            assert run.run.checkpoints == [] and run.errors == [], run.said()


def test_parent_killed_while_it_trains(undisturbed: Run, tmp_path: Path) -> None:
    """The last line says why; where a run saves nothing by itself, it does then."""
    with Supervised(tmp_path, LONG, 2, "--set", "checkpoint.every_steps=null") as run:
        run.wait_for_metrics()
        run.process.kill()
        run.wait_until_none_is_left(GONE_S)
        said = re.search(r"decent-train: stopped after step (\d+) by the end of decent-train --workers \(seen by worker "
                         r"[01]\)\. Saved '.*'; go on with --resume auto\n", run.said())
        assert said and run.run.checkpoints == [int(said[1])], run.said()
        assert_whole(run.run)
    assert_goes_on(undisturbed, tmp_path)


def test_parent_killed_while_a_checkpoint_is_saved(undisturbed: Run, tmp_path: Path) -> None:
    with Supervised(tmp_path, LONG, 2) as run:
        run.wait_for(lambda: list((run.run.folder / "checkpoints").glob(".step-*.writing")))
        run.process.kill()
        run.wait_until_none_is_left(GONE_S)
        assert run.run.checkpoints
        assert_whole(run.run)
    assert_goes_on(undisturbed, tmp_path)


def test_parent_killed_beside_a_worker(undisturbed: Run, tmp_path: Path) -> None:
    with Supervised(tmp_path, LONG, 2) as run:
        run.wait_until_it_trains()
        for process in (run.process.pid, run.living()[1]):
            os.kill(process, signal.SIGKILL)
        run.wait_until_none_is_left(GONE_S)
        assert len(run.errors) <= 1, run.said()
        assert_whole(run.run)
    assert_goes_on(undisturbed, tmp_path)


# ---- a worker that is lost -----------------------------------------------------------------------------------------

@pytest.mark.parametrize(("victim", "name"), [(0, "SIGKILL"), (1, "SIGKILL"), (2, "SIGSEGV")])
def test_worker_that_is_lost(victim: int, name: str, tmp_path: Path) -> None:
    with Supervised(tmp_path, ENDLESS, 3) as run:
        run.wait_until_it_trains()
        process = run.living()[victim]
        os.kill(process, getattr(signal, name))
        assert run.wait(TIMEOUT_S) == 3
        assert f"decent-train: worker {victim} (process {process}) was ended by {name}" in run.said()
        assert len(run.errors) == 1 and f"lost worker {victim} on " in run.errors[0], run.said()
        assert_whole(run.run)


def test_worker_that_is_lost_while_it_loads(tmp_path: Path) -> None:
    """The others would wait for it. Two runs side by side, as this takes its time."""
    settings = merged(ENDLESS, {"parallel": {"timeout_s": 2}})
    with Supervised(tmp_path / "0", settings, 2) as first, Supervised(tmp_path / "1", settings, 2) as second:
        for victim, run in enumerate((first, second)):
            run.wait_for_workers()
            os.kill(run.living()[victim], signal.SIGKILL)
        for victim, run in enumerate((first, second)):
            assert run.wait(GONE_S) == 3
            assert f"decent-train: worker {victim} (process " in run.said()
            assert len(run.errors) <= 1 and not (tmp_path / str(victim) / "run").exists(), run.said()


# ---- --max-restarts ------------------------------------------------------------------------------------------------

def kill_worker(run: Supervised, rank: int, restarts: int, name: str = "SIGKILL") -> None:
    """After that many restarts, once a new checkpoint was saved."""
    run.wait_for(lambda: len(RESTARTING.findall(run.said())) == restarts)
    before = max(run.run.checkpoints, default=0)
    run.wait_for(lambda: max(run.run.checkpoints, default=0) > before and len(run.living()) == run.workers)
    with suppress(ProcessLookupError):
        os.kill(run.living()[rank], getattr(signal, name))


def test_goes_on_by_itself(undisturbed: Run, tmp_path: Path) -> None:
    with Supervised(tmp_path, LONG, 2, "--max-restarts", 2) as run:
        kill_worker(run, 1, restarts=0)
        kill_worker(run, 0, restarts=1, name="SIGSEGV")
        assert run.wait(60) == 0, run.said()
        assert RESTARTING.findall(run.said()) == [("1", "2"), ("2", "2")]
        assert len(re.findall(r"resuming from '.*', after step \d+ of 1500", run.said())) == 2
    assert_same_run(undisturbed, run.run)


def test_workers_killed_at_random_moments(undisturbed: Run, tmp_path: Path) -> None:
    """One or several, while they load, train or save; nobody has to do anything."""
    chance = random.Random(0)
    restarts = 0
    rounds = (ROUNDS + 1) // 2
    for round_ in range(rounds):
        folder = tmp_path / str(round_)
        with Supervised(folder, LONG, 2, "--max-restarts", 100, "--resume", "auto") as run:
            for _ in range(3):
                time.sleep(chance.uniform(0.1, 0.6))  # a fast machine is done in a second
                kill_some(run, chance)
            assert run.wait(60) == 0, run.said()
            restarts += len(RESTARTING.findall(run.said()))
        assert_same_run(undisturbed, run.run)
        shutil.rmtree(folder)
    assert restarts >= rounds


def kill_some(run: Supervised, chance: random.Random) -> None:
    living = list(run.living().values())
    for process in chance.sample(living, min(len(living), chance.choice([1, 1, 2]))):
        with suppress(ProcessLookupError):
            os.kill(process, chance.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT]))


def test_restarts_that_are_used_up(undisturbed: Run, tmp_path: Path) -> None:
    with Supervised(tmp_path, LONG, 2, "--max-restarts", 1) as run:
        kill_worker(run, 0, restarts=0)
        kill_worker(run, 1, restarts=1)
        assert run.wait(TIMEOUT_S) == 3, run.said()
        assert RESTARTING.findall(run.said()) == [("1", "1")]
        assert_whole(run.run)
    assert_goes_on(undisturbed, tmp_path)


def test_fewer_workers_after_two_deaths_before_the_first_step(tmp_path: Path) -> None:
    with Supervised(tmp_path, SETTINGS, 3, "--max-restarts", 5, "--min-workers", 2) as run:
        for restarts in (0, 1):
            run.wait_for(lambda: run.said().count(" again, ") == restarts and 2 in run.living())
            os.kill(run.living()[2], signal.SIGKILL)
        assert run.wait(60) == 0, run.said()
        assert "decent-train: starting all workers again, 1 of 5 times" in run.said()
        assert "decent-train: starting 2 of 3 workers again, 2 of 5 times" in run.said()
    assert json.loads((run.run.checkpoint(run.run.checkpoints[-1]) / "manifest.json").read_text())["world_size"] == 2


def test_stopped_after_a_restart(undisturbed: Run, tmp_path: Path) -> None:
    with Supervised(tmp_path, LONG, 2, "--max-restarts", 5, terminal=True) as run:
        kill_worker(run, 1, restarts=0)
        run.wait_for(lambda: RESTARTING.search(run.said()) and "resuming from" in run.said())
        run.type(b"\x03")
        assert run.wait(TIMEOUT_S) in (75, 128 + signal.SIGINT), run.said()
        assert len(RESTARTING.findall(run.said())) == 1
        assert_whole(run.run)
    assert_goes_on(undisturbed, tmp_path)


def test_lost_before_anything_was_saved(undisturbed: Run, tmp_path: Path) -> None:
    """The run has begun, but has no checkpoint: it starts afresh."""
    late = merged(LONG, {"checkpoint": {"every_steps": None}})
    with Supervised(tmp_path, late, 2, "--max-restarts", 1) as run:
        run.wait_for_metrics()
        os.kill(run.living()[1], signal.SIGKILL)
        assert run.wait(60) == 0, run.said()
        assert len(RESTARTING.findall(run.said())) == 1 and "the run starts afresh" in run.said()
    assert_same_run(undisturbed, run.run)


def test_resume_from_a_folder_and_restart(undisturbed: Run, tmp_path: Path) -> None:
    """Lost before anything new was saved: it begins again at that checkpoint, not at a later one of another past."""
    keeps = merged(LONG, {"checkpoint": {"every_steps": 250, "keep": 10}})
    run = train(tmp_path, keeps, workers=2)
    assert_same_run(undisturbed, run)
    with Supervised(tmp_path, merged(keeps, {"checkpoint": {"every_steps": None}}), 2, "--resume", run.checkpoint(500),
                    "--max-restarts", 1) as again:
        again.wait_for(lambda: "resuming from" in again.said() and len(again.living()) == 2)
        os.kill(again.living()[1], signal.SIGKILL)
        assert again.wait(60) == 0, again.said()
        assert len(RESTARTING.findall(again.said())) == 1
        assert len(re.findall(r"resuming from '.*', after step 500 of 1500", again.said())) == 2, again.said()
    assert_same_run(undisturbed, run)


def test_restart_resumes_another_folder_again(undisturbed: Run, tmp_path: Path) -> None:
    """As above, from the checkpoint of a run elsewhere."""
    elsewhere = train(tmp_path / "elsewhere", merged(LONG, {"checkpoint": {"every_steps": 250, "keep": 10}}), workers=2)
    late = merged(LONG, {"checkpoint": {"every_steps": None}})
    with Supervised(tmp_path / "here", late, 2, "--resume", elsewhere.checkpoint(500), "--max-restarts", 1) as run:
        run.wait_for_metrics()
        os.kill(run.living()[0], signal.SIGKILL)
        assert run.wait(60) == 0, run.said()
        assert len(re.findall(r"resuming from '.*elsewhere.*', after step 500 of 1500", run.said())) == 2, run.said()
    assert (run.run.folder / "model.safetensors").read_bytes() == (undisturbed.folder / "model.safetensors").read_bytes()


def test_restart_does_not_take_over_an_older_run(tmp_path: Path) -> None:
    """A folder that holds a run is refused, however often the workers start."""
    older = train(tmp_path, merged(SETTINGS, {"train": {"steps": 40}}), workers=2)
    before = (older.folder / "metrics.jsonl").read_bytes()
    with Supervised(tmp_path, SETTINGS, 2, "--max-restarts", 2) as run:
        wait_until(lambda: run.living() or run.process.poll() is not None)
        with suppress(KeyError, ProcessLookupError):  # it may be refused before a worker is there
            os.kill(run.living()[0], signal.SIGKILL)
        assert run.wait(60) == 2, run.said()
        assert len(run.errors) == 1 and "already holds a run" in run.errors[0], run.said()
    assert (older.folder / "metrics.jsonl").read_bytes() == before


# ---- what no restart would make better -----------------------------------------------------------------------------

MISSING_SHARD = {"train": {"format": "safetensors", "path": "none.safetensors"}, "eval": DIGITS["test"]}


@pytest.mark.parametrize(("changes", "code", "text"), [
    ({"optimizer": {"lr": 1e30}}, 5, "training diverged"), ({"data": MISSING_SHARD}, 2, "none.safetensors")])
def test_no_restart_after(changes: dict, code: int, text: str, tmp_path: Path) -> None:
    ended = run_supervised(tmp_path, merged(SETTINGS, changes), 2, "--max-restarts", 3, "--quiet")
    assert_says(error_message(ended, code), text)


def test_no_restart_after_a_damaged_checkpoint(tmp_path: Path) -> None:
    run = train(tmp_path, merged(SETTINGS, {"train": {"steps": 20}}), workers=2)
    with (run.checkpoint(20) / "rank-0001.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))
    ended = run_supervised(tmp_path, SETTINGS, 2, "--resume", run.checkpoint(20), "--max-restarts", 3, "--quiet")
    assert_says(error_message(ended, 4), "rank-0001.safetensors")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_no_restart_after_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    prefix = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=400k none {tmp_path}/run && exec "$@"', "sh"]
    ended = run_supervised(tmp_path, SETTINGS, 2, "--quiet", "--max-restarts", 3, prefix=prefix)
    assert_says(error_message(ended, 6), os.strerror(28))


def test_no_restart_after_a_stop(tmp_path: Path) -> None:
    with Supervised(tmp_path, ENDLESS, 2, "--max-restarts", 3) as run:
        run.wait_until_it_trains()
        os.kill(run.living()[1], signal.SIGTERM)
        assert run.wait(TIMEOUT_S) == 75, run.said()
        assert not RESTARTING.search(run.said())
