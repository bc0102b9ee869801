"""The lock of the output folder: two runs never write to one folder at the same time."""

from __future__ import annotations

import fcntl
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from ports import free_port
from program import PROGRAM, environment, launcher_variables, run_alone
from runs import Run, assert_same_run, assert_says, attempt, error_message, recipe, train, write_recipe

PAIRS = int(os.environ.get("DECENT_PAIR_ROUNDS", "2"))  # for each kind of pair
LONG = recipe(train={"steps": 100_000}, log={"every_steps": 1000})
KINDS = {"fresh": [], "resume": ["--resume", "auto"]}


@contextmanager
def living_run(folder: Path, settings: dict = LONG):
    """A run that is in its first steps; killed at the end."""
    config = write_recipe(folder, settings)
    with (folder / "living.out").open("w") as out:
        process = subprocess.Popen([str(PROGRAM), "--config", str(config)], env=environment(), cwd=folder, stdout=out,
                                   stderr=out, stdin=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 60
            while not (folder / "run" / "run.json").exists():  # the last file of its beginning
                assert process.poll() is None and time.monotonic() < deadline, (folder / "living.out").read_text()
                time.sleep(0.01)
            yield process
        finally:
            process.kill()
            process.wait()


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("flags", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("workers", [1, 2])
def test_second_run_says_who_holds_the_folder(flags: list[str], workers: int, tmp_path: Path) -> None:
    with living_run(tmp_path) as process:
        before = files_of(tmp_path / "run")
        message = error_message(attempt(tmp_path, LONG, *flags, workers=workers))
        assert_says(message, tmp_path / "run", "is in use by", f"process {process.pid} on '{socket.gethostname()}'",
                    time.strftime("since %Y-%m-%d", time.gmtime()), "--set output=DIR")
        assert process.poll() is None
        # The run that holds it may have begun its events meanwhile.
        assert {name for name in files_of(tmp_path / "run") - before if not name.startswith("events.out")} == set()


@pytest.mark.parametrize("harm", ["moved", "deleted", "lock", "metrics", "another lock"])
def test_a_folder_that_is_the_run_s_no_more(harm: str, tmp_path: Path) -> None:
    """The run ends at its next line, with 6, rather than write where nobody looks."""
    settings = recipe(train={"steps": 100_000}, log={"every_steps": 100})
    folder = tmp_path / "run"
    with living_run(tmp_path, settings) as process:
        if harm == "moved":
            folder.rename(tmp_path / "elsewhere")
        elif harm == "deleted":
            shutil.rmtree(folder, ignore_errors=True)
        elif harm == "another lock":
            (tmp_path / "lock").touch()
            (tmp_path / "lock").rename(folder / ".lock")
        else:
            (folder / (".lock" if harm == "lock" else "metrics.jsonl")).unlink()
        assert process.wait(timeout=60) == 6, (tmp_path / "living.out").read_text()
    said = (tmp_path / "living.out").read_text()
    assert_says(said, "decent-train: error: '", "was the output folder moved or deleted?")
    assert harm != "another lock" or (folder / ".lock").exists(), "it is not this run's"


def test_reading_needs_no_lock(tmp_path: Path) -> None:
    settings = recipe(train={"steps": 100_000}, log={"every_steps": 1000}, checkpoint={"every_steps": 10})
    with living_run(tmp_path, settings) as process:
        while not list((tmp_path / "run" / "checkpoints").glob("step-*")):
            time.sleep(0.01)
        config = tmp_path / "recipe.yaml"
        for flags in (["--eval-only"], ["--export", "out.safetensors"], ["--print-config"]):
            ended = run_alone("--config", config, *flags, cwd=tmp_path)
            # A checkpoint may be pruned between being found and being read, which says so.
            assert ended.code == 0 or "checkpoint" in ended.err, ended
        assert process.poll() is None


def test_dry_run_notes_it_and_leaves_no_trace(tmp_path: Path) -> None:
    with living_run(tmp_path) as process:
        before = files_of(tmp_path / "run")
        ended = attempt(tmp_path, LONG, "--dry-run")[0]
        assert ended.code == 0, ended.err
        assert_says(ended.out, f"note: output folder '{tmp_path}/run' is in use by the run of process {process.pid}",
                    "\n           Wait until", "all but the output folder is well")
        assert files_of(tmp_path / "run") == before
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    ended = attempt(fresh, LONG, "--dry-run")[0]
    assert ended.code == 0 and "all is well" in ended.out
    assert files_of(fresh) == {"recipe.yaml"}


def test_killed_holder_holds_nothing(tmp_path: Path) -> None:
    settings = recipe(train={"steps": 100_000}, log={"every_steps": 1000}, checkpoint={"every_steps": 10})
    with living_run(tmp_path, settings) as process:
        while not list((tmp_path / "run" / "checkpoints").glob("step-*")):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / "run" / ".lock").exists()
    step = max(int(path.name[5:]) for path in (tmp_path / "run" / "checkpoints").glob("step-*"))
    run = train(tmp_path, recipe(train={"steps": step + 5}), "--resume", "auto")
    assert run.lines("end")[-1]["status"] == "completed"
    assert not (run.folder / ".lock").exists()


def test_run_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    """The lock comes before the checkpoint is looked for; a folder that only the lock made goes with it."""
    ended = attempt(tmp_path, recipe(), "--resume", str(tmp_path / "nowhere"))
    assert_says(error_message(ended), "there is no checkpoint")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_run_that_fails_frees_the_folder(workers: int, tmp_path: Path) -> None:
    ended = attempt(tmp_path, recipe(optimizer={"name": "sgd", "lr": 1e30}), workers=workers)
    assert {e.code for e in ended} == {5}, ended
    assert (tmp_path / "run" / "metrics.jsonl").exists() and not (tmp_path / "run" / ".lock").exists()


def test_lock_of_another_program(tmp_path: Path) -> None:
    """Whoever locks the file without a word is named as what it is."""
    (tmp_path / "run").mkdir()
    with (tmp_path / "run" / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert_says(error_message(attempt(tmp_path, recipe())), "is in use by another run")


# ---- pairs at random moments ---------------------------------------------------------------------------------------

PAIR = recipe(train={"steps": 60}, checkpoint={"every_steps": 20}, eval={"every_steps": 30}, log={"every_steps": 5})


def start(config: Path, flags: list[str], workers: int, said: Path) -> list[subprocess.Popen]:
    port = free_port()
    with said.open("w") as out:
        return [subprocess.Popen([str(PROGRAM), "--config", str(config), *flags], stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=out, cwd=config.parent, env=environment(**launcher_variables(r, workers, port)))
                for r in range(workers)]


def codes_of(processes: list[subprocess.Popen]) -> set[int]:
    try:
        return {process.wait(120) for process in processes}
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kinds", ["fresh fresh", "fresh resume", "resume resume"])
def test_pairs(kinds: str, workers: int, tmp_path: Path) -> None:
    """Exactly one of two runs trains; the other is refused, or finds a run that is complete."""
    undisturbed = train(tmp_path / "alone", PAIR, workers=workers)
    seconds = max(ended.seconds for ended in undisturbed.ended)
    chance = random.Random(f"{kinds} {workers}")
    for round_ in range(PAIRS):
        folder = tmp_path / str(round_)
        config = write_recipe(folder, PAIR)
        said = [folder / "first", folder / "second"]
        first = start(config, KINDS[kinds.split()[0]], workers, said[0])
        time.sleep(chance.uniform(0, 1.3 * seconds))
        second = start(config, KINDS[kinds.split()[1]], workers, said[1])
        codes = [codes_of(first), codes_of(second)]
        texts = [path.read_text() for path in said]
        context = f"round {round_}: {codes}\n{texts[0]}\n{texts[1]}"
        trained = [i for i in (0, 1) if "done: 60 updates" in texts[i]]
        assert len(trained) == 1 and codes[trained[0]] == {0}, context
        loser = 1 - trained[0]
        complete = codes[loser] == {0} and "is complete" in texts[loser]
        refused = codes[loser] == {2} and re.search("is in use by the run of|already holds a run", texts[loser])
        assert complete or refused, context
        assert_same_run(undisturbed, Run(folder / "run", []))
        assert not (folder / "run" / ".lock").exists(), context
