"""decent-train as a Python package, which only starts the native program in this folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .torch_version import TORCH_VERSION

PROGRAM = Path(__file__).resolve().parent / "bin" / "decent-train"


def torch_problem(site: Path) -> str | None:
    """Why the program would not start or would fail: LibTorch's ABI differs by version, and the program looks for it
    beside this package.
    """
    version_file = site / "torch" / "version.py"
    if not version_file.exists():
        return f"the package torch is not in '{site}', where this package is: install both into one environment"
    first = next((line for line in version_file.read_text().splitlines() if line.startswith("__version__")), "")
    version = first.partition("=")[2].strip(" '\"")
    if version.partition("+")[0] == TORCH_VERSION:
        return None
    return f"it was built for torch {TORCH_VERSION}, and '{site}' has torch {version}: pip install torch=={TORCH_VERSION}"


def main() -> None:
    """Becomes the program: the same process, so that signals and exit codes are the program's."""
    problem = torch_problem(PROGRAM.parents[2])
    if problem is not None:
        print(f"decent-train: error: {problem}", file=sys.stderr)
        sys.exit(2)
    try:
        os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"decent-train: error: cannot start '{PROGRAM}': {error.strerror}")
