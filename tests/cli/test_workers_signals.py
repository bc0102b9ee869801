"""Signals and terminals: what --workers started saves once, ends at once the second time, and leaves nothing."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from runs import Run, assert_same_run, merged, train
from supervised import ENDLESS, SETTINGS, Supervised, assert_stopped, assert_whole, states_of, train_supervised

CTRL_C, CTRL_Z = b"\x03", b"\x1a"
ENDS_S = 10  # a step, a save and the end of all processes, on a busy machine
AT_ONCE_S = 3
MOMENTS = 5 * int(os.environ.get("DECENT_KILL_ROUNDS", "1"))  # of the start
# Long enough for something to be done to it.
LONG = merged(SETTINGS, {"train": {"steps": 1500}, "eval": {"every_steps": 500}})


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("undisturbed"), LONG, workers=2)


# ---- Ctrl-C --------------------------------------------------------------------------------------------------------

def test_ctrl_c_once(undisturbed: Run, tmp_path: Path) -> None:
    """Where a run saves nothing by itself, it does then."""
    unsaved = ["--set", "checkpoint.every_steps=null"]
    with Supervised(tmp_path, LONG, 2, "--set", "log.progress=bar", *unsaved, terminal=True) as run:
        run.wait_for_metrics()
        run.type(CTRL_C)
        assert run.wait(ENDS_S) == 75, run.said()
        assert_stopped(run.said(), run.run, r"SIGINT to worker \d")
        assert run.errors == []
        stopped = run.run.lines("end")
        assert [line["status"] for line in stopped] == ["stopped"]
    assert_same_run(undisturbed, train_supervised(tmp_path, LONG, 2, "--resume", "auto"))


@pytest.mark.parametrize("pause", [0.05, 1.0])
def test_ctrl_c_twice(pause: float, tmp_path: Path) -> None:
    """A worker that does not answer keeps the others from saving; the second Ctrl-C does not wait for that."""
    with Supervised(tmp_path, merged(ENDLESS, {"parallel": {"timeout_s": 60}}), 2, terminal=True) as run:
        run.wait_until_it_trains()
        run.silence(1)
        run.type(CTRL_C)
        time.sleep(pause)
        run.type(CTRL_C)
        assert run.wait(AT_ONCE_S) == 128 + signal.SIGINT
        assert "ended at once by a second signal (SIGINT)" in run.said()
        assert_whole(run.run)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_while_it_starts(workers: int, tmp_path: Path) -> None:
    with Supervised(tmp_path, ENDLESS, workers, terminal=True) as run:
        run.wait_for_workers()
        run.type(CTRL_C)
        assert run.wait(AT_ONCE_S) == 128 + signal.SIGINT
        assert "ended before there was anything to save (SIGINT)" in run.said()
        assert not (tmp_path / "run").exists()


def test_ctrl_c_at_any_moment_of_the_start(tmp_path: Path) -> None:
    """Either nothing is saved and 130, or a checkpoint and 75."""
    for i in range(MOMENTS):
        with Supervised(tmp_path / str(i), ENDLESS, 2, terminal=True) as run:
            run.wait_for_workers()
            time.sleep(0.48 * i / MOMENTS)
            run.type(CTRL_C)
            code = run.wait(ENDS_S)
            assert code in (75, 128 + signal.SIGINT), f"{i}: {code}\n{run.said()}"
            assert run.errors == [], run.said()
            if code == 75:
                assert_stopped(run.said(), run.run, r"SIGINT to worker \d")
            else:
                assert run.run.checkpoints == []


def test_ctrl_c_while_it_only_reads(tmp_path: Path) -> None:
    train_supervised(tmp_path, merged(SETTINGS, {"train": {"steps": 20}}), 2)
    with Supervised(tmp_path, SETTINGS, 2, "--eval-only", "--set", "data.eval_batch_size=1", terminal=True) as run:
        run.wait_for_workers()
        run.type(CTRL_C)
        assert run.wait(AT_ONCE_S) == 128 + signal.SIGINT


# ---- signals to the parent alone -----------------------------------------------------------------------------------

@pytest.mark.parametrize(("name", "told"), [("SIGINT", "SIGINT"), ("SIGTERM", "SIGTERM"), ("SIGUSR1", "SIGUSR1"),
                                            ("SIGHUP", "SIGTERM")])
def test_signal_to_the_parent(name: str, told: str, tmp_path: Path) -> None:
    with Supervised(tmp_path, ENDLESS, 2) as run:
        run.wait_until_it_trains()
        run.process.send_signal(getattr(signal, name))
        assert run.wait(ENDS_S) == 75, run.said()
        assert_stopped(run.said(), run.run, rf"{told} to worker \d")
        assert run.errors == []


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP"])
def test_signal_while_it_starts(name: str, tmp_path: Path) -> None:
    with Supervised(tmp_path, ENDLESS, 2) as run:
        run.wait_for_workers()
        run.process.send_signal(getattr(signal, name))
        assert run.wait(AT_ONCE_S) == 128 + getattr(signal, name)
        assert not (tmp_path / "run").exists()


def test_signal_to_one_worker(tmp_path: Path) -> None:
    with Supervised(tmp_path, ENDLESS, 2) as run:
        run.wait_until_it_trains()
        os.kill(run.living()[1], signal.SIGTERM)
        assert run.wait(ENDS_S) == 75
        assert_stopped(run.said(), run.run, "SIGTERM to worker 1")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1"])
def test_signal_to_one_worker_at_any_moment_of_the_start(name: str, tmp_path: Path) -> None:
    """Nobody was lost: a restart would go on with what somebody asked to end."""
    ended = set()
    for i in range(2 * MOMENTS):
        with Supervised(tmp_path / str(i), ENDLESS, 2, "--max-restarts", 1) as run:
            run.wait_for_workers()
            time.sleep(0.6 * i / (2 * MOMENTS))
            os.kill(run.living()[i % 2], getattr(signal, name))
            code = run.wait(ENDS_S)
            ended.add(code)
            assert "starting all workers again" not in run.said()
            if code == 75:
                assert_stopped(run.said(), run.run, f"{name} to worker {i % 2}")
            else:
                assert code == 128 + getattr(signal, name), f"{i}: {code}\n{run.said()}"
                assert f"ended before there was anything to save ({name} to worker {i % 2})" in run.said()
                assert run.run.checkpoints == []
    assert 128 + getattr(signal, name) in ended


def test_signal_to_one_worker_that_only_reads(tmp_path: Path) -> None:
    train_supervised(tmp_path, merged(SETTINGS, {"train": {"steps": 20}}), 2)
    with Supervised(tmp_path, SETTINGS, 2, "--eval-only", "--set", "data.eval_batch_size=1") as run:
        run.wait_for_workers()
        os.kill(run.living()[1], signal.SIGTERM)
        assert run.wait(AT_ONCE_S) == 128 + signal.SIGTERM, run.said()


def test_second_signal_to_the_parent(tmp_path: Path) -> None:
    with Supervised(tmp_path, merged(ENDLESS, {"parallel": {"timeout_s": 60}}), 2) as run:
        run.wait_until_it_trains()
        run.silence(1)
        run.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert run.process.poll() is None
        run.process.send_signal(signal.SIGTERM)
        assert run.wait(AT_ONCE_S) == 128 + signal.SIGTERM


def test_two_signals_at_once_are_one_request(tmp_path: Path) -> None:
    """Launchers and batch systems send several, to a process and to its group."""
    with Supervised(tmp_path, merged(ENDLESS, {"parallel": {"timeout_s": 60}}), 2) as run:
        run.wait_until_it_trains()
        silent = run.silence(1)
        run.process.send_signal(signal.SIGINT)
        run.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert run.process.poll() is None, run.said()
        os.kill(silent, signal.SIGCONT)
        assert run.wait(ENDS_S) == 75
        assert_stopped(run.said(), run.run, r"SIG(?:INT|TERM) to worker \d")


def test_timeout_in_front(tmp_path: Path) -> None:
    """It sends its signal to the program and to the whole group, at once: that is one request."""
    for seconds in (0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4, 8, 16):  # a busy machine begins to train late
        folder = tmp_path / str(seconds)
        with Supervised(folder, ENDLESS, 2, prefix=["timeout", "-s", "INT", seconds]) as run:
            assert run.wait(ENDS_S + seconds) == 124, run.said()  # its own code
            if "before there was anything to save" in run.said():
                continue
            if run.said() == "" and not run.run.folder.exists():  # it was still being loaded
                continue
            assert_stopped(run.said(), run.run, r"SIGINT to worker \d")
            break
    else:
        pytest.fail("it never trained before its end")
    whole = merged(ENDLESS, {"train": {"steps": run.run.checkpoints[-1] + 50}})
    resumed = train_supervised(folder, whole, 2, "--resume", "auto")
    assert_same_run(train(tmp_path / "undisturbed", whole, workers=2), resumed)


def test_nohup(tmp_path: Path) -> None:
    with Supervised(tmp_path, ENDLESS, 2, prefix=["nohup"]) as run:
        run.wait_until_it_trains()
        os.killpg(run.process.pid, signal.SIGHUP)
        step = run.run.checkpoints[-1]
        run.wait_for(lambda: run.run.checkpoints[-1] > step)
        assert run.process.poll() is None and len(run.living()) == 2
        run.process.send_signal(signal.SIGTERM)
        assert run.wait(ENDS_S) == 75


# ---- terminals -----------------------------------------------------------------------------------------------------

def test_terminal_that_is_closed(undisturbed: Run, tmp_path: Path) -> None:
    """Its shell ends with it, and the system tells all processes in the foreground."""
    shell = ["bash", "-mc", '"$@"; exit $?', "bash"]
    with Supervised(tmp_path, LONG, 2, prefix=shell, terminal=True) as run:
        run.wait_for_metrics()
        run.close_terminal()
        run.wait_until_none_is_left(ENDS_S)
        assert [line["status"] for line in run.run.lines("end")] == ["stopped"]
        assert_whole(run.run)
    assert_same_run(undisturbed, train_supervised(tmp_path, LONG, 2, "--resume", "auto"))


def test_ctrl_z_and_fg(undisturbed: Run, tmp_path: Path) -> None:
    """In a shell with job control; shorter than timeout_s."""
    shell = ["bash", "-mc", '"$@"; echo "the shell is back"; sleep 1; fg; exit $?', "bash"]
    with Supervised(tmp_path, LONG, 2, "--quiet", prefix=shell, terminal=True) as run:
        run.wait_for_metrics()
        run.type(CTRL_Z)
        run.wait_for(lambda: "the shell is back" in run.said())
        run.wait_for(lambda: [states_of(process) for process in run.living().values()] == [{"T"}, {"T"}])
        assert run.wait(60) == 0, run.said()
    assert_same_run(undisturbed, run.run)


# ---- workers that do not answer ------------------------------------------------------------------------------------

@pytest.mark.skipif("DECENT_KILL_ROUNDS" not in os.environ, reason="takes 18 s; set DECENT_KILL_ROUNDS")
def test_stopped_worker(tmp_path: Path) -> None:
    """The others give it up after timeout_s; it is ended, too. Two runs side by side, as this takes its time."""
    settings = merged(ENDLESS, {"parallel": {"timeout_s": 2}})
    with Supervised(tmp_path / "0", settings, 2) as first, Supervised(tmp_path / "1", settings, 2) as second:
        for victim, run in enumerate((first, second)):
            run.wait_until_it_trains()
            run.silence(victim)
        for victim, run in enumerate((first, second)):
            assert run.wait(30) == 3
            assert len(run.errors) == 1 and f"lost worker {victim}" in run.errors[0], run.said()
