"""The native program: where it lies, and how Python starts it."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_IN_WHEEL = _PACKAGE / "bin" / "decent-train"
_IN_CLONE = _PACKAGE.parents[1] / "build" / "bin" / "decent-train"
# What launchers tell their workers (docs/slurm.md).
_LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_LAUNCHERS = ("TORCHELASTIC_", "PET_", "SLURM_", "OMPI_", "PMI_", "PMIX_", "MPI_LOCAL")
_NAME = "decent-train: "


class TrainingError(RuntimeError):
    """The program ended with an error. The text is the program's message; `code` is its exit code (README, "Exit codes")."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def program() -> Path:
    """The program: the one that the environment variable DECENT_TRAIN names, the wheel's, or the one built in the clone.

    Raises FileNotFoundError if it is not there, or if the package torch is not the one that it was built for.
    """
    named = os.environ.get("DECENT_TRAIN")
    if named:
        return _existing(Path(named).absolute(), "DECENT_TRAIN names it")
    if not _is_wheel():
        return _existing(_IN_CLONE, "build it first: tools/quickstart, or cmake --preset release && cmake --build build")
    problem = _torch_problem(_PACKAGE.parent)
    if problem is not None:
        raise FileNotFoundError(problem)
    return _existing(_IN_WHEEL, "install the wheel again")


def run(arguments: Sequence[object], cwd: str | Path | None = None) -> str:
    """Runs the program to its end and returns what it printed. Raises TrainingError if it fails."""
    ended = subprocess.run([program(), *map(str, arguments)], cwd=cwd, env=environment(), stdin=subprocess.DEVNULL,
                           capture_output=True, encoding="utf-8", errors="replace")
    if ended.returncode != 0:
        raise error_of(ended.returncode, message_of(ended.stderr))
    return ended.stdout


def environment() -> dict[str, str]:
    """This process's environment without what a launcher says to its workers: the program then is no worker of a launcher that
    has started this process, such as torchrun or srun.
    """
    return {name: value for name, value in os.environ.items()
            if name not in _LAUNCHER and not name.startswith(_LAUNCHERS)}


def error_of(code: int, message: str) -> TrainingError:
    """The error for a program that ended with this exit code, or with minus a signal, as subprocess has it."""
    if code >= 0:
        return TrainingError(message or f"decent-train ended with exit code {code}", code)
    killed = f"decent-train was ended by {signal.Signals(-code).name}"
    return TrainingError(f"{killed}\n{message}" if message else killed, 128 - code)


def message_of(stderr: str) -> str:
    """The program's message, which begins with the first line that begins with its name; warnings may stand before it. Its name
    is left out.
    """
    lines = stderr.strip().splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith(_NAME)), 0)
    return "\n".join(line.removeprefix(_NAME).removeprefix("error: ") for line in lines[first:])


def settings(values: Mapping[str, object]) -> list[str]:
    """The flags that set these keys of a recipe: {"optimizer.lr": 1e-3} or {"optimizer": {"lr": 1e-3}}. Entries of mappings are
    set one by one; but a mapping that is empty, or whose keys are names of other things (with dots in them, or no texts), is the
    value of a key. Raises TypeError for a value that no recipe can hold.
    """
    return [flag for key, value in leaves(values) for flag in ("--set", f"{key}={yaml_text(value)}")]


def yaml_text(value: object) -> str:
    """The value in YAML, on one line. Raises TypeError if YAML has no such value."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def main() -> None:
    """Becomes the program: the same process, so that signals and exit codes are the program's."""
    try:
        path = program()
        os.execv(path, [str(path), *sys.argv[1:]])
    except OSError as error:
        what = error if error.strerror is None else f"cannot start '{error.filename or path}': {error.strerror}"
        print(f"decent-train: error: {what}", file=sys.stderr)
        sys.exit(2)


def _is_wheel() -> bool:
    return (_PACKAGE / "torch_version.py").exists()


def _existing(path: Path, hint: str) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"the program '{path}' is not there: {hint}")
    return path


def _torch_problem(site: Path) -> str | None:
    """Why the program would not start or would fail: LibTorch's ABI differs by version, and the program looks for it
    beside this package.
    """
    from .torch_version import TORCH_VERSION

    version_file = site / "torch" / "version.py"
    if not version_file.exists():
        return f"the package torch is not in '{site}', where this package is: install both into one environment"
    first = next((line for line in version_file.read_text().splitlines() if line.startswith("__version__")), "")
    version = first.partition("=")[2].strip(" '\"")
    if version.partition("+")[0] == TORCH_VERSION:
        return None
    return f"it was built for torch {TORCH_VERSION}, and '{site}' has torch {version}: pip install torch=={TORCH_VERSION}"


def leaves(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The keys that settings() sets, with dots, and their values."""
    for key, value in values.items():
        if not isinstance(key, str) or not key:
            raise TypeError(f"a key of a recipe is a text, not {key!r}")
        if isinstance(value, Mapping) and value and all(isinstance(each, str) and each.isidentifier() for each in value):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _plain(value: object) -> object:
    """With NumPy's and torch's numbers as Python's, and paths as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{value} cannot be the value of a recipe key")
        return float(value)
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return _plain(value.item())
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    raise TypeError(f"a recipe cannot hold a value of type {type(value).__name__}: {value!r}")
