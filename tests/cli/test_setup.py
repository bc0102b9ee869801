"""tools/setup: which torch it takes, and that it does only what is missing. pip gets wheels without content, from a folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from program import ROOT
from wheels import write_own_pip, write_wheel

GPU = {"torch/lib/libtorch_cuda.so": b""}
TORCH = {"torch/__init__.py": b"", "torch/version.py": b""}
no_gpu = pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="this machine has a GPU")


class Machine:
    """A tree that holds what tools/setup needs, on a machine with all Debian packages, with or without a GPU."""

    def __init__(self, folder: Path, gpu: bool) -> None:
        self.tree, self.wheels, self.commands = folder / "tree", folder / "wheels", folder / "commands"
        for made in (self.tree / "tools", self.wheels, self.commands):
            made.mkdir(parents=True)
        for name in ("tools/setup", "tools/progress.py"):
            shutil.copy(ROOT / name, self.tree / name)
        for file in ROOT.glob("requirements*.txt"):
            shutil.copy(file, self.tree / file.name)
            for name, version in re.findall(r"^([\w.-]+)==(\S+)", file.read_text(), re.M):
                if name not in ("pip", "torch"):
                    write_wheel(self.wheels, name, version, {})
        pip = write_own_pip(self.wheels)
        (self.tree / "requirements-pip.txt").write_text(f"pip=={pip}\n")
        self.torch = re.search(r"^torch==(\S+)", (self.tree / "requirements.txt").read_text(), re.M)[1]
        write_wheel(self.wheels, "torch", self.torch, TORCH | GPU)
        self.command("dpkg-query", "printf installed")
        self.command("nvidia-smi", f"exit {0 if gpu else 1}")

    def command(self, name: str, does: str) -> None:
        (self.commands / name).write_text(f"#!/bin/sh\n{does}\n")
        (self.commands / name).chmod(0o755)

    def offer_a_cpu_build(self) -> None:
        write_wheel(self.wheels, "torch", f"{self.torch}+cpu", TORCH)

    def set_up(self, *flags: str) -> str:
        """What it says."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        ended = subprocess.run(
            [self.tree / "tools/setup", *flags], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**kept, "PATH": f"{self.commands}:{os.environ['PATH']}", "PYTHON": sys.executable,
                 "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)})
        assert ended.returncode == 0, ended.stdout
        return ended.stdout

    def installed(self) -> dict[str, str]:
        lines = subprocess.run([self.tree / ".venv/bin/python", "-m", "pip", "list", "--format", "freeze"], check=True,
                               text=True, stdout=subprocess.PIPE).stdout.splitlines()
        return dict(line.split("==") for line in lines)


@no_gpu
def test_cpu_build_is_taken_where_pip_offers_one(tmp_path: Path) -> None:
    machine = Machine(tmp_path, gpu=False)
    machine.offer_a_cpu_build()
    machine.set_up()
    installed = machine.installed()
    assert installed["torch"] == f"{machine.torch}+cpu"
    assert {"numpy", "safetensors", "tensorboard"} <= set(installed)  # what the README uses
    assert not [name for name in installed if name.startswith("nvidia")]

    again = machine.set_up()
    assert "installing" not in again and "torch: there" in again

    said = machine.set_up("--tests")
    assert "torch with CUDA: installing" in said
    installed = machine.installed()
    assert installed["torch"] == machine.torch
    assert {"nvidia-cuda-nvcc", "pytest"} <= set(installed)


@no_gpu
def test_other_build_is_taken_where_pip_offers_no_other_and_stays(tmp_path: Path) -> None:
    machine = Machine(tmp_path, gpu=False)
    said = machine.set_up()
    assert machine.installed()["torch"] == machine.torch
    assert re.search(r"torch: installing \(\d+ MB to download, \d+ MB on disk\)", said)

    machine.offer_a_cpu_build()
    (machine.tree / "requirements-tools.txt").write_text("safetensors\n")  # one part anew
    assert "requirements-tools.txt: installing" in machine.set_up()
    assert machine.installed()["torch"] == machine.torch


def test_gpu_gets_cuda(tmp_path: Path) -> None:
    machine = Machine(tmp_path, gpu=True)
    machine.offer_a_cpu_build()
    machine.set_up()
    installed = machine.installed()
    assert installed["torch"] == machine.torch and "nvidia-cuda-nvcc" in installed
