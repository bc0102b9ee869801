"""Runs of decent-train on the networks of the catalogue."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from catalogue import EXAMPLES
from eager import Imported
from exports import IMPOSSIBLE
from program import Ended, run_alone
from runs import Run, recipe, train, write_recipe

EVERYTHING = os.environ.get("DECENT_ONNX_ALL", "0") == "1"

# Adam's eps is above the rounding of gradients that cancel to zero, which it would make steps of lr else.
OPTIMIZERS = {
    "sgd": {"name": "sgd", "lr": 0.02, "momentum": 0.9, "weight_decay": 0.01},
    "adamw": {"name": "adamw", "lr": 0.001, "eps": 1e-5, "weight_decay": 0.1},
}
SCHEDULES = {"sgd": {"name": "constant"}, "adamw": {"name": "cosine_warmup", "warmup_steps": 4}}


def cases(chosen: dict[str, list[str]], forms: tuple[str, ...]) -> list[tuple[str, str]]:
    """(network, form): the chosen ones, {form: networks}, or with DECENT_ONNX_ALL=1 all that PyTorch can write."""
    if not EVERYTHING:
        return [(name, form) for form in forms for name in chosen[form]]
    return [(name, form) for name in EXAMPLES for form in forms if (name, form) not in IMPOSSIBLE]


def optimizer_of(name: str, optimizer: str) -> dict:
    settings, example = OPTIMIZERS[optimizer], EXAMPLES[name]
    own = {"lr": example.lr.get(optimizer), "eps": example.eps.get(optimizer)}
    return {**settings, **{key: value for key, value in own.items() if value is not None}}


def _model_keys(name: str, model_file: Path) -> dict:
    """The recipe's section. Outputs of TorchScript and torch.export have no names."""
    example = EXAMPLES[name]
    keys = {"inputs": {key: key for key in example.inputs}, **example.model}
    if "output" in keys and model_file.suffix in (".pt", ".pt2"):
        keys["output"] = example.outputs.index(keys["output"])
    return keys


def make_recipe(name: str, model_file: Path, data_file: Path, optimizer: str) -> dict:
    example = EXAMPLES[name]
    steps = example.steps_of(optimizer)
    return recipe(model_file, data_file,
                  model=_model_keys(name, model_file),
                  data={"batch_size": example.batch_size, "shuffle": False},
                  train={"steps": steps},
                  optimizer=optimizer_of(name, optimizer),
                  schedule=SCHEDULES[optimizer],
                  eval={"every_steps": steps},
                  checkpoint={"every_steps": steps})


@dataclass(frozen=True)
class TrainedRun:
    run: Run
    config: Path  # of the run, in a folder of its own

    def export(self, file: str, *flags: object) -> Path:
        """Writes the run's model, or with --checkpoint none the model it starts from, beside the recipe."""
        path = self.config.parent / file
        export(self.config, path, *flags)
        return path

    def start(self) -> torch.jit.ScriptModule:
        """The model before training, as decent-train has it."""
        return torch.jit.load(str(self.export("start.pt", "--checkpoint", "none")))

    def imported(self) -> Imported:
        return Imported.load(self.start())


def export(config: Path, path: Path, *flags: object) -> Ended:
    path.parent.mkdir(exist_ok=True)
    ended = run_alone("--config", config, *flags, "--export", path, cwd=config.parent)
    assert ended.code == 0, ended.err + ended.out
    return ended


def train_recipe(folder: Path, settings: dict, workers: int = 1) -> TrainedRun:
    run = train(folder, settings, workers=workers)
    return TrainedRun(run, folder / "recipe.yaml")


def write_only(folder: Path, settings: dict) -> TrainedRun:
    """A recipe that is not run, to export from."""
    return TrainedRun(Run(folder / "run", []), write_recipe(folder, settings))
