"""DECENT_CUDA: what the configuration decides and says (cmake/Cuda.cmake), by itself and without a compiler."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from package import CMAKE
from program import ROOT

PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(decides LANGUAGES NONE)
set(DECENT_TORCH_ROOT "${{CMAKE_SOURCE_DIR}}/site/torch")
include("{ROOT}/cmake/Cuda.cmake")
message(STATUS "decent_cuda is ${{decent_cuda}}")
"""


@dataclass
class Machine:
    """An imagined Python environment, and an imagined nvcc, which notes that it was run."""

    folder: Path

    @property
    def nvcc_ran(self) -> Path:
        return self.folder / "nvcc-ran"

    def wheel(self, cuda: bool) -> None:
        files = ["torch/version.py"]
        if cuda:
            files += ["torch/lib/libtorch_cuda.so", "nvidia/nccl/include/nccl.h", "nvidia/cu13/lib/libcudart.so.13"]
        for name in files:
            path = self.folder / "site" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("cuda: Optional[str] = '13.0'\n" if name.endswith(".py") else "")

    def nvcc(self, release: str) -> Path:
        path = self.folder / "nvcc"
        path.write_text(f"#!/bin/sh\ntouch '{self.nvcc_ran}'\necho 'Cuda compilation tools, release {release}, V{release}.1'\n")
        path.chmod(0o755)
        return path

    def configure(self, *flags: str, nvcc: Path) -> tuple[int, str]:
        (self.folder / "CMakeLists.txt").write_text(PROJECT)
        done = subprocess.run([CMAKE, "-S", self.folder, "-B", self.folder / "build", *flags], capture_output=True, text=True,
                              env={**os.environ, "CUDACXX": str(nvcc)})
        return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def expect_refused(machine: Machine, nvcc: Path, problem: str) -> None:
    """AUTO goes on without and says why, ON is an error."""
    code, said = machine.configure(nvcc=nvcc)
    assert code == 0 and "CUDA: not built, as " in said and problem in said and "decent_cuda is OFF" in said, said
    code, said = machine.configure("-DDECENT_CUDA=ON", nvcc=nvcc)
    assert code != 0 and "DECENT_CUDA is ON, but " in said and problem in said, said


def test_off_runs_no_nvcc(machine: Machine) -> None:
    machine.wheel(cuda=True)
    code, said = machine.configure("-DDECENT_CUDA=OFF", nvcc=machine.nvcc("13.0"))
    assert code == 0 and "CUDA: not built, as DECENT_CUDA is OFF" in said and "decent_cuda is OFF" in said
    assert not machine.nvcc_ran.exists()


def test_a_wheel_without_cuda(machine: Machine) -> None:
    machine.wheel(cuda=False)
    expect_refused(machine, machine.nvcc("13.0"), "is one without CUDA (no lib/libtorch_cuda.so)")
    assert not machine.nvcc_ran.exists()


def test_no_nvcc(machine: Machine) -> None:
    machine.wheel(cuda=True)
    expect_refused(machine, Path("/nowhere/nvcc"), "CUDACXX names '/nowhere/nvcc', which is not there")


def test_nvcc_of_another_cuda(machine: Machine) -> None:
    machine.wheel(cuda=True)
    nvcc = machine.nvcc("12.4")
    expect_refused(machine, nvcc, f"'{nvcc}' is of CUDA 12.4, the torch wheel of CUDA 13.0")
    assert machine.nvcc_ran.exists()
