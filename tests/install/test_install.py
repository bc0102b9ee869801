"""What `cmake --install` leaves, and that programs outside the source tree are built with it and train."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from package import BUILD, CMAKE, Package, configure
from ports import free_port
from program import ROOT, TORCHRUN, environment, launcher_variables, run_commands

CUDA_IS_BUILT = (BUILD / "bin" / "libdecent_cuda.so").exists()
ROOMS = {"core", "codec", "topology", "optim", "comm", "parallel", "data"}


def test_what_is_installed(package: Package) -> None:
    prefix = package.prefix
    assert {path.name for path in prefix.iterdir()} == {"bin", "include", "lib", "share"}
    assert [path.name for path in (prefix / "bin").iterdir()] == ["decent-train"]
    assert [path.name for path in (prefix / "include").iterdir()] == ["decent"]
    assert {header.split("/")[1] for header in package.headers} == ROOMS
    assert {path.name for path in prefix.rglob("*.a")} == {f"libdecent_{room}.a" for room in ROOMS}
    files = {re.sub("-(release|debug)", "", path.name) for path in package.cmake_files}
    assert files == {"LibTorch.cmake", "decentConfig.cmake", "decentConfigVersion.cmake", "decentTargets.cmake"}
    assert len(list(prefix.rglob("LICENSE"))) == 1
    assert (prefix / "lib" / "libdecent_cuda.so").exists() == CUDA_IS_BUILT


def test_headers_include_only_installed_ones(package: Package) -> None:
    for header, path in package.headers.items():
        text = path.read_text()
        for included in re.findall(r'#include ["<](decent/[^">]+)', text):
            assert included in package.headers, f"{header} includes {included}"
        assert "internal to this room" not in text, f"{header} says that it is internal"


def test_headers_are_those_of_the_manual(package: Package) -> None:
    manual = (ROOT / "docs" / "library.md").read_text()
    table = manual.split("## The headers")[1].split("\n## ")[0]
    named = re.findall(r"`((?:\w+/)+\w+\.h)`", table)
    assert sorted(f"decent/{name}" for name in named) == sorted(package.headers)


def test_no_path_of_this_machine(package: Package) -> None:
    """But the torch folder that is used where the user's Python has no torch: documented, and named once."""
    for path in package.cmake_files:
        lines = [line for line in path.read_text().splitlines()
                 if str(ROOT) in line or str(package.prefix.parent) in line or "/site-packages/" in line]
        if path.name == "decentConfig.cmake":
            assert len(lines) <= 1 and all(line.startswith("set(decent_torch_fallback ") for line in lines), lines
        else:
            assert lines == [], path
    for name in ("libz.so", "libgomp", "libxxhash"):
        assert not any(name in path.read_text() for path in package.cmake_files)


@pytest.mark.parametrize("python", [[], [sys.executable]], ids=["native", "as-torchrun-starts-it"])
def test_installed_program_runs(package: Package, python: list[str]) -> None:
    ended, = run_commands([[*python, package.prefix / "bin" / "decent-train", "--version"]], [environment()], None)
    assert ended.code == 0, ended.err
    assert re.match(r"decent-train \d+\.\d+\.\d+ ", ended.out)


LOADS = """
#include <decent/core/error.h>
#include <cstdio>
namespace decent { void* cuda_symbol(const char* name); }  // internal
int main() try {
  decent::cuda_symbol("decent_cuda_build_id");
  std::puts("loaded");
} catch (const decent::Error& error) {
  std::puts(error.what());
}
"""


@pytest.mark.skipif(not CUDA_IS_BUILT, reason="built without CUDA")
def test_users_program_loads_the_library_for_gpus(package: Package, user: Path) -> None:
    """From the prefix, wherever the program lies."""
    (user / "main.cpp").write_text(LOADS)
    with (user / "CMakeLists.txt").open("a") as file:
        file.write("add_executable(loads main.cpp)\ntarget_link_libraries(loads PRIVATE decent::core)\n")
    configured = configure(user, package)
    assert configured.code == 0, configured.output
    subprocess.run([CMAKE, "--build", configured.build], check=True, capture_output=True)
    ended, = run_commands([[configured.build / "loads"]], [environment()], None)
    assert ended.out.strip() == "loaded"


# ---- where it cannot be used ---------------------------------------------------------------------------------------

USER = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
find_package(decent CONFIG REQUIRED)
"""


@pytest.fixture
def user(tmp_path: Path) -> Path:
    folder = tmp_path / "user"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(USER)
    return folder


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_another_version_of_torch(package: Package, user: Path) -> None:
    torch = user.parent / "torch"
    (torch / "lib").mkdir(parents=True)
    (torch / "lib" / "libc10.so").touch()
    (torch / "lib" / "libtorch_cpu.so").touch()
    (torch / "version.py").write_text("__version__ = '2.3.1+cpu'\ngit_version = '1.2'\n")
    configured = configure(user, package, f"-DDECENT_TORCH_ROOT={torch}")
    assert configured.code != 0
    assert re.search(r"decent was built with torch 2\.\d+\.\d+, but '\S+/torch' is torch 2\.3\.1\. Activate a Python "
                     r"environment that has torch 2\.\d+\.\d+, or name one with -DDECENT_PYTHON=",
                     one_line(configured.output)), configured.output
    # A second try in the same build folder, with the right one, is not held back by the first.
    configured = configure(user, package, "-UDECENT_TORCH_ROOT")
    assert configured.code == 0, configured.output


def test_no_torch(package: Package, user: Path) -> None:
    configured = configure(user, package, f"-DDECENT_TORCH_ROOT={user}")
    assert configured.code != 0
    assert "is not the torch folder of a wheel: it has no lib/libc10.so" in one_line(configured.output)


def test_a_python_without_torch_leaves_the_wheel_of_the_build(package: Package, user: Path) -> None:
    configured = configure(user, package, "-DDECENT_PYTHON=/bin/false")
    assert configured.code == 0, configured.output


def test_no_zlib(package: Package, user: Path) -> None:
    configured = configure(user, package, PKG_CONFIG_LIBDIR=str(user))
    assert configured.code != 0
    assert "install its development files (on Debian zlib1g-dev)" in one_line(configured.output)


def test_another_minor_version_is_refused(package: Package, user: Path) -> None:
    (user / "CMakeLists.txt").write_text(USER.replace("decent CONFIG", "decent 0.99 CONFIG"))
    configured = configure(user, package)
    assert configured.code != 0
    assert 'compatible with requested version "0.99"' in one_line(configured.output), configured.output


# ---- the examples --------------------------------------------------------------------------------------------------

TORCHRUN_OPTIONS = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]


@pytest.mark.parametrize("workers", [1, 2])
def test_own_loop(examples: dict[str, Path], workers: int) -> None:
    check_example(examples["own_loop"], workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_wrapped_adamw(examples: dict[str, Path], workers: int) -> None:
    check_example(examples["wrapped_adamw"], workers)


def check_example(program: Path, workers: int) -> None:
    """Alone without a launcher, several under torchrun: worker 0 prints the accuracy of the average."""
    launcher = [TORCHRUN, "--nproc-per-node", workers, *TORCHRUN_OPTIONS, "--no-python"] if workers > 1 else []
    ended, = run_commands([[*launcher, program]], [environment(GLOO_SOCKET_IFNAME="lo")], None)
    assert ended.code == 0, ended.out + ended.err
    last = ended.out.splitlines()[-1]
    found = re.fullmatch(r".*accuracy of the average of (\d+): (\d+\.\d+)%", last)
    assert found, ended.out
    assert int(found[1]) == workers
    assert float(found[2]) >= 95, last


def test_a_killed_worker_ends_the_other(examples: dict[str, Path]) -> None:
    """Without a launcher, which would end those that are left."""
    port = free_port()
    workers = [subprocess.Popen([examples["own_loop"], "1000000"], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE,
                                env=environment(GLOO_SOCKET_IFNAME="lo", **launcher_variables(rank, 2, port)))
               for rank in range(2)]
    try:
        assert workers[0].stdout.readline().startswith("step ")  # in training
        workers[1].kill()
        killed = time.monotonic()
        _, err = workers[0].communicate(timeout=60)
        assert time.monotonic() - killed < 10
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    assert workers[0].returncode == 3, err
    assert re.search(r"lost worker 1 on '.+': .*It was last heard of .* ago", err), err


def test_a_worker_that_fails_ends_the_other(examples: dict[str, Path]) -> None:
    """Its own error ends one worker; the other says whose fault it was."""
    port = free_port()
    first, second = run_commands([[examples["own_loop"], "1000000"], [examples["own_loop"], "nonsense"]],
                                 [environment(GLOO_SOCKET_IFNAME="lo", **launcher_variables(rank, 2, port))
                                  for rank in range(2)], None)
    assert first.code == 3, first.err
    assert "lost worker 1 on '" in first.err
    assert second.code not in (0, 3)
