"""Recipes, the runs they make and the errors they end in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from program import ROOT, Ended, run_alone, run_each, run_workers
from tensors import differing, read_safetensors

DIGITS = {split: {"format": "builtin", "name": "digits", "split": split} for split in ("train", "test")}
DIGITS_MLP = ROOT / "models" / "digits_mlp.pt"
DIGITS_CNN = ROOT / "models" / "digits_cnn.pt"
NO_EVALUATION = {"every_steps": None, "every_epochs": None}
NO_CHECKPOINTS = {"every_steps": None, "every_epochs": None}
# Every optimizer, each once.
OPTIMIZERS = {
    "adamw": {"name": "adamw", "lr": 0.003},
    "adam": {"name": "adam", "lr": 0.003, "weight_decay": 0.01},
    "sgd": {"name": "sgd", "lr": 0.02, "nesterov": True},
    "accum_adam": {"name": "accum_adam", "lr": 0.003, "accum_iter": 3},
    "accum_adamw": {"name": "accum_adamw", "lr": 0.003, "accum_iter": 4},
    "lion": {"name": "lion", "lr": 0.001, "weight_decay": 0.1},
    "rmsprop": {"name": "rmsprop", "lr": 0.003, "momentum": 0.5, "alpha": 0.9},
    "adagrad": {"name": "adagrad", "lr": 0.01, "lr_decay": 0.01, "initial_accumulator_value": 0.01},
    "nadam": {"name": "nadam", "lr": 0.003, "momentum_decay": 0.01},
    "nadamw": {"name": "nadamw", "lr": 0.003, "weight_decay": 0.1},
    "radam": {"name": "radam", "lr": 0.01, "betas": [0.9, 0.99]},
    "radamw": {"name": "radamw", "lr": 0.01, "weight_decay": 0.1},
    "adafactor": {"name": "adafactor", "lr": 0.02, "weight_decay": 0.1},
}
TIMES = {"samples_per_s", "step_ms", "comm_wait_ms", "data_wait_ms", "gpu_memory_mb", "wall_s", "pause_s"}


def merged(base: dict, changes: dict) -> dict:
    """`base` with `changes`; sections are merged, sources replaced."""
    result = dict(base)
    for key, value in changes.items():
        section = isinstance(value, dict) and isinstance(base.get(key), dict) and "format" not in value
        result[key] = merged(base[key], value) if section else value
    return result


def recipe(model_file: Path = DIGITS_MLP, data_file: Path | None = None, /, **changes: Any) -> dict:
    """A short run on a safetensors file (both to train and to evaluate), or on the digits. It ends at once when a worker is
    lost, and resumes with the same bits; test_farewell.py has what comes of a loss by default."""
    source = {"format": "safetensors", "path": str(data_file)} if data_file else None
    base = {
        "model": {"path": str(model_file)},
        "data": {"train": source or DIGITS["train"], "eval": source or DIGITS["test"], "batch_size": 8},
        "train": {"steps": 12},
        "schedule": {"name": "constant"},
        "eval": NO_EVALUATION,
        "checkpoint": NO_CHECKPOINTS,
        "log": {"every_steps": 1},
        "parallel": {"farewell_s": 0},
    }
    return merged(base, changes)


@dataclass(frozen=True)
class Run:
    """A run that went well, in its output folder."""

    folder: Path
    ended: list[Ended]

    @property
    def metrics(self) -> list[dict]:
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]

    def lines(self, kind: str) -> list[dict]:
        return [line for line in self.metrics if line["kind"] == kind]

    @property
    def metrics_without_times(self) -> list[dict]:
        return [{key: value for key, value in line.items() if key not in TIMES} for line in self.metrics]

    @property
    def checkpoints(self) -> list[int]:
        """Steps of the checkpoints in their place."""
        return sorted(int(path.name.removeprefix("step-")) for path in (self.folder / "checkpoints").glob("step-*"))

    def checkpoint(self, step: int) -> Path:
        return self.folder / "checkpoints" / f"step-{step:08}"

    @property
    def losses(self) -> np.ndarray:
        return np.array([line["loss"] for line in self.lines("train")])

    @property
    def evaluation(self) -> dict:
        return self.lines("eval")[-1]

    @property
    def weights(self) -> dict[str, np.ndarray]:
        return read_safetensors(self.folder / "model.safetensors")


def with_default_farewell(settings: dict) -> dict:
    """For versions of the program that do not know the key, and for the time that a farewell costs in a run without a loss."""
    parallel = {key: value for key, value in settings["parallel"].items() if key != "farewell_s"}
    return {**settings, "parallel": parallel}


def write_recipe(folder: Path, recipe: dict) -> Path:
    """<folder>/recipe.yaml, with the output folder <folder>/run."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "recipe.yaml"
    config.write_text(json.dumps({"output": str(folder / "run"), **recipe}, indent=1))  # JSON is YAML
    return config


def attempt(folder: Path, recipe: dict, *flags: object, workers: int = 1, local: int | None = None,
            **variables: object) -> list[Ended]:
    """Runs the recipe with the output folder <folder>/run, whatever comes of it."""
    config = write_recipe(folder, recipe)
    return run_workers(workers, "--config", config, *flags, local=local, cwd=folder, **variables)


def train(folder: Path, recipe: dict, *flags: object, workers: int = 1, local: int | None = None,
          **variables: object) -> Run:
    """Runs the recipe with the output folder <folder>/run; it must go well."""
    ended = attempt(folder, recipe, *flags, workers=workers, local=local, **variables)
    assert [e.code for e in ended] == [0] * workers, "\n".join(e.err + e.out for e in ended)
    return Run(folder / "run", ended)


def on_each(folder: Path, recipe: dict, *flags: object, outputs: tuple[str, ...] = ("a", "b")) -> list[Ended]:
    """One worker for each output folder, as on machines without a shared file system."""
    config = write_recipe(folder, recipe)
    return run_each([["--config", config, "--set", f"output={folder / name}", *flags] for name in outputs], cwd=folder)


def assert_same_weights(a: Run, b: Run) -> None:
    assert a.folder != b.folder, "files are the same as themselves"
    assert list(a.weights) == list(b.weights)
    assert differing(a.weights, b.weights) == []


def assert_same_run(a: Run, b: Run) -> None:
    """Bit for bit, times apart; of the same data."""
    assert_same_weights(a, b)
    assert (a.folder / "model.safetensors").read_bytes() == (b.folder / "model.safetensors").read_bytes()
    assert a.metrics_without_times == b.metrics_without_times


def error_message(ended: list[Ended] | Ended, code: int = 2, max_lines: int | None = 5) -> str:
    """The one message of a run in which all workers ended with `code`, and none had anything else to say."""
    ended = ended if isinstance(ended, list) else [ended]
    text = "\n".join(f"rank {rank}, exit {e.code}:\n{e.err}{e.out}" for rank, e in enumerate(ended))
    assert [e.code for e in ended] == [code] * len(ended), text
    assert "".join(e.out for e in ended) == "", text
    errors = [e.err for e in ended if e.err]
    assert len(errors) == 1, text
    message = errors[0]
    assert message.startswith("decent-train: error: ") and message.count("decent-train: error:") == 1, text
    assert max_lines is None or len(message.splitlines()) <= max_lines, text
    for trace in ("Traceback", "Exception raised from", "frame #"):
        assert trace not in message, text
    return message


def refused(folder: Path, recipe: dict, *flags: object, code: int = 2, workers: int = 1) -> str:
    """The message of a recipe that ends with an error before anything is written."""
    message = error_message(attempt(folder, recipe, *flags, workers=workers), code)
    left = {path.name for path in folder.iterdir()} - {"recipe.yaml"}
    assert not left, f"{message}\nleft behind: {left}"
    return message


def message_of_odd_worker(folder: Path, own: dict, odd: dict, workers: int = 3, rank: int = 1) -> str:
    """The message where the worker `rank` has the recipe `odd`, the others have `own`."""
    files = []
    for i in range(workers):
        files.append(folder / f"{i}.yaml")
        files[-1].write_text(json.dumps({"name": "differ", "output": str(folder / "run"), **(odd if i == rank else own)}))
    message = error_message(run_each([["--config", file] for file in files], cwd=folder))
    assert not (folder / "run").exists()
    return message


def flag_error(*flags: object) -> str:
    """The message of one worker that refuses this command line."""
    return error_message(run_alone(*flags))


def assert_says(message: str, *texts: object) -> None:
    assert texts, "nothing is asked of it"
    for text in texts:
        assert str(text) in message, f"{text!r} is not in:\n{message}"
