"""docs/deploy.md on four machines: network namespaces with the page's firewall, settings and commands, and folders of their own."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import hosts
from machines import Machines
from pages import block
from program import PROGRAM, ROOT

PAGE = "deploy.md"
REASON = hosts.why_not() or (None if shutil.which("nft") else "the command nft (package nftables) is not installed")
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


class Deployed(Machines):
    """Four machines as the page has them, and its command on a fifth one."""

    def __init__(self, made: list[hosts.Host], folder: Path) -> None:
        super().__init__(made, folder)
        command = shlex.split(block(PAGE, "cluster"))
        self.script, program = command[0], command[command.index("--program") + 1]
        (folder / self.script).parent.parent.mkdir(parents=True)
        (folder / self.script).parent.symlink_to(ROOT / "tools")
        for machine in self.machines:
            file = machine.folder / "train" / program
            file.parent.mkdir(parents=True)
            file.symlink_to(PROGRAM)
        self.write_hosts(4)

    def here(self, text: str) -> str:
        """The page's addresses become these machines'."""
        return re.sub(r"10\.0\.0\.([1-4])", lambda found: self.machines[int(found[1]) - 1].address, text)

    def write_hosts(self, count: int) -> None:
        lines = block(PAGE, "hosts").splitlines(keepends=True)
        assert [line for line in lines if not line.startswith("#")] == [f"10.0.0.{number}\n" for number in range(1, 5)]
        (self.folder / "hosts").write_text(self.here("".join(lines[:len(lines) - 4 + count])))

    def protect(self, rules: str | None = None) -> None:
        """The page's port range and firewall."""
        rules = rules or block(PAGE, "decent-train.nft")
        for machine in self.machines:
            prefix = machine.host.prefix
            subprocess.run([*prefix, "bash", "-ec", block(PAGE, "sysctl")], check=True, stdout=subprocess.PIPE)
            subprocess.run([*prefix, "nft", "-f", "-"], input=self.here(rules), text=True, check=True)

    def begin(self, *flags: str) -> None:
        self.start("bash", "-c", f"exec {block(PAGE, 'cluster').rstrip()} {shlex.join(flags)}")

    def ended(self, seconds: float = 90) -> tuple[int, str]:
        """Exit code and messages of the command."""
        code = self.process.wait(seconds)
        return code, self.said()

    def run(self, *flags: str) -> tuple[int, str]:
        self.begin(*flags)
        return self.ended()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Deployed]:
    with hosts.hosts(5) as made:
        deployed = Deployed(made, tmp_path)
        try:
            yield deployed
        finally:
            deployed.end()


def last(folder: Path, kind: str) -> dict:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind][-1]


def test_behind_the_firewall(machines: Deployed) -> None:
    machines.protect()
    outputs = [machine.output for machine in machines.machines]
    code, said = machines.run("--dry-run")
    assert code == 0 and "dry run: all is well; nothing was written" in said, said
    assert not outputs[0].exists()
    code, said = machines.run()
    assert code == 0, said
    assert last(outputs[0], "eval")["accuracy"] > 0.96
    assert (outputs[0] / "model.pt").exists()
    for output in outputs[1:]:
        assert {path.name for path in output.iterdir()} == {"checkpoints", "data.json", "metrics.jsonl", "run.json"}


def test_closed_port(machines: Deployed) -> None:
    """The firewall does something: without the rule for workers' ports they do not meet."""
    lines = block(PAGE, "decent-train.nft").splitlines(keepends=True)
    closed = [line for line in lines if "40000-40999" not in line]
    assert len(closed) == len(lines) - 1
    machines.protect("".join(closed))
    machines.begin("--set", "parallel.timeout_s=2")
    message = "decent-train: error: rank 0: worker 0 was not reached by worker 1, 2, 3 in time."
    machines.wait_until(lambda: message in machines.said())
    assert message in (ROOT / "docs" / PAGE).read_text()


def without_figures(line: str) -> str:
    return re.sub(r"port 22: .*", "port 22: ..", re.sub(r"after \d+ s", "after N s", line))


def test_a_machine_is_lost_and_comes_back_or_not(machines: Deployed) -> None:
    machines.protect()
    first = machines.machines[0]
    # One, so that none is left that was saved without the machine whose disk is replaced below.
    often = ["--set", "checkpoint.every_steps=200", "--set", "checkpoint.keep=1", "--set", "eval.every_epochs=null", "--set",
             "log.every_steps=100"]
    machines.begin(*often, "--set", "train.steps=1000000", "--set", "parallel.timeout_s=2")
    machines.wait_until_it_trains(0)
    machines.machines[3].host.set_link("down")
    machines.wait_for_start("start 2: 3 of 4 machines, .*", 0)
    assert "error: lost worker 3" in machines.said()
    machines.machines[3].host.set_link("up")
    machines.wait_for_start("start 3: 4 of 4 machines, .*", 0)
    shown = [without_figures(line) for line in re.findall(r"^cluster: \d\d:\d\d:\d\d (.*)$", machines.here(block(PAGE, "log")), re.M)]
    said = [without_figures(line) for line in re.findall(r"^cluster: \d\d:\d\d:\d\d (.*)$", machines.said(), re.M)]
    left = [line for line in said if "ended what was left" in line]  # where the worker has not noticed anything before
    assert [line for line in said if line not in left] == shown, machines.said()

    assert "pkill -TERM -x decent-train`" in (ROOT / "docs" / PAGE).read_text()
    worker = machines.machines[2].worker()
    assert Path(f"/proc/{worker}/comm").read_text().strip() == "decent-train"
    os.kill(worker, signal.SIGTERM)  # one for all
    code, said = machines.ended()
    assert code == 75, said

    step = last(first.output, "end")["step"]
    shutil.rmtree(machines.machines[3].output)  # a new disk
    code, said = machines.run(*often, "--set", f"train.steps={step + 50}")
    assert code == 4 and "checkpoint.allow_missing=true" in said, said
    missing = ["--set", "checkpoint.allow_missing=true"]
    assert " ".join(missing) in re.sub(r"\s+", " ", (ROOT / "docs" / PAGE).read_text())
    code, said = machines.run(*often, "--set", f"train.steps={step + 50}", *missing)
    assert code == 0 and "average" in said, said

    machines.write_hosts(3)
    machines.machines[3].die()
    shutil.rmtree(machines.machines[3].folder / "train")
    code, said = machines.run(*often, "--set", f"train.steps={step + 100}", *missing)
    assert code == 0 and "workers  3" in said, said
    assert last(first.output, "end")["step"] == step + 100
