"""tools/fuzz, with programs in place of the fuzz targets that do what these do: run, find, keep."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from program import ROOT, environment

TARGETS = ("manifest", "recipe", "safetensors", "npz", "idx", "tokens", "csv", "onnx", "pt2", "torch_file", "image", "image_list", "tar_shard")
# Counts, keeps one input that is small and one that is large; crashes where there is a file "crash".
FUZZER = r"""#!/usr/bin/env bash
for argument; do
  case $argument in
    -artifact_prefix=*) prefix=${argument#*=} ;;
    -*merge=1) merging=1 ;;
    -*) ;;
    *) folders+=("$argument") ;;
  esac
done
if [ -n "${merging:-}" ]; then
  cp "${folders[1]}"/* "${folders[0]}/"
  exit 0
fi
head -c 100 /dev/zero >"${folders[0]}/small"
head -c 5000 /dev/zero >"${folders[0]}/large"
echo 'stat::number_of_executed_units: 7'
[ -e crash ] || exec sleep 100
echo text >"${prefix}crash-0123"
exit 77
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what tools/fuzz needs; "cmake" builds nothing."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "fuzz", tmp_path / "tools")
    programs = {tmp_path / "bin" / "cmake": "#!/bin/sh\n", tmp_path / "bin" / "sleep": "#!/bin/sh\nexec /bin/sleep 0.02\n"}
    for target in TARGETS:
        (tmp_path / "tests" / "fuzz" / "corpus" / target).mkdir(parents=True)
        programs[tmp_path / "build" / "fuzz" / f"fuzz_{target}"] = FUZZER
    for path, text in programs.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return tmp_path


def campaign(project: Path, *arguments: str, **variables: object) -> subprocess.CompletedProcess[str]:
    path = f"{project / 'bin'}:{environment()['PATH']}"
    return subprocess.run([project / "tools" / "fuzz", *arguments], capture_output=True, text=True, timeout=60,
                          env=environment(PATH=path, **variables), cwd="/")


def test_keeps_small_inputs_of_every_target(project: Path) -> None:
    ended = campaign(project, "1", DECENT_FUZZ_JOBS=2)
    assert ended.returncode == 0, ended.stderr
    for target in TARGETS:
        assert [path.name for path in (project / "tests" / "fuzz" / "corpus" / target).iterdir()] == ["small"]
        assert f"fuzz: {target:12} {140:12} inputs run,    1 new ones kept in tests/fuzz/corpus/{target}\n" in ended.stdout
    rounds = (len(TARGETS) + 1) // 2  # of two jobs
    assert f"fuzz: manifest for {60 // rounds} s, seed " in ended.stdout
    assert ended.stdout.count(" s, seed ") == 20 * len(TARGETS), "what ends at once does not go on for ever"


def test_names_what_it_finds(project: Path) -> None:
    (project / "crash").touch()
    ended = campaign(project, "5", "npz")
    assert ended.returncode == 1
    assert "build/fuzz/fuzz_npz build/fuzz/found/npz-crash-0123\n" in ended.stderr
    assert (project / "build" / "fuzz" / "found" / "npz-crash-0123").read_text() == "text\n"


@pytest.mark.parametrize("arguments", [(), ("0",), ("a",), ("1", "none")])
def test_says_how_it_is_used(arguments: tuple[str, ...], project: Path) -> None:
    ended = campaign(project, *arguments)
    assert ended.returncode == 2
    assert "usage: tools/fuzz MINUTES [TARGET..]" in ended.stderr
