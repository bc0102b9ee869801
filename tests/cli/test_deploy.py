"""docs/deploy.md on four machines: network namespaces with the page's firewall, settings and script, and folders of their own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import hosts
from pages import block
from program import PROGRAM, ROOT, environment

PAGE = "deploy.md"
REASON = hosts.why_not() or (None if shutil.which("nft") else "the command nft (package nftables) is not installed")
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


class Machines:
    """Four machines as the page has them, and one command of its script."""

    def __init__(self, made: list[hosts.Host], folder: Path) -> None:
        self.made, self.folder = made, folder
        self.commands = folder / "commands"
        self.commands.mkdir()
        self.process: subprocess.Popen | None = None
        for number in range(4):
            train = self.home(number) / "train"
            train.mkdir(parents=True)
            shutil.copy(ROOT / "models/digits_mlp.pt", train)
            recipe = (ROOT / "configs/digits.yaml").read_text().replace("../models/", "").replace("runs/digits", "runs/recipe")
            (train / "recipe.yaml").write_text(recipe)
            program = re.search(r"^program=(\S+)$", block(PAGE, "train.sh"), re.M)[1]
            (train / program).parent.mkdir(parents=True)
            (train / program).symlink_to(PROGRAM)
        self.write_script(range(4))
        self.write_ssh()

    def home(self, number: int) -> Path:
        return self.folder / f"machine{number}"

    def here(self, text: str) -> str:
        """The page's addresses become these machines'."""
        return re.sub(r"10\.0\.0\.([1-4])", lambda found: self.made[int(found[1]) - 1].address, text)

    def write_script(self, numbers) -> None:
        script = block(PAGE, "train.sh")
        addresses = " ".join(f"10.0.0.{number + 1}" for number in numbers)
        script, changed = re.subn(r"^machines=\(.*\)$", f"machines=({addresses})", script, flags=re.M)
        assert changed == 1
        (self.folder / "train.sh").write_text(self.here(script))

    def write_ssh(self) -> None:
        """A stand-in: ssh -o OPTION ADDRESS COMMAND, in the machine's namespace and folder."""
        cases = "".join(f"{host.address}) cd {self.home(number)}; exec ip netns exec {host.name} bash -c \"$2\" ;;\n"
                        for number, host in enumerate(self.made))
        ssh = self.commands / "ssh"
        ssh.write_text(f'#!/bin/bash\nshift 2\ncase "$1" in\n{cases}*) echo "no machine $1" >&2; exit 255 ;;\nesac\n')
        ssh.chmod(0o755)

    def protect(self, rules: str | None = None) -> None:
        """The page's port range and firewall."""
        rules = rules or block(PAGE, "decent-train.nft")
        for host in self.made:
            subprocess.run([*host.prefix, "bash", "-ec", block(PAGE, "sysctl")], check=True, stdout=subprocess.PIPE)
            subprocess.run([*host.prefix, "nft", "-f", "-"], input=self.here(rules), text=True, check=True)

    def start(self, *flags: str) -> None:
        path = f"{self.commands}:{os.environ['PATH']}"
        with (self.folder / "out").open("w") as out:
            self.process = subprocess.Popen(["bash", str(self.folder / "train.sh"), *flags], stdout=out,
                                            stderr=subprocess.STDOUT, env=environment(PATH=path), cwd=self.folder,
                                            start_new_session=True)

    def ended(self, seconds: float = 60) -> tuple[int, str]:
        """Exit code and messages of the script."""
        code = self.process.wait(seconds)
        return code, self.said()

    def said(self) -> str:
        return (self.folder / "out").read_text()

    def run(self, *flags: str) -> tuple[int, str]:
        self.start(*flags)
        return self.ended()

    def output(self, number: int) -> Path:
        return self.home(number) / "train/runs/recipe"

    def wait_for_checkpoint(self) -> None:
        deadline = time.monotonic() + 60
        while not list(self.output(0).glob("checkpoints/step-*/manifest.json")):
            assert time.monotonic() < deadline and self.process.poll() is None, self.said()
            time.sleep(0.05)

    def wait_until_it_says(self, text: str, after: int = 0) -> None:
        deadline = time.monotonic() + 60
        while text not in self.said()[after:]:
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.1)

    def worker(self, number: int) -> int:
        """The process of a machine's worker, by the name that the page gives to pkill."""
        assert "pkill -TERM -x decent-train`" in (ROOT / "docs" / PAGE).read_text()
        pids = subprocess.run(["ip", "netns", "pids", self.made[number].name], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.split()
        (pid,) = [pid for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() == "decent-train"]
        return int(pid)

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def machines(tmp_path: Path):
    with hosts.hosts(4) as made:
        four = Machines(made, tmp_path)
        try:
            yield four
        finally:
            four.stop()


def last(folder: Path, kind: str) -> dict:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind][-1]


def test_behind_the_firewall(machines: Machines) -> None:
    machines.protect()
    code, said = machines.run("--dry-run")
    assert code == 0 and "dry run: all is well; nothing was written" in said, said
    assert not machines.output(0).exists()
    code, said = machines.run()
    assert code == 0, said
    assert last(machines.output(0), "eval")["accuracy"] > 0.96
    assert (machines.output(0) / "model.pt").exists()
    for number in (1, 2, 3):
        assert {path.name for path in machines.output(number).iterdir()} == {"checkpoints", "data.json"}


def test_closed_port(machines: Machines) -> None:
    """The firewall does something: without the rule for workers' ports they do not meet."""
    lines = block(PAGE, "decent-train.nft").splitlines(keepends=True)
    closed = [line for line in lines if "40000-40999" not in line]
    assert len(closed) == len(lines) - 1
    machines.protect("".join(closed))
    machines.start("--set", "parallel.timeout_s=2")
    message = "decent-train: error: rank 0: worker 0 was not reached by worker 1, 2, 3 in time."
    machines.wait_until_it_says(message)
    assert message in (ROOT / "docs" / PAGE).read_text()


def test_a_machine_is_lost_and_comes_back_or_not(machines: Machines) -> None:
    machines.protect()
    often = ["--set", "checkpoint.every_steps=200", "--set", "eval.every_epochs=null", "--set", "log.every_steps=100"]
    machines.start(*often, "--set", "train.steps=1000000", "--set", "parallel.timeout_s=2")
    machines.wait_for_checkpoint()
    machines.made[3].set_link("down")
    machines.wait_until_it_says("error: lost worker 3")
    machines.made[3].set_link("up")  # the script starts all again
    machines.wait_until_it_says("resuming from ")
    machines.wait_until_it_says("samples/s", machines.said().index("resuming from "))
    os.kill(machines.worker(2), signal.SIGTERM)  # one for all
    code, said = machines.ended()
    assert code == 75, said

    step = last(machines.output(0), "end")["step"]
    shutil.rmtree(machines.output(3))  # a new disk
    code, said = machines.run(*often, "--set", f"train.steps={step + 50}")
    assert code == 4 and "checkpoint.allow_missing=true" in said, said
    missing = ["--set", "checkpoint.allow_missing=true"]
    assert all(part in (ROOT / "docs" / PAGE).read_text() for part in missing)
    code, said = machines.run(*often, "--set", f"train.steps={step + 50}", *missing)
    assert code == 0 and "average" in said, said

    machines.write_script(range(3))
    shutil.rmtree(machines.home(3))
    code, said = machines.run(*often, "--set", f"train.steps={step + 100}", *missing)
    assert code == 0 and "workers  3" in said, said
    assert last(machines.output(0), "end")["step"] == step + 100
