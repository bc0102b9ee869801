"""Workers that share memory and are killed, stopped or held up: the others end in time and say why, nothing is left, and the
run goes on bit for bit.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from exchange_cases import Case
from runs import DIGITS_CNN, NO_CHECKPOINTS, Run, assert_same_run, merged, recipe, write_recipe
from shared import GLOO, BY, holders_of, shared_memory_of, told_device, train_gloo, wide_model
from started import Started, check_names
from tensors import differing, read_safetensors

ROUNDS = int(os.environ.get("DECENT_KILL_ROUNDS", "1"))  # for each test
TIMEOUT_S = 3
GRACE_S = 2  # beyond it, as in started.py
WORKERS = 4
# Every way that weights go, one after the other: sent, added up, rounded, as codes; and averages all the time.
CASES = [Case(WORKERS, "complete"), Case(WORKERS, "ring", "modulo2", 3), Case(WORKERS, "uneven-groups", "bf16"),
         Case(WORKERS, "one-peer-exp"), Case(WORKERS, "nodes-of-2", "modulo4")]


def start(folder: Path, case: Case, *flags: str, model: Path = DIGITS_CNN) -> Started:
    """A run that goes on until something is done to it."""
    own = recipe(model, parallel=case.parallel, eval={"every_steps": 25}, checkpoint={"every_steps": 40, "keep": 1})
    flags = ("--set", f"parallel.timeout_s={TIMEOUT_S}", "--set", "log.every_steps=1", *flags)
    return Started(case.workers, folder / "started", False, *flags, config=write_recipe(folder, own))


def pids_of(run: Started) -> list[int]:
    return [process.pid for process in run.processes]


def kill(run: Started, ranks: list[int]) -> None:
    for rank in ranks:
        with suppress(ProcessLookupError):
            os.kill(run.processes[rank].pid, signal.SIGKILL)


def wait_until(condition: Callable[[], bool], seconds: float, said: Callable[[], str]) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, said()
        time.sleep(0.02)


def assert_nothing_is_left(run: Started, memory: set) -> None:
    """No process, and nobody who keeps its memory: with that the kernel has freed it, as it has no name in any folder."""
    assert [process.poll() is None for process in run.processes] == [False] * len(run.processes)
    assert run.workers_of_torchrun() == []
    assert memory and holders_of(memory) == []


def rounds(salt: int) -> list[tuple[int, Case, random.Random]]:
    """Other cases in every test and round."""
    return [(i, CASES[(i + salt) % len(CASES)], random.Random(1000 * salt + i)) for i in range(ROUNDS)]


# ---- losses ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("victim", range(WORKERS))
def test_killed_worker(victim: int, tmp_path: Path) -> None:
    """kill -9 at random moments."""
    for i, case, chance in rounds(victim):
        with start(tmp_path / str(i), case) as run:
            run.wait_until_it_trains()
            assert told_device(run.said(0)) == BY["shared"]
            memory = shared_memory_of(pids_of(run))
            time.sleep(chance.uniform(0, 0.6))
            kill(run, [victim])
            assert run.wait(TIMEOUT_S + GRACE_S, without=victim) == [3] * (WORKERS - 1), run.said()
            check_names(run.said(), victim)
            run.processes[victim].wait(GRACE_S)
            assert_nothing_is_left(run, memory)


def test_several_killed_at_once(tmp_path: Path) -> None:
    for i, case, chance in rounds(5):
        with start(tmp_path / str(i), case) as run:
            run.wait_until_it_trains()
            memory = shared_memory_of(pids_of(run))
            time.sleep(chance.uniform(0, 0.6))
            victims = chance.sample(range(WORKERS), chance.choice([2, 3, 4]))
            kill(run, victims)
            codes = run.wait(TIMEOUT_S + GRACE_S)
            assert codes == [-9 if rank in victims else 3 for rank in range(WORKERS)], run.said()
            assert_nothing_is_left(run, memory)


def test_killed_while_it_starts(tmp_path: Path) -> None:
    """Before, while or just after workers map one another's memory. Workers that have not met wait for timeout_s, and where
    the store is gone, they try it twice, and each says so.
    """
    for i, case, chance in rounds(6):
        memory: set = set()
        with start(tmp_path / str(i), case) as run:
            end = time.monotonic() + chance.uniform(0.1, 1.5)
            while time.monotonic() < end:
                memory |= shared_memory_of(pids_of(run))
                time.sleep(0.005)
            victim = chance.randrange(WORKERS)
            kill(run, [victim])
            codes = run.wait(2 * TIMEOUT_S + GRACE_S + 3)  # loading the program comes on top
            assert codes == [-9 if rank == victim else 3 for rank in range(WORKERS)], run.said()
            assert run.said().count("decent-train: error: ") in ([1] if memory else range(1, WORKERS)), run.said()
            assert run.workers_of_torchrun() == [] and holders_of(memory) == []


def test_stopped_process(tmp_path: Path) -> None:
    """SIGSTOP: the others give it up after timeout_s; it ends, too, once it goes on. Its memory is kept until then."""
    for i, case, chance in rounds(7):
        victim = chance.randrange(WORKERS)
        with start(tmp_path / str(i), case) as run:
            run.wait_until_it_trains()
            memory = shared_memory_of(pids_of(run))
            time.sleep(chance.uniform(0, 0.6))
            os.kill(run.processes[victim].pid, signal.SIGSTOP)
            assert run.wait(TIMEOUT_S + GRACE_S, without=victim) == [3] * (WORKERS - 1), run.said()
            check_names(run.said(), victim)
            assert f"silent for {TIMEOUT_S}" in run.said()
            assert holders_of(memory) == [run.processes[victim].pid]
            os.kill(run.processes[victim].pid, signal.SIGCONT)
            assert run.processes[victim].wait(TIMEOUT_S + GRACE_S) == 3, run.said()
            assert_nothing_is_left(run, memory)


# ---- memory ---------------------------------------------------------------------------------------------------------

def shared_of_the_machine() -> int:
    """Shmem of /proc/meminfo, in bytes."""
    line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("Shmem:"))
    return int(line.split()[1]) * 1024


def test_memory_is_given_back(tmp_path: Path) -> None:
    """All workers are killed, so that nobody cleans up. Other programs may have some, too, but not so much for so long."""
    parameters = 6_000_000
    before = shared_of_the_machine()
    for i in range(min(ROUNDS, 4)):
        folder = tmp_path / str(i)
        folder.mkdir()
        flags = ("--set", "eval.every_steps=null", "--set", "checkpoint.every_steps=null")
        with start(folder, Case(3, "complete"), *flags, model=wide_model(folder, parameters)) as run:
            run.wait_until_it_trains()
            memory = shared_memory_of(pids_of(run))
            assert shared_of_the_machine() >= before + 3 * 4 * parameters * 0.9
            kill(run, [0, 1, 2])
            run.wait(GRACE_S)
            assert_nothing_is_left(run, memory)
        wait_until(lambda: shared_of_the_machine() <= before + 4 * parameters, 30, lambda: "shared memory is left")


# ---- going on -------------------------------------------------------------------------------------------------------

def short_run(case: Case, steps: int) -> dict:
    return merged(case.recipe(), {"train": {"steps": steps}, "eval": {"every_steps": 25}, "checkpoint": NO_CHECKPOINTS,
                                  "log": {"every_steps": 5, "tensorboard": False}, "parallel": {"timeout_s": 30}})


def run_until_done(folder: Path, own: dict, workers: int, *flags: str, disturb: Callable[[Started], None]) -> list[int]:
    """Exit codes of a run that something is done to until it ends."""
    (folder / "run").mkdir(parents=True, exist_ok=True)
    config = folder / "recipe.yaml"
    config.write_text(json.dumps(own))
    flags = ("--set", f"train.steps={own['train']['steps']}", "--set", f"log.every_steps={own['log']['every_steps']}",
             "--set", f"parallel.timeout_s={own['parallel']['timeout_s']}", *flags)
    with Started(workers, folder, False, *flags, config=config) as run:
        disturb(run)
        return run.wait(60)


def hold_up(chance: random.Random) -> Callable[[Started], None]:
    """SIGSTOP and SIGCONT, one worker after the other, at any moment and for any time."""
    def disturb(run: Started) -> None:
        run.wait_until_it_trains()
        while all(process.poll() is None for process in run.processes):
            pid = chance.choice(run.processes).pid
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(chance.uniform(0, 0.01))
                os.kill(pid, signal.SIGCONT)
            time.sleep(chance.uniform(0, 0.01))
    return disturb


@pytest.mark.parametrize("number", range(3))
def test_held_up_workers_change_nothing(number: int, tmp_path: Path) -> None:
    """The bits of an undisturbed run by gloo, or where weights are added up those of any other run."""
    for i, _, chance in rounds(8 + number):
        case = CASES[(number + i) % len(CASES)]
        own = short_run(case, 100)
        assert run_until_done(tmp_path / f"disturbed{i}", own, WORKERS, disturb=hold_up(chance)) == [0] * WORKERS
        same = () if case.adds_up else GLOO
        assert run_until_done(tmp_path / f"undisturbed{i}", own, WORKERS, *same, disturb=lambda run: None) == [0] * WORKERS
        one, two = (Run(tmp_path / f"{name}{i}" / "run", []) for name in ("disturbed", "undisturbed"))
        assert [line["loss"] for line in one.lines("train")] == [line["loss"] for line in two.lines("train")]
        if case.adds_up:
            assert_same_run(one, two)


def test_killed_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """Killed with shared memory and resumed with it, the run ends as one by gloo that nobody disturbed."""
    for i, _, chance in rounds(11):
        own = merged(short_run(Case(2, "ring", ("fp32", "modulo2", "bf16")[i % 3], 1 + i % 2), 200),
                     {"checkpoint": {"every_steps": 20, "keep": 1}})
        folder = tmp_path / str(i)
        undisturbed = train_gloo(folder / "undisturbed", own, workers=2)

        def kill_one(run: Started) -> None:
            run.wait_until_it_trains()
            wait_until(lambda: any((run.folder / "run" / "checkpoints").glob("step-*")), 30, run.said)
            time.sleep(chance.uniform(0, 0.1))
            kill(run, [chance.randrange(2)])

        codes = run_until_done(folder / "killed", own, 2, disturb=kill_one)
        assert -9 in codes, "the run was over before"
        assert run_until_done(folder / "killed", own, 2, "--resume", "auto", disturb=lambda run: None) == [0, 0]
        resumed = Run(folder / "killed" / "run", [])
        assert_same_run(undisturbed, resumed)
        for rank in range(2):
            name = f"rank-{rank:04}.safetensors"
            assert differing(read_safetensors(undisturbed.checkpoint(200) / name),
                             read_safetensors(resumed.checkpoint(200) / name)) == []
