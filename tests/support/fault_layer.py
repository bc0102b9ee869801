"""The fault layer of faults.c: built, preloaded, and the calls that it saw."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path


def build(folder: Path) -> Path:
    """The compiled library."""
    path = folder / "faults.so"
    subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-o", path, Path(__file__).with_name("faults.c")], check=True)
    return path


def variables(library: Path, folder: Path, **fault: object) -> dict[str, object]:
    """The environment of a program in which a call that changes something in `folder` fails: FAULT_KIND=.., .."""
    # AddressSanitizer would insist on being the first library; this one is fine before it.
    sanitizer = f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"
    return {"LD_PRELOAD": library, "ASAN_OPTIONS": sanitizer, "FAULT_FOLDER": folder.resolve(), **fault}


def read_log(log: Path) -> list[tuple[str, str]]:
    """(call, path) in order. Temporary names are random but for their ends."""
    lines = [re.sub(r"\.[0-9a-f]{8}\.tmp$", ".tmp", line) for line in log.read_text().splitlines()]
    return [(name, path) for name, _, path in (line.partition(" ") for line in lines)]
