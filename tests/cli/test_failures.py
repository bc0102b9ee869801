"""A worker that dies, hangs or fails: the others end with exit code 3 (or its own), in time, and the right one is named."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ports import free_port
from program import PROGRAM, environment, launcher_variables
from started import CONFIG, GRACE_S, TIMEOUT_S, Started, check_names


def by(backend: str) -> tuple[str, ...]:
    return "--set", f"parallel.backend={backend}"


# auto: workers share memory. By gloo each worker is killed once.
@pytest.mark.parametrize(("victim", "torchrun", "backend"), [
    (0, False, "auto"), (1, False, "auto"), (2, False, "auto"), (0, True, "auto"), (1, True, "auto"), (2, True, "auto"),
    (0, False, "gloo"), (1, False, "gloo"), (2, True, "gloo")])
def test_killed_worker(victim: int, torchrun: bool, backend: str, tmp_path: Path) -> None:
    """kill -9 at random moments."""
    rounds = int(os.environ.get("DECENT_KILL_ROUNDS", "1"))
    for round_ in range(rounds):
        with Started(3, tmp_path / str(round_), torchrun, *by(backend)) as run:
            run.wait_until_it_trains()
            time.sleep(random.Random(100 * round_ + 10 * victim + torchrun).uniform(0, 1.0))
            pids = run.workers_of_torchrun() if torchrun else [p.pid for p in run.processes]
            os.kill(pids[victim], signal.SIGKILL)
            # torchrun itself takes up to 30 s to be done; what it started must be gone before that.
            codes = run.wait(40 if torchrun else TIMEOUT_S + GRACE_S, without=None if torchrun else victim)
            assert codes == ([1] if torchrun else [3, 3]), run.said()
            check_names(run.said(), victim)
            if torchrun:
                told = dict(re.findall(r"rank\s*:\s*(\d+) .*\n\s*exitcode\s*:\s*(-?\d+)", run.said()))
                assert told.pop(str(victim), None) == "-9", run.said()
                assert set(told.values()) <= {"3"}, run.said()  # of the others, those that ended before torchrun looked
            assert run.workers_of_torchrun() == []
            if victim != 0:
                assert '"status":"failed"' in run.last_metrics_line()


@pytest.mark.parametrize(("victim", "backend"), [(0, "auto"), (1, "auto"), (1, "gloo")])
def test_stopped_process(victim: int, backend: str, tmp_path: Path) -> None:
    """SIGSTOP: the others give it up after timeout_s; it ends, too, once it goes on."""
    with Started(3, tmp_path, False, *by(backend)) as run:
        run.wait_until_it_trains()
        os.kill(run.processes[victim].pid, signal.SIGSTOP)
        assert run.wait(TIMEOUT_S + GRACE_S, without=victim) == [3, 3], run.said()
        check_names(run.said(), victim)
        assert f"silent for {TIMEOUT_S}" in run.said()
        os.kill(run.processes[victim].pid, signal.SIGCONT)
        assert run.processes[victim].wait(TIMEOUT_S + GRACE_S) == 3, run.said()
        assert run.said().count(f"lost worker {victim}") == 2  # it, too, says why it ends


def test_slow_is_not_silent(tmp_path: Path) -> None:
    """Heartbeats come from a thread of their own: a worker that computes for long is not declared lost."""
    with Started(2, tmp_path, False, "--set", "eval.every_steps=1") as run:
        run.wait_until_it_trains()
        time.sleep(TIMEOUT_S + GRACE_S)
        assert [p.poll() for p in run.processes] == [None, None], run.said()


def test_peer_that_never_comes(tmp_path: Path) -> None:
    """Two of three workers are started; whichever of them loses patience first, rank 0 tells."""
    port = free_port()
    files = [(tmp_path / f"{rank}.err").open("w+") for rank in range(2)]
    begin = time.monotonic()
    processes = [subprocess.Popen([str(PROGRAM), "--config", str(CONFIG), "--set", f"output={tmp_path / 'run'}",
                                   "--set", "parallel.timeout_s=3"],
                                  env=environment(**launcher_variables(rank, 3, port)), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=files[rank]) for rank in range(2)]
    assert [p.wait(30) for p in processes] == [3, 3]
    assert time.monotonic() - begin < 3 + GRACE_S + 3  # loading the program comes on top
    said = [Path(file.name).read_text() for file in files]
    assert said[0] and not said[1], said
    assert "worker 2 of 3 has not shown up within 3 s (parallel.timeout_s)" in "".join(said)
    assert not (tmp_path / "run").exists()


# ---- signals --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("workers", "rank", "name"), [(1, 0, "SIGINT"), (1, 0, "SIGTERM"), (3, 0, "SIGTERM"),
                                                       (3, 2, "SIGINT"), (3, 1, "SIGUSR1"), (1, 0, "SIGHUP"), (3, 1, "SIGHUP")])
def test_signal_stops_all_after_the_same_step(workers: int, rank: int, name: str, tmp_path: Path) -> None:
    with Started(workers, tmp_path) as run:
        run.wait_until_it_trains()
        os.kill(run.processes[rank].pid, getattr(signal, name))
        assert run.wait(10) == [75] * workers, run.said()
        said = re.fullmatch(rf"decent-train: stopped after step (\d+) by {name} to worker {rank}. "
                            rf"Saved '{tmp_path}/run/checkpoints/step-(\d+)'; go on with --resume auto\n", run.said())
        assert said and int(said.group(1)) == int(said.group(2)), run.said()
        assert (tmp_path / "run" / "checkpoints" / f"step-{said.group(2)}" / "manifest.json").exists()
        assert f'"kind":"end","status":"stopped","step":{said.group(1)},' in run.last_metrics_line()


def test_nohup(tmp_path: Path) -> None:
    """A run whose SIGHUP is ignored outlives its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # children inherit it
    try:
        with Started(1, tmp_path) as run:
            run.wait_until_it_trains()
            os.kill(run.processes[0].pid, signal.SIGHUP)
            time.sleep(0.5)
            assert run.processes[0].poll() is None, run.said()
            os.kill(run.processes[0].pid, signal.SIGTERM)
            assert run.wait(10) == [75]
            assert "by SIGTERM to worker 0" in run.said()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_signal_to_torchrun(tmp_path: Path) -> None:
    """Ctrl-C: torchrun passes it on."""
    with Started(2, tmp_path, True) as run:
        run.wait_until_it_trains()
        run.processes[0].send_signal(signal.SIGINT)
        run.wait(40)
        assert "decent-train: stopped after step" in run.said()
        assert "decent-train: error:" not in run.said()
        assert '"status":"stopped"' in run.last_metrics_line()


def test_second_signal_stops_at_once(tmp_path: Path) -> None:
    """A worker that cannot come to the end of its step, since its peer hangs, still ends on a second signal."""
    with Started(2, tmp_path, False, "--set", "parallel.timeout_s=60") as run:
        run.wait_until_it_trains()
        os.kill(run.processes[1].pid, signal.SIGSTOP)
        run.processes[0].send_signal(signal.SIGTERM)
        time.sleep(3.2)
        assert run.processes[0].poll() is None
        run.processes[0].send_signal(signal.SIGTERM)
        assert run.processes[0].wait(3) == 75
        assert "second signal" in run.said()
        os.kill(run.processes[1].pid, signal.SIGCONT)
        assert run.processes[1].wait(5) == 75
