"""Workers that are killed at any moment: --resume auto ends with the weights of the run that nobody disturbed."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ports import free_port
from program import PROGRAM, TORCHRUN, environment, launcher_variables
from runs import Run, assert_same_run, assert_same_weights, merged, recipe, train, write_recipe

ROUNDS = int(os.environ.get("DECENT_RECOVERY_ROUNDS", "2"))  # for each number of workers
# timeout_s: workers wait so long for one that was killed before they met.
SETTINGS = recipe(train={"steps": 120}, parallel={"topology": "ring", "timeout_s": 6}, eval={"every_steps": 25},
                  checkpoint={"every_steps": 4, "keep": 2}, log={"every_steps": 5})


def start(config: Path, workers: int, err: object) -> list[subprocess.Popen]:
    port = free_port()
    return [subprocess.Popen([str(PROGRAM), "--config", str(config), "--resume", "auto"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=err, cwd=config.parent,
                             env=environment(**launcher_variables(rank, workers, port))) for rank in range(workers)]


def kill_some(processes: list[subprocess.Popen], chance: random.Random, seconds: float) -> None:
    """One of them or all, at a random moment of the first 70% of the time that a whole run takes."""
    victims = processes if chance.random() < 0.5 else [chance.choice(processes)]
    time.sleep(chance.uniform(0, 0.7 * seconds))
    for process in victims:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def disturb(config: Path, workers: int, chance: random.Random, seconds: float) -> tuple[int, float]:
    """Starts and kills the run three times at most, then lets it come to its end. Returns how often it was killed, and
    how long a whole run takes: less than `seconds` where the kill came too late, on a machine that was busier before."""
    killed = 0
    with (config.parent / "err").open("w") as err:
        for attempt in range(4):
            begin = time.monotonic()
            processes = start(config, workers, err)
            try:
                if attempt < 3:
                    kill_some(processes, chance, seconds)
                codes = [p.wait(60) for p in processes]
            finally:
                for process in processes:
                    process.kill()
                    process.wait()
            if codes == [0] * workers:
                return killed, min(seconds, time.monotonic() - begin) if attempt == 0 else seconds
            assert set(codes) <= {0, 3, -9}, f"{codes}\n{(config.parent / 'err').read_text()}"
            killed += 1
    raise AssertionError((config.parent / "err").read_text())


@pytest.mark.parametrize("workers", [1, 4])
def test_killed_at_random_moments(workers: int, tmp_path: Path) -> None:
    undisturbed = train(tmp_path / "whole", SETTINGS, workers=workers)
    seconds = max(ended.seconds for ended in undisturbed.ended)
    killed = 0
    for round_ in range(ROUNDS):
        config = write_recipe(tmp_path / str(round_), SETTINGS)
        more, seconds = disturb(config, workers, random.Random(10 * round_ + workers), seconds)
        killed += more
        run = Run(tmp_path / str(round_) / "run", [])
        assert_same_run(undisturbed, run)
        assert len(run.checkpoints) == 2 and not list((run.folder / "checkpoints").glob(".*")), round_
    assert killed >= ROUNDS  # most of the three a round hit a run that was on its way


def test_killed_after_the_last_checkpoint(tmp_path: Path) -> None:
    """Before older checkpoints than the last ones were removed: nothing else is saved, and they go all the same."""
    whole = train(tmp_path / "whole", SETTINGS, workers=2)
    run = train(tmp_path / "killed", merged(SETTINGS, {"checkpoint": {"keep": 3}}), workers=2)
    assert run.checkpoints == [112, 116, 120]
    metrics = run.folder / "metrics.jsonl"
    metrics.write_text("".join(line for line in metrics.read_text().splitlines(keepends=True) if '"end"' not in line))
    (run.folder / "model.pt").unlink()
    again = train(tmp_path / "killed", SETTINGS, "--resume", "auto", workers=2)
    assert again.checkpoints == [116, 120]
    assert_same_run(whole, again)


# Long enough for torchrun to see what is done to it.
LONG = merged(SETTINGS, {"train": {"steps": 1500}, "eval": {"every_steps": 500}, "checkpoint": {"every_steps": 20}})


@pytest.fixture(scope="module")
def undisturbed_long(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("undisturbed"), LONG, workers=2)


@pytest.mark.parametrize("victim", [0, 1])
def test_launcher_that_restarts(victim: int, undisturbed_long: Run, tmp_path: Path) -> None:
    """torchrun --max-restarts: nobody has to do anything."""
    config = write_recipe(tmp_path / "killed", LONG)
    with (tmp_path / "said").open("w") as said:
        torchrun = subprocess.Popen([str(TORCHRUN), "--nproc-per-node", "2", "--max-restarts", "3", str(PROGRAM),
                                     "--config", str(config), "--resume", "auto"], stdin=subprocess.DEVNULL,
                                    stdout=said, stderr=said, cwd=tmp_path,
                                    env=environment(PET_MASTER_PORT=free_port()))
        try:
            run = Run(tmp_path / "killed" / "run", [])
            wait_for(lambda: len(run.checkpoints) > 0 or torchrun.poll() is not None, tmp_path / "said")
            assert torchrun.poll() is None, (tmp_path / "said").read_text()
            os.kill(worker_of(config, victim), signal.SIGKILL)
            code = torchrun.wait(100)
        finally:
            torchrun.kill()
            torchrun.wait()
    text = (tmp_path / "said").read_text()
    assert code == 0, text
    assert re.search(r"resuming from '.*', after step \d+ of 1500", text), text
    assert_same_run(undisturbed_long, run)


def wait_for(condition, said: Path | None = None) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, said.read_text() if said else "a minute went by"
        time.sleep(0.005)


def worker_of(config: Path, rank: int) -> int:
    """The process id of one of torchrun's workers."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            here = str(config).encode() in arguments and arguments[0].endswith(b"decent-train")
            if here and f"RANK={rank}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                return int(entry.name)
    raise AssertionError(f"no worker {rank} of {config}")


def test_signal_to_the_launcher(undisturbed_long: Run, tmp_path: Path) -> None:
    """Ctrl-C: torchrun passes it on, all workers save; the next start goes on."""
    unsaved = merged(LONG, {"checkpoint": {"every_steps": None, "every_epochs": None}})
    config = write_recipe(tmp_path / "stopped", unsaved)
    run = Run(tmp_path / "stopped" / "run", [])
    with (tmp_path / "said").open("w") as said:
        torchrun = subprocess.Popen([str(TORCHRUN), "--nproc-per-node", "2", str(PROGRAM), "--config", str(config)],
                                    stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=tmp_path,
                                    env=environment(PET_MASTER_PORT=free_port()))
        try:
            metrics = run.folder / "metrics.jsonl"
            wait_for(lambda: metrics.exists() and metrics.stat().st_size > 0)
            torchrun.send_signal(signal.SIGINT)
            torchrun.wait(60)
        finally:
            torchrun.kill()
            torchrun.wait()
    text = (tmp_path / "said").read_text()
    assert re.search(r"decent-train: stopped after step \d+ by SIG(INT|TERM) to worker [01]. Saved '", text), text
    assert len(run.checkpoints) == 1
    assert_same_weights(undisturbed_long, train(tmp_path / "stopped", unsaved, "--resume", "auto", workers=2))
