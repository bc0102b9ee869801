"""tools/cluster on three machines, from a fourth: network namespaces, folders of their own, and a stand-in for ssh. Workers die,
cables are pulled and put back, and machines go and come; the run goes on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import hosts
from program import PROGRAM, ROOT, environment

REASON = hosts.why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
TIMEOUT_S = 4  # parallel.timeout_s
NEXT_S = 10    # from a loss to the next step, and on a machine with little time for it twice that
SETTINGS = ["--set", "checkpoint.every_steps=200", "--set", "eval.every_epochs=null", "--set", "log.every_steps=20", "--set",
            "checkpoint.allow_missing=true", "--set", f"parallel.timeout_s={TIMEOUT_S}", "--set", "train.steps=10000000"]
TINY_SSH = ROOT / "tests" / "support" / "tiny_ssh.py"


class Machine:
    """A host with a folder, and with what takes ssh's place."""

    def __init__(self, host: hosts.Host, folder: Path) -> None:
        self.host, self.folder = host, folder
        self.address = host.address
        train = folder / "train"
        train.mkdir(parents=True)
        shutil.copy(ROOT / "models/digits_mlp.pt", train)
        recipe = (ROOT / "configs/digits.yaml").read_text().replace("../models/", "").replace("runs/digits", "runs/recipe")
        (train / "recipe.yaml").write_text(recipe)
        self.server: subprocess.Popen | None = None
        self.boot()

    def boot(self) -> None:
        self.host.set_link("up")
        with (self.folder / "sshd").open("w") as said:
            self.server = subprocess.Popen([*self.host.prefix, sys.executable, TINY_SSH, "serve", self.address, self.folder],
                                           env=environment(), stdout=said, stderr=said, start_new_session=True)

    def processes(self) -> list[int]:
        pids = subprocess.run(["ip", "netns", "pids", self.host.name], check=True, text=True, stdout=subprocess.PIPE)
        return [int(pid) for pid in pids.stdout.split()]

    def worker(self) -> int | None:
        for process in self.processes():
            with suppress(OSError):
                variables = Path(f"/proc/{process}/environ").read_bytes()
                if b"\0DECENT_CLUSTER=" in b"\0" + variables and b"RANK=" in variables:
                    return process
        return None

    def die(self) -> None:
        """As after a power cut: nothing is closed, as far as others can see."""
        self.host.set_link("down")
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.server.wait()

    def steps(self) -> list[int]:
        """Of its lines in metrics.jsonl, which the first machine of a start writes."""
        file = self.folder / "train/runs/recipe/metrics.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line)["step"] for line in lines if '"kind":"train"' in line and line.endswith("}")]


class Cluster:
    """tools/cluster on the last host, for the others."""

    def __init__(self, made: list[hosts.Host], folder: Path) -> None:
        self.folder = folder
        self.machines = [Machine(host, folder / f"machine{number}") for number, host in enumerate(made[:-1])]
        self.own = made[-1]
        (folder / "hosts").write_text("".join(f"{machine.address}\n" for machine in self.machines))
        self.process: subprocess.Popen | None = None

    def start(self, *flags: str) -> None:
        command = [*self.own.prefix, ROOT / "tools" / "cluster", "hosts", "--ssh", f"{sys.executable} {TINY_SSH}", "--folder",
                   "train", "--program", PROGRAM, "--", "recipe.yaml", *SETTINGS, *flags]
        with (self.folder / "out").open("w") as out:
            self.process = subprocess.Popen(command, cwd=self.folder, env=environment(), stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=subprocess.STDOUT, start_new_session=True)

    def said(self) -> str:
        return (self.folder / "out").read_text()

    def log(self) -> list[str]:
        """Its lines without times; machines are A, B, C."""
        text = re.sub(r"after \d+ s", "after N s", self.said())
        for name, machine in zip("ABC", self.machines):
            text = re.sub(rf"\b{re.escape(machine.address)}\b", name, text)
        return re.findall(r"^cluster: \d\d:\d\d:\d\d (.*)$", text, re.M)

    def wait_until(self, condition, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline and self.process.poll() is None, self.said()
            time.sleep(0.05)

    def wait_for_line(self, pattern: str, seconds: float = 60) -> None:
        self.wait_until(lambda: any(re.fullmatch(pattern, line) for line in self.log()), seconds)

    def wait_until_it_trains(self, first: int, after: int = 0, seconds: float = 60) -> int:
        """Until the first machine has written a line of a later step, and a checkpoint is there."""
        machine = self.machines[first]
        self.wait_until(lambda: max(machine.steps(), default=0) > after, seconds)
        self.wait_until(lambda: list((machine.folder / "train/runs/recipe/checkpoints").glob("step-*/manifest.json")), seconds)
        return machine.steps()[-1]

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(60) == 75, self.said()
        assert self.log()[-1].endswith("stopped; --resume auto continues. Ends with exit code 75")
        assert [machine.worker() for machine in self.machines] == [None, None, None]

    def end(self) -> None:
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for machine in self.machines:
            machine.die()


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
    cluster.start()
    step = cluster.wait_until_it_trains(0)
    begin = time.monotonic()
    os.kill(cluster.machines[victim].worker(), signal.SIGKILL)
    cluster.wait_for_line("start 2: 3 of 3 machines, A, B, C; the store is at A:29501")
    cluster.wait_until_it_trains(0, after=step)
    took = time.monotonic() - begin
    print(f"{took:.1f} s from the loss to the next line")
    assert took < 2 * NEXT_S, cluster.said()
    codes = ["3", "3", "3"]
    codes[victim] = "137"
    name = "ABC"[victim]
    assert cluster.log() == [FIRST, f"{name}: a worker was ended by SIGKILL",
                             f"start 1 ended after N s (A {codes[0]}, B {codes[1]}, C {codes[2]}): a worker was lost",
                             "start 2: 3 of 3 machines, A, B, C; the store is at A:29501"]
    cluster.stop()


def test_a_cable_is_pulled_and_put_back(cluster: Cluster) -> None:
    """The worker behind it is ended before all start again, whatever it has noticed."""
    cluster.start()
    step = cluster.wait_until_it_trains(0)
    begin = time.monotonic()
    cluster.machines[2].host.set_link("down")
    cluster.wait_for_line("start 2: 2 of 3 machines, A, B; the store is at A:29501")
    step = cluster.wait_until_it_trains(0, after=step)
    print(f"{time.monotonic() - begin:.1f} s from the cut to the next line")
    assert time.monotonic() - begin < TIMEOUT_S + 2 * NEXT_S, cluster.said()
    lines = cluster.log()
    assert lines[0] == FIRST and "C: the connection is lost" in lines, cluster.said()
    assert "start 1 ended after N s (A 3, B 3, C lost): a worker was lost" in lines, cluster.said()
    assert any(line.startswith("C: does not answer: ssh: connect to host C port 22: ") for line in lines), cluster.said()

    old = cluster.machines[2].worker()
    cluster.machines[2].host.set_link("up")
    cluster.wait_for_line("stops the run with a checkpoint, to start again with C, which answers now")
    cluster.wait_for_line("start 3: 3 of 3 machines, A, B, C; the store is at A:29502")
    step = cluster.machines[0].steps()[-1]
    lines = cluster.log()
    assert "start 2 ended after N s (A 75, B 75): stopped to start again" in lines, cluster.said()
    assert old is None or cluster.machines[2].worker() != old
    cluster.wait_until_it_trains(0, after=step)
    cluster.stop()


def test_a_worker_that_hangs_behind_a_cable(cluster: Cluster) -> None:
    """It is still there when its machine answers again."""
    cluster.start()
    step = cluster.wait_until_it_trains(0)
    old = cluster.machines[1].worker()
    os.kill(old, signal.SIGSTOP)
    cluster.machines[1].host.set_link("down")
    cluster.wait_for_line("start 2: 2 of 3 machines, A, C; the store is at A:29501")
    step = cluster.wait_until_it_trains(0, after=step)
    cluster.machines[1].host.set_link("up")
    cluster.wait_for_line(r"B: ended what was left of an earlier start \(\d processes\)")
    cluster.wait_for_line("start 3: 3 of 3 machines, A, B, C; the store is at A:29502")
    step = cluster.machines[0].steps()[-1]
    assert not Path(f"/proc/{old}").exists() or Path(f"/proc/{old}/environ").read_bytes() == b"", cluster.said()
    cluster.wait_until_it_trains(0, after=step)
    cluster.stop()


def test_the_first_machine_dies(cluster: Cluster) -> None:
    """The next one hosts the store, until the first one is there again."""
    cluster.start()
    cluster.wait_until_it_trains(0)
    begin = time.monotonic()
    cluster.machines[0].die()
    cluster.wait_for_line("start 2: 2 of 3 machines, B, C; the store is at B:29501")
    step = cluster.wait_until_it_trains(1)
    print(f"{time.monotonic() - begin:.1f} s from the cut to the next line")
    cluster.machines[0].boot()
    cluster.wait_for_line("start 3: 3 of 3 machines, A, B, C; the store is at A:29502")
    cluster.wait_until_it_trains(0, after=step)
    cluster.stop()


def test_all_but_one_die(cluster: Cluster) -> None:
    cluster.start()
    cluster.wait_until_it_trains(0)
    for machine in cluster.machines[:2]:
        machine.die()
    cluster.wait_for_line("start 2: 1 of 3 machines, C; the store is at C:29501")
    cluster.wait_until_it_trains(2)
    cluster.process.terminate()
    assert cluster.process.wait(60) == 75, cluster.said()


def test_a_machine_dies_between_two_starts(cluster: Cluster) -> None:
    """It answered, and dies before it starts its worker, or just after: the others do not wait as long as they would by
    themselves."""
    cluster.start("--set", "parallel.timeout_s=60")
    cluster.wait_for_line(re.escape(FIRST))
    cluster.machines[2].die()
    cluster.wait_for_line("start 2: 2 of 3 machines, A, B; the store is at A:29501", 90)
    cluster.wait_until_it_trains(0)
    cluster.stop()
