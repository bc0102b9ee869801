"""tools/progress.py, between a build or an installation and who waits for it."""

from __future__ import annotations

import importlib.util
import os
import pty
import re
import signal
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest

from program import ROOT

TOOL = ROOT / "tools" / "progress.py"
SPECIFICATION = importlib.util.spec_from_file_location("progress", TOOL)
progress = importlib.util.module_from_spec(SPECIFICATION)
sys.modules["progress"] = progress  # dataclasses look there
SPECIFICATION.loader.exec_module(progress)

RULE = "rule run\n  command = $run\n"


def write_build(folder: Path, *commands: str) -> None:
    edges = "".join(f"build made{i}: run\n  run = {command}\n" for i, command in enumerate(commands))
    (folder / "build.ninja").write_text(RULE + edges)


def command_of(folder: Path, *flags: str) -> list[str]:
    return [sys.executable, str(TOOL), "ninja", "--label", "build", *flags, "--", "ninja", "-C", str(folder), "-j", "1"]


def run(command: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)


def test_a_build_in_few_lines(tmp_path: Path) -> None:
    write_build(tmp_path, *["sleep 0.05"] * 20)
    ended = run(command_of(tmp_path, "--every", "0.3"))
    assert ended.returncode == 0 and ended.stderr == ""
    told = [int(n) for n in re.findall(r"^build: (\d+) of 20$", ended.stdout, re.M)]
    assert 2 <= len(told) <= 8 and told == sorted(set(told)), ended.stdout
    assert ended.stdout.splitlines()[-1].startswith("build: done after ")
    assert "[[" not in ended.stdout


def test_a_warning_is_passed_on(tmp_path: Path) -> None:
    write_build(tmp_path, "echo 'a.cpp:3: warning: odd'", "true")
    assert "a.cpp:3: warning: odd\n" in run(command_of(tmp_path)).stdout


def test_a_failure_is_whole_and_keeps_its_exit_code(tmp_path: Path) -> None:
    lines = 200
    write_build(tmp_path, "true", f"seq -f 'a.cpp:%g: error: odd' 1 {lines} && exit 7")
    alone = run(["ninja", "-C", str(tmp_path), "-j", "1"])
    ended = run(command_of(tmp_path))
    assert ended.returncode == alone.returncode != 0
    assert re.findall(r"^a.cpp:(\d+): error: odd$", ended.stdout, re.M) == [str(n + 1) for n in range(lines)]
    assert "FAILED: made1" in ended.stdout and "done after" not in ended.stdout


def test_ctrl_c_ends_the_build(tmp_path: Path) -> None:
    write_build(tmp_path, *["sleep 0.5"] * 100)
    process = subprocess.Popen(command_of(tmp_path, "--every", "0.1"), text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    assert process.stdout.readline().startswith("ninja: Entering")
    assert process.stdout.readline().startswith("build: ")
    os.killpg(process.pid, signal.SIGINT)  # as the terminal does
    said, _ = process.communicate(timeout=10)
    assert process.returncode != 0 and "interrupted by user" in said


def test_one_line_in_a_terminal(tmp_path: Path) -> None:
    write_build(tmp_path, *["sleep 0.05"] * 20, "echo 'a.cpp:3: warning: odd'")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command_of(tmp_path), stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        if not data:
            break
        said += data
    os.close(ours)
    assert process.wait() == 0
    assert len(re.findall(rb"\rbuild: \d+ of 21", said)) >= 3
    stays = [line.split(b"\r")[-1].replace(b"\x1b[K", b"") for line in said.replace(b"\r\n", b"\n").split(b"\n")]
    assert stays[1:-2] == [b"a.cpp:3: warning: odd"] and stays[-2].startswith(b"build: done after "), stays


@pytest.mark.parametrize("seconds, left", [(1, ""), (90, ", about 4 min left"), (10, ", less than a minute left")])
def test_time_left(seconds: float, left: str) -> None:
    reader = progress.Ninja(Namespace())
    now = time.monotonic()
    reader.progress.since = now - seconds
    assert reader.take("[[61/209]] Building CXX object a.o")
    assert reader.text(now) == f"61 of 209{left}"


def test_units_that_cost_more_count_more() -> None:
    """Early in a build, when the small units are done, most of the time is still to come."""
    reader = progress.Ninja(Namespace())
    reader.planned = [*["c++ -c -o lib/decent/core/CMakeFiles/a.cpp.o -c a.cpp"] * 60, *["c++ -o app/CMakeFiles/b.cpp.o -c b.cpp"] * 20]
    for done in range(1, 61):
        assert reader.take(f"[[{done}/80]] Building CXX object lib/decent/core/CMakeFiles/a.cpp.o")
    assert reader.text(reader.progress.since + 120) == "60 of 80, about 11 min left"  # 60 of 80 would be 40 s


def test_a_plan_is_asked_for(tmp_path: Path) -> None:
    """Nothing is built for it."""
    write_build(tmp_path, "touch a", "touch b")
    reader = progress.Ninja(Namespace())
    reader.plan(["ninja", "-C", str(tmp_path)])
    assert sorted(command for command in reader.planned if command.startswith("touch")) == ["touch a", "touch b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["build.ninja"]
    reader.plan(["cmake", "--build", str(tmp_path / "none")])
    assert reader.planned == [] and reader.take("[[1/4]] x") and reader.progress.total == 4


def test_folders_that_cost_most_are_there() -> None:
    """A room of another name would be taken for a cheap one."""
    rooms = {path.name for path in (ROOT / "lib" / "decent").iterdir() if path.is_dir()}
    assert set(progress.SECONDS) <= rooms | {"app", "tests"}


def test_apt() -> None:
    reader = progress.Apt(Namespace())
    assert reader.text(0.0) == "" and not reader.take("Reading package lists...")
    assert reader.take("dlstatus:3:41.5:Retrieving file 3 of 8")
    assert reader.text(time.monotonic()) == "42 % downloaded"
    assert reader.take("pmstatus:nftables:7.1:Unpacking nftables (amd64)")
    assert reader.text(time.monotonic()) == "7 % installed"


def pip_reader(folder: Path, download_mb: float = 0.0, disk_mb: float = 0.0) -> object:
    return progress.Pip(Namespace(download_mb=download_mb, disk_mb=disk_mb, folder=folder))


DOWNLOADS = ["Collecting torch==2.11.0", "  Using cached torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl (500.0 MB)",
             "  Downloading nvidia_cudnn_cu13-9.19.0.56-py3-none-any.whl (400.0 MB)", "Progress 0 of 400000000",
             "Progress 100000000 of 400000000"]


def test_pip_adds_up_its_files(tmp_path: Path) -> None:
    reader = pip_reader(tmp_path, download_mb=2500, disk_mb=4)
    for line in DOWNLOADS:
        reader.take(line)
    now = reader.downloads.since + 60
    assert reader.text(now) == "600 of 2500 MB downloaded, about 3 min left (nvidia_cudnn_cu13)"
    reader.take("Installing collected packages: nvidia-cudnn-cu13, torch")
    (tmp_path / "file").write_bytes(bytes(1_000_000))
    assert reader.text(reader.writing.since + 60) == "1 of 4 MB written to disk, about 3 min left"


def test_pip_with_sizes_that_are_not_known(tmp_path: Path) -> None:
    reader = pip_reader(tmp_path)
    for line in DOWNLOADS:
        reader.take(line)
    assert reader.text(time.monotonic()) == "100 of 400 MB downloaded (nvidia_cudnn_cu13)"


def test_failure_of_pip_is_told(tmp_path: Path) -> None:
    ended = run([sys.executable, str(TOOL), "pip", "--", sys.executable, "-m", "pip", "install", "--no-index",
                 "--disable-pip-version-check", "--find-links", str(tmp_path), "no-such-package"])
    assert ended.returncode == 1 and "No matching distribution found for no-such-package" in ended.stderr
