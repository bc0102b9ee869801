"""Sweep files, and the searches that they make."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna
import pytest
from optuna.trial import FrozenTrial

import decent_train
from program import PROGRAM, ROOT, Ended, environment, run_commands
from runs import TIMES, merged, recipe
from supervised import wait_until

STEPS = 240
# A schedule that depends on the number of steps: a trial that had fewer steps than it says would train otherwise.
RECIPE = recipe(train={"steps": STEPS}, schedule={"name": "cosine_warmup"}, eval={"every_steps": 20},
                log={"every_steps": 20})
LEARNING_RATE = {"optimizer.lr": {"log_uniform": [1e-4, 1e-1]}}


def environment_of_search() -> dict[str, str]:
    return environment(PYTHONPATH=ROOT / "python", DECENT_TRAIN=PROGRAM)


def write_sweep(folder: Path, recipe_changes: dict | None = None, /, **changes: object) -> Path:
    """<folder>/sweep.yaml with <folder>/recipe.yaml, and the output <folder>/out."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.yaml").write_text(json.dumps(merged(RECIPE, recipe_changes or {})))  # JSON is YAML
    keys = {"recipe": "recipe.yaml", "space": LEARNING_RATE, "parallel": 1, "threads": 1, "output": str(folder / "out"),
            **changes}
    path = folder / "sweep.yaml"
    path.write_text(json.dumps(keys, indent=1))
    return path


def command(sweep: Path, *flags: object) -> list[object]:
    return [sys.executable, "-m", "decent_train.searching", sweep, *flags]


def run_search(sweep: Path, *flags: object) -> Ended:
    """The command, whatever comes of it."""
    return run_commands([command(sweep, *flags)], [environment_of_search()], sweep.parent)[0]


def completed(sweep: Path, **overrides: object) -> list[FrozenTrial]:
    """The search in the process of the test, where it must go well, and then the trials."""
    with pytest.MonkeyPatch.context() as patch:
        surround(patch)
        decent_train.search(sweep, quiet=True, **overrides)
    return trials_in(sweep.parent / "out")


def surround(patch: pytest.MonkeyPatch) -> None:
    """The environment of `environment_of_search` for this process."""
    for name in ("DECENT_TRAIN", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"):
        patch.setenv(name, environment_of_search()[name])


def trials_in(output: Path) -> list[FrozenTrial]:
    """As Optuna reads them from its storage."""
    return optuna.load_study(study_name="search", storage=f"sqlite:///{output / 'search.db'}").trials


def figures(trial: FrozenTrial) -> tuple:
    """All that must be the same in two searches that are the same."""
    return trial.number, trial.params, trial.state.name, trial.value, trial.intermediate_values


def lines_of(folder: Path, kind: str) -> list[dict]:
    """Of metrics.jsonl, without times."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in TIMES} for line in lines if line["kind"] == kind]


@contextmanager
def searching(sweep: Path, *flags: object) -> Iterator[subprocess.Popen]:
    """A search beside the test, in a process group of its own. Nothing is left of it."""
    process = subprocess.Popen([str(part) for part in command(sweep, *flags)], env=environment_of_search(),
                               cwd=sweep.parent, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        for left in processes_in(sweep.parent):
            os.kill(left, signal.SIGKILL)
        wait_until(lambda: processes_in(sweep.parent) == [])


def processes_in(folder: Path) -> list[int]:
    """The processes that were started with a file of this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and f"{folder}/".encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def has_evaluated(sweep: Path, trial: int, evaluations: int = 1) -> bool:
    path = sweep.parent / "out" / f"trial-{trial:04d}" / "metrics.jsonl"
    return path.exists() and path.read_text().count('"eval"') >= evaluations
