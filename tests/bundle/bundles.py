"""What both bundles are checked for, and how what they trained is read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from program import ROOT

BUILD = Path(os.environ.get("DECENT_BUILD", ROOT / "build")).absolute()
CUDA_IS_BUILT = (BUILD / "bin" / "libdecent_cuda.so").exists()
VERSION = re.search(r"project\(decent-train VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
SHORT = ["--set", "train.epochs=4", "--set", "log.tensorboard=false"]


def elf_files(folder: Path) -> list[Path]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in files if path.open("rb").read(4) == b"\x7fELF"]


def _dynamic_entries(file: Path) -> str:
    return subprocess.run(["readelf", "--dynamic", "--wide", file], capture_output=True, text=True, check=True).stdout


def search_paths(file: Path) -> list[str]:
    """The folders of its RPATH; of a kind that LD_LIBRARY_PATH does not overrule."""
    entries = _dynamic_entries(file)
    assert "(RUNPATH)" not in entries, file
    found = re.search(r"\(RPATH\).*\[(.*)\]", entries)
    return found[1].split(":") if found else []


def needed(file: Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", _dynamic_entries(file)))


def assert_no_path_of_this_machine(files: list[Path]) -> None:
    """Neither of the source tree nor of the Python environment, in no file."""
    for file in files:
        content = file.read_bytes()
        for folder in (str(ROOT), sys.prefix):
            assert folder.encode() not in content, f"{file} names {folder}"


LICENCES = ["libyaml-cpp", "libspdlog", "libfmt", "libxxhash", "zlib1g", "libcxxopts", "nlohmann-json", "libgloo",
            "libjpeg62-turbo", "libpng16", "libwebp7", "libarchive-dev", "uplot"]


def assert_licences(folder: Path, *names: str) -> None:
    """A text for each library that is passed on."""
    texts = {path.relative_to(folder).parts[0]: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    for name in names:
        assert any(found.startswith(name) and size > 500 for found, size in texts.items()), f"{name} not in {texts}"


def assert_trained(run: Path, out: str) -> None:
    """Well enough for four epochs of handwritten digits."""
    assert "done: " in out
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line for line in lines if line["kind"] == "eval"][-1]["accuracy"] > 0.9
    assert (run / "model.pt").stat().st_size > 0
