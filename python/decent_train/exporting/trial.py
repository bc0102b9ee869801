"""The native program's view of a written file: what it trains, and one step of that training."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ..program import TrainingError, run
from ..tensor_files import DTYPES, write_tensors
from .error import ExportError
from .outcome import Outcome, difference
from .reference import Reference

_TARGET = "export_target"
_REFUSALS = (2, 5)  # exit codes that are about the file: it does not fit, or its loss is not finite



class ProgramRefuses(Exception):
    """The program does not take the file, with its message."""


@dataclass(frozen=True)
class Task:
    """What the program is asked to train: which output of the module by which loss."""

    model: dict[str, object]
    """The recipe's section `model`, without path and freeze."""
    output: str
    """The name of that output, as named_outputs() gives it."""
    is_loss: bool
    """Whether this output is the loss itself; else the loss is `mse`."""
    fields: tuple[str, ...]
    """The data's field for each input. A single input without a name in the example is the field x, as by default."""

    @staticmethod
    def of(reference: Reference) -> Task:
        """Raises ExportError if no output fits a loss of the program."""
        outcome = list(reference.outcomes.values())[-1]
        names = list(reference.example.tensors)
        fields = names if reference.example.kwargs or len(names) > 1 else ["x"]
        model: dict[str, object] = {} if fields == ["x"] else {"inputs": {name: name for name in names}}
        output, is_loss = _trained_output(outcome, reference.batches[1])
        if len(outcome.outputs) > 1 or output:
            model["output"] = output
        if is_loss:
            model |= {"loss": "output", "target": fields[-1]}
        return Task(model, output, is_loss, tuple(fields))

    def loss_of(self, outputs: Mapping[str, Tensor]) -> Tensor:
        output = outputs[self.output]
        return output.reshape(()) if self.is_loss else torch.nn.functional.mse_loss(output, target_of(output))


@dataclass(frozen=True)
class Trial:
    """Runs of the program with one file, in a folder that is removed afterwards. They raise ProgramRefuses, or
    TrainingError for what is not the file's fault, such as a full disk.
    """

    file: Path
    folder: Path
    reference: Reference
    task: Task
    freeze: tuple[str, ...] = ()

    def module(self) -> torch.jit.ScriptModule:
        """The module that the program trains, as it has understood the file. Raises ProgramRefuses."""
        self._run("--export", self.folder / "understood.pt", "--checkpoint", "none")
        return self.understood()

    def understood(self) -> torch.jit.ScriptModule:
        """A new copy of module()."""
        return torch.jit.load(str(self.folder / "understood.pt"))

    def step(self, weights: Mapping[str, Tensor],
             gradients: Mapping[str, Tensor | None]) -> tuple[float, dict[str, Tensor]]:
        """Loss and gradients of one step of plain SGD: the weights before it, less those after it, by the learning
        rate. `gradients` are those that are expected; they only decide how large a step is. Raises ProgramRefuses.
        """
        lr = _learning_rate(weights, gradients)
        self._run("--set", f"optimizer.lr={lr}")
        lines = [json.loads(line) for line in (self.folder / "run" / "metrics.jsonl").read_text().splitlines()]
        loss = next(line["loss"] for line in lines if line["kind"] == "train")
        after = torch.jit.load(str(self.folder / "run" / "model.pt")).state_dict()
        return loss, {name: (weights[name].double() - after[name].double()) / lr for name in gradients}

    def _run(self, *flags: object) -> None:
        recipe = self.folder / "recipe.json"
        recipe.write_text(json.dumps(self._recipe()))  # JSON is YAML
        try:
            run(["--config", recipe, "--quiet", *flags], cwd=self.folder)
        except TrainingError as error:
            text = re.sub(r"\s+", " ", str(error)).replace(f"{self.file.parent}/", "")
            if error.code in _REFUSALS:
                raise ProgramRefuses(text) from error
            raise TrainingError(text, error.code) from error

    def _recipe(self) -> dict[str, object]:
        example = self.reference.example.sized(self.reference.batches[1])
        fields = dict(zip(self.task.fields, example.tensors.values(), strict=True))
        if not self.task.is_loss:
            output = list(self.reference.outcomes.values())[-1].outputs[self.task.output]
            fields[_TARGET] = target_of(output)
        _write(self.folder / "data.safetensors", fields)
        loss = {} if self.task.is_loss else {"loss": "mse", "target": _TARGET}
        return {
            "output": str(self.folder / "run"),
            "model": {"path": str(self.file), **loss, **self.task.model, "freeze": list(self.freeze), "device": "cpu"},
            "data": {"train": {"format": "safetensors", "path": str(self.folder / "data.safetensors")},
                     "batch_size": example.batch, "eval_batch_size": example.batch, "shuffle": False, "prefetch": 0},
            "train": {"steps": 1},
            "optimizer": {"name": "sgd", "momentum": 0.0, "weight_decay": 0.0},
            "schedule": {"name": "constant"},
            "eval": {"every_epochs": None},
            "checkpoint": {"every_epochs": None},
            "log": {"every_steps": 1, "tensorboard": False, "progress": "off"},
        }


def target_of(output: Tensor) -> Tensor:
    """Numbers of the output's shape and type, always the same."""
    return torch.randn(output.shape, generator=torch.Generator().manual_seed(2)).to(output.dtype)


def _write(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Raises ExportError for a type that no data file has."""
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPES:
            raise ExportError(f"the input '{name}' has the type {tensor.dtype}, which data files cannot hold: compute "
                              "it in forward from tensors of other types")
    write_tensors(path, {name: tensor.cpu() for name, tensor in tensors.items()})


def _trained_output(outcome: Outcome, batch: int) -> tuple[str, bool]:
    """The output that is trained, and whether it is the loss: one called "loss", a single number, or else the first one
    with a row for each sample.
    """
    floating = {name: each for name, each in outcome.outputs.items() if each.is_floating_point()}
    numbers = [name for name, each in floating.items() if each.dim() == 0]
    rows = [name for name, each in floating.items() if each.dim() > 0 and each.shape[0] == batch]
    if "loss" in numbers or (numbers and not rows):
        return ("loss" if "loss" in numbers else numbers[0]), True
    if rows:
        return rows[0], False
    shapes = {name or "the output": list(each.shape) for name, each in outcome.outputs.items()}
    raise ExportError(f"no output is a loss (one number) or has a row for each of the {batch} samples: {shapes}. The "
                      "batch has to be dimension 0 of the output that is trained")


def _learning_rate(weights: Mapping[str, Tensor], gradients: Mapping[str, Tensor | None]) -> float:
    """A power of two by which steps are about as large as weights: subtracting them then loses few digits."""
    size = math.sqrt(sum(float(weights[name].double().square().sum()) for name in gradients))
    slope = math.sqrt(sum(float(each.double().square().sum()) for each in gradients.values() if each is not None))
    return 2.0 ** max(-20, min(20, round(math.log2(max(size, 1e-6) / max(slope, 1e-12)))))


def names_by_value(module: nn.Module, ours: Mapping[str, Tensor]) -> dict[str, str]:
    """{name of a parameter of the module: its name in the file}, by equal names, or else by equal values."""
    left = dict(ours)
    found: dict[str, str] = {}
    parameters = dict(module.named_parameters())
    for name in [name for name in parameters if name in left]:
        found[name] = name
        del left[name]
    for name in [name for name in parameters if name not in found]:
        same = next((each for each, value in left.items() if difference(value, parameters[name].detach()) == 0), None)
        if same is not None:
            found[name] = same
            del left[same]
    return found
