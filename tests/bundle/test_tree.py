"""The folder that tools/package makes, where there is nothing but it and the system's C and C++ libraries."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bundles import (BUILD, CUDA_IS_BUILT, LICENCES, SHORT, VERSION, assert_licences,
                     assert_no_path_of_this_machine, assert_trained, elf_files, needed, search_paths)
from ports import free_port
from program import ROOT, Ended, environment, launcher_variables, run_commands

NAME = f"decent-train-{VERSION}-linux-x86_64"
SYSTEM = {"ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0",
          "libutil.so.1", "libstdc++.so.6", "libgcc_s.so.1"}
HOME = "/opt/moved here"


def package(output: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "tools" / "package", "--build", BUILD, "--output", output], capture_output=True,
                          text=True)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to change the root folder")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A root folder with the system's libraries and the tree, not where it was made."""
    folder = tmp_path_factory.mktemp("tree")
    made = package(folder)
    assert made.returncode == 0, made.stderr
    assert "Warning" not in made.stderr, made.stderr
    assert re.search(rf"^package: .*/{NAME}: \d+ MB$", made.stdout, re.MULTILINE), made.stdout
    root = folder / "root"
    for name in ("proc", "dev", "tmp", "lib64", "opt", "lib/x86_64-linux-gnu"):
        (root / name).mkdir(parents=True)
    for name in SYSTEM:
        where = subprocess.run(["c++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        shutil.copy(where.stdout.strip(), root / "lib/x86_64-linux-gnu")
    (root / "lib64/ld-linux-x86-64.so.2").symlink_to("/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
    (folder / NAME).rename(root / HOME[1:])
    yield root
    shutil.rmtree(folder)  # hundreds of megabytes, of which pytest would keep three copies


@pytest.fixture(scope="module")
def tree(machine: Path) -> Path:
    return machine / HOME[1:]


# What runs has nothing else of this machine but the kernel's /proc and /dev, mounted for it alone.
ENTER = 'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$0" "$@"'


def run_inside(machine: Path, workers: list[list[object]]) -> list[Ended]:
    """Processes side by side, each with its arguments; several as workers of one run."""
    port = free_port()
    commands = [["unshare", "--mount", "sh", "-c", ENTER, machine, f"{HOME}/bin/decent-train", *arguments]
                for arguments in workers]
    count = len(workers)
    variables = [launcher_variables(rank, count, port) if count > 1 else {} for rank in range(count)]
    environments = [environment(**of_one) for of_one in variables]
    return run_commands(commands, environments, None)


def test_what_is_inside(tree: Path) -> None:
    size = sum(path.lstat().st_size for path in tree.rglob("*"))
    assert size < 450e6
    files = {path.name: path for path in elf_files(tree)}
    assert [path.name for path in (tree / "bin").iterdir()] == ["decent-train"]
    assert ("libdecent_cuda.so" in files) == CUDA_IS_BUILT
    for name, file in files.items():
        if name != "libdecent_cuda.so":  # LibTorch's CUDA half is not there: test_no_cuda_half
            assert needed(file) <= SYSTEM | set(files), name


def test_nothing_of_this_machine(tree: Path) -> None:
    for file in elf_files(tree):
        expected = ["$ORIGIN/../lib"] if file.parent.name == "bin" else ["$ORIGIN"]
        assert search_paths(file) in ([], expected), file
    assert search_paths(tree / "bin" / "decent-train") == ["$ORIGIN/../lib"]
    assert_no_path_of_this_machine([path for path in tree.rglob("*") if path.is_file() and path.suffix != ".md"])


def test_cluster(tree: Path) -> None:
    """It starts the program beside it."""
    (tree.parent / "hosts").write_text("here\n")
    command = [tree / "tools" / "cluster", tree.parent / "hosts", "--ssh", tree.parent / "ssh", "--", tree / "configs/digits.yaml"]
    (tree.parent / "ssh").write_text("#!/bin/sh\ngrep -e program= > program\nexit 255\n")
    (tree.parent / "ssh").chmod(0o755)
    process = subprocess.Popen(command, cwd=tree.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not (tree.parent / "program").exists() or not (tree.parent / "program").read_text():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    program = str(tree / "bin/decent-train").replace(" ", "\\ ")
    assert f"program={program} " in (tree.parent / "program").read_text()


def test_licences(tree: Path) -> None:
    assert_licences(tree / "licenses", "torch-", *LICENCES)
    if any(path.name.startswith("libcudart") for path in (tree / "lib").iterdir()):
        assert_licences(tree / "licenses", "nvidia_cuda_runtime-", "nvidia_cuda_cupti-")
    assert (tree / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_readme_names_the_system_that_is_needed(tree: Path) -> None:
    """The newest versions of symbols, which the libraries of this machine must have, too."""
    text = (tree / "README.txt").read_text()
    found = re.search(r"glibc (\d+)\.(\d+) or later, and libstdc\+\+ with GLIBCXX_3\.4\.(\d+) or later", text)
    assert found, text
    glibc = tuple(int(part) for part in os.confstr("CS_GNU_LIBC_VERSION").split()[1].split("."))
    assert (2, 17) < (int(found[1]), int(found[2])) <= glibc


@needs_root
def test_one_worker(machine: Path) -> None:
    version, = run_inside(machine, [["--version"]])
    assert version.out.startswith(f"decent-train {VERSION} "), version.err
    dry, = run_inside(machine, [[f"{HOME}/configs/digits.yaml", "--dry-run"]])
    assert dry.code == 0 and "all is well" in dry.out, dry.err


@needs_root
@pytest.mark.parametrize("how", ["--workers", "variables"])
def test_two_workers_train(machine: Path, how: str) -> None:
    """Started by the program itself, and by a launcher."""
    recipe = [f"{HOME}/configs/digits.yaml", "--set", f"output=/tmp/two by {how}", *SHORT]
    ended = run_inside(machine, [[*recipe, "--workers", 2]] if how == "--workers" else [recipe, recipe])
    assert {worker.code for worker in ended} == {0}, ended
    assert "average of 2 models" in ended[0].out
    assert_trained(machine / f"tmp/two by {how}", ended[0].out)


@pytest.mark.skipif(not CUDA_IS_BUILT, reason="built without CUDA")
@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_no_cuda_half(tree: Path, tmp_path: Path, device: str) -> None:
    """On a machine with NVIDIA's driver; here a file of its name."""
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "libcuda.so.1"], input=b"", check=True)
    variables = environment(LD_LIBRARY_PATH=tmp_path)
    del variables["CUDA_VISIBLE_DEVICES"]
    command = [tree / "bin" / "decent-train", "--config", tree / "configs" / "digits.yaml", "--dry-run", "--set",
               f"model.device={device}"]
    ended, = run_commands([command], [variables], None)
    reason = "the LibTorch that this program runs with has no CUDA (libtorch_cuda.so: "
    if device == "auto":
        assert ended.code == 0 and f"note: training on the CPU, as no GPU can be used: {reason}" in ended.out, ended
    else:
        assert ended.code == 2 and f"device cuda needs a GPU: {reason}" in ended.err, ended


def test_made_once(tree: Path, tmp_path: Path) -> None:
    """What is there is not written over."""
    (tmp_path / NAME).mkdir()
    made = package(tmp_path)
    assert made.returncode == 2 and "is there already: remove it, or choose another --output" in made.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / NAME]
