"""tools/cluster on three machines, from a fourth: network namespaces, folders of their own, and a stand-in for ssh. Workers die,
cables are pulled and put back, and machines go and come; the run goes on.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hosts
from machines import Machines
from program import PROGRAM, ROOT

REASON = hosts.why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
TIMEOUT_S = 4  # parallel.timeout_s
NEXT_S = 10    # from a loss to the next step, and on a machine with little time for it twice that
SETTINGS = ["--set", "checkpoint.every_steps=200", "--set", "eval.every_epochs=null", "--set", "log.every_steps=20", "--set",
            "checkpoint.allow_missing=true", "--set", f"parallel.timeout_s={TIMEOUT_S}", "--set", "train.steps=10000000"]


class Cluster(Machines):
    """tools/cluster for three machines."""

    def __init__(self, made: list[hosts.Host], folder: Path) -> None:
        super().__init__(made, folder)
        (folder / "hosts").write_text("".join(f"{machine.address}\n" for machine in self.machines))

    def begin(self, *flags: str) -> None:
        self.start(ROOT / "tools" / "cluster", "hosts", "--folder", "train", "--program", PROGRAM, "--", "recipe.yaml",
                   *SETTINGS, *flags)

    def check_no_step_is_lost(self, step: int) -> None:
        """The others have saved their last step, and all go on from there."""
        saved = re.findall(r"The others have saved all steps in '.*/step-(\d+)'", self.said())
        resumed = re.findall(r"resuming from '.*', after step (\d+) of", self.said())
        assert len(saved) == 1 and int(saved[0]) == int(resumed[0]) >= step, self.said()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(60) == 75, self.said()
        assert self.log()[-1].endswith("stopped; --resume auto continues. Ends with exit code 75")
        assert [machine.worker() for machine in self.machines] == [None, None, None]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with hosts.hosts(4) as made:
        one = Cluster(made, tmp_path)
        try:
            yield one
        finally:
            one.end()


FIRST = "start 1: 3 of 3 machines, A, B, C; the store is at A:29500"


@pytest.mark.parametrize("victim", [0, 2])
def test_a_worker_is_killed(victim: int, cluster: Cluster) -> None:
    cluster.begin()
    step = cluster.wait_until_it_trains(0)
    begin = time.monotonic()
    os.kill(cluster.machines[victim].worker(), signal.SIGKILL)
    cluster.wait_for_start("start 2: 3 of 3 machines, A, B, C; the store is at A:29501", 0)
    took = time.monotonic() - begin
    print(f"{took:.1f} s from the loss to the next line")
    assert took < 2 * NEXT_S, cluster.said()
    cluster.check_no_step_is_lost(step)
    codes = ["3", "3", "3"]
    codes[victim] = "137"
    name = "ABC"[victim]
    assert cluster.log() == [FIRST, f"{name}: a worker was ended by SIGKILL",
                             f"start 1 ended after N s (A {codes[0]}, B {codes[1]}, C {codes[2]}): a worker was lost",
                             "start 2: 3 of 3 machines, A, B, C; the store is at A:29501"]
    cluster.stop()


def test_a_cable_is_pulled_and_put_back(cluster: Cluster) -> None:
    """The worker behind it is ended before all start again, whatever it has noticed."""
    cluster.begin()
    step = cluster.wait_until_it_trains(0)
    begin = time.monotonic()
    cluster.machines[2].host.set_link("down")
    cluster.wait_for_start("start 2: 2 of 3 machines, A, B; the store is at A:29501", 0)
    print(f"{time.monotonic() - begin:.1f} s from the cut to the next line")
    assert time.monotonic() - begin < TIMEOUT_S + 2 * NEXT_S, cluster.said()
    cluster.check_no_step_is_lost(step)
    lines = cluster.log()
    assert lines[0] == FIRST and "C: the connection is lost" in lines, cluster.said()
    assert "start 1 ended after N s (A 3, B 3, C lost): a worker was lost" in lines, cluster.said()
    assert any(line.startswith("C: does not answer: ssh: connect to host C port 22: ") for line in lines), cluster.said()

    old = cluster.machines[2].worker()
    cluster.machines[2].host.set_link("up")
    cluster.wait_for_line("stops the run with a checkpoint, to start again with C, which answers now")
    cluster.wait_for_start("start 3: 3 of 3 machines, A, B, C; the store is at A:29502", 0)
    lines = cluster.log()
    assert "start 2 ended after N s (A 75, B 75): stopped to start again" in lines, cluster.said()
    assert old is None or cluster.machines[2].worker() != old
    cluster.stop()


def test_a_worker_that_hangs_behind_a_cable(cluster: Cluster) -> None:
    """It is still there when its machine answers again."""
    cluster.begin()
    cluster.wait_until_it_trains(0)
    old = cluster.machines[1].worker()
    os.kill(old, signal.SIGSTOP)
    cluster.machines[1].host.set_link("down")
    cluster.wait_for_start("start 2: 2 of 3 machines, A, C; the store is at A:29501", 0)
    cluster.machines[1].host.set_link("up")
    cluster.wait_for_line(r"B: ended what was left of an earlier start \(processes: \d\)")
    cluster.wait_for_start("start 3: 3 of 3 machines, A, B, C; the store is at A:29502", 0)
    assert not Path(f"/proc/{old}").exists() or Path(f"/proc/{old}/environ").read_bytes() == b"", cluster.said()
    cluster.stop()


def test_the_first_machine_dies(cluster: Cluster) -> None:
    """The next one hosts the store, until the first one is there again."""
    cluster.begin()
    cluster.wait_until_it_trains(0)
    begin = time.monotonic()
    cluster.machines[0].die()
    cluster.wait_for_start("start 2: 2 of 3 machines, B, C; the store is at B:29501", 1)
    print(f"{time.monotonic() - begin:.1f} s from the cut to the next line")
    cluster.machines[0].boot()
    cluster.wait_for_start("start 3: 3 of 3 machines, A, B, C; the store is at A:29502", 0)
    cluster.stop()


def test_all_but_one_die(cluster: Cluster) -> None:
    cluster.begin()
    cluster.wait_until_it_trains(0)
    for machine in cluster.machines[:2]:
        machine.die()
    cluster.wait_for_start("start 2: 1 of 3 machines, C; the store is at C:29501", 2)
    cluster.process.terminate()
    assert cluster.process.wait(60) == 75, cluster.said()


def test_a_machine_dies_between_two_starts(cluster: Cluster) -> None:
    """It answered, and dies before it starts its worker, or just after: the others do not wait as long as they would by
    themselves."""
    cluster.begin("--set", "parallel.timeout_s=60")
    cluster.wait_for_line(re.escape(FIRST))
    cluster.machines[2].die()
    cluster.wait_for_start("start 2: 2 of 3 machines, A, B; the store is at A:29501", 0, 90)
    cluster.stop()
