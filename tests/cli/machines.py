"""Machines with a folder each, which ssh reaches: network namespaces, and a stand-in for ssh and its daemon."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import hosts
from program import ROOT, environment

TINY_SSH = ROOT / "tests" / "support" / "tiny_ssh.py"


class Machine:
    """A host with a folder, and with what takes ssh's place."""

    def __init__(self, host: hosts.Host, folder: Path) -> None:
        self.host, self.folder = host, folder
        self.address = host.address
        self.output = folder / "train/runs/recipe"
        self.copy_train()
        self.server: subprocess.Popen | None = None
        self.boot()

    def copy_train(self) -> None:
        """What a machine needs to take part, but for the program."""
        train = self.folder / "train"
        train.mkdir(parents=True)
        shutil.copy(ROOT / "models/digits_mlp.pt", train)
        recipe = (ROOT / "configs/digits.yaml").read_text().replace("../models/", "").replace("runs/digits", "runs/recipe")
        (train / "recipe.yaml").write_text(recipe)

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
        file = self.output / "metrics.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line)["step"] for line in lines if '"kind":"train"' in line and line.endswith("}")]


class Machines:
    """Several of them, and a command on the last host, which starts workers on the others."""

    def __init__(self, made: list[hosts.Host], folder: Path) -> None:
        self.folder = folder
        self.machines = [Machine(host, folder / f"machine{number}") for number, host in enumerate(made[:-1])]
        self.own = made[-1]
        self.process: subprocess.Popen | None = None

    def start(self, *command: object) -> None:
        """Beside the test, in its folder; `ssh` is the stand-in."""
        ssh = self.folder / "commands" / "ssh"
        ssh.parent.mkdir(exist_ok=True)
        ssh.write_text(f"#!/bin/sh\nexec {sys.executable} {TINY_SSH} \"$@\"\n")
        ssh.chmod(0o755)
        variables = environment(PATH=f"{ssh.parent}:{os.environ['PATH']}", TMPDIR=self.folder, XDG_RUNTIME_DIR=self.folder)
        with (self.folder / "out").open("w") as out:
            self.process = subprocess.Popen([*self.own.prefix, *command], cwd=self.folder, env=variables,
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                            start_new_session=True)

    def said(self) -> str:
        return (self.folder / "out").read_text()

    def log(self) -> list[str]:
        """The lines of tools/cluster without times; machines are A, B, C, .."""
        text = re.sub(r"after \d+ s", "after N s", self.said())
        for name, machine in zip("ABCD", self.machines):
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
        self.wait_until(lambda: list(machine.output.glob("checkpoints/step-*/manifest.json")), seconds)
        return machine.steps()[-1]

    def wait_for_start(self, line: str, first: int, seconds: float = 60) -> int:
        """Until tools/cluster says so, and the start's first machine has written a line of a later step than all before."""
        self.wait_for_line(line, seconds)
        before = max((step for machine in self.machines for step in machine.steps()), default=0)
        return self.wait_until_it_trains(first, after=before)

    def end(self) -> None:
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for machine in self.machines:
            machine.die()
