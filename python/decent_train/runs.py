"""Run: a run's folder, read from Python. Nothing here changes the folder, except that `evaluate` adds a line to its figures."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .checkpoint import Checkpoint, checkpoints_in
from .metrics import direction_of
from .page import Page, compare
from .printed_recipe import read_printed
from .program import run, yaml_text
from .run_folder import SIGNS_OF_A_RUN, is_held, is_run
from .sources import source_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Line = dict[str, Any]


@dataclass(frozen=True)
class Best:
    """The best evaluation of a run."""

    metric: str  # by which it is the best
    value: float
    step: int
    figures: Mapping[str, Any]  # its line in metrics.jsonl
    checkpoint: Checkpoint | None  # of this step, if it is still there


class Run:
    """A finished or living run. Its figures, status and checkpoints are read anew each time that they are asked for."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Raises FileNotFoundError if the folder holds no run."""
        self.folder = Path(folder).absolute()
        if not self.is_run(self.folder):
            raise FileNotFoundError(_no_run(self.folder))

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Run:
        """The run in this folder. Raises FileNotFoundError if it holds none."""
        return cls(folder)

    @staticmethod
    def is_run(folder: str | os.PathLike[str]) -> bool:
        return is_run(Path(folder))

    def __repr__(self) -> str:
        last = next((line for line in reversed(self.lines()) if "loss" in line), None)
        figures = "" if last is None else f", step {last['step']}, {_figures_text(last)}"
        return f"Run('{self.folder}': {self.status}{figures})"

    # ---- what the run wrote -----------------------------------------------------------------------------------------

    @property
    def recipe(self) -> dict[str, Any]:
        """The resolved recipe, every key with its value and every path absolute; `output` is this folder. train() takes it
        as it is. Raises ValueError if `recipe.yaml` was not written by the program.
        """
        try:
            return {**read_printed((self.folder / "recipe.yaml").read_text()), "output": str(self.folder)}
        except ValueError as error:
            raise ValueError(f"'{self.folder / 'recipe.yaml'}': {error}") from error

    @property
    def status(self) -> str:
        """running, completed, stopped (by a signal, after saving), failed, or killed: it ended and could not say so."""
        if is_held(self.folder):
            return "running"
        end = next((line for line in reversed(self.lines("end"))), None)
        return str(end["status"]) if end is not None else "killed"

    @property
    def workers(self) -> int:
        """The number of workers of the last start. Raises ValueError if the run does not say (versions without run.json)."""
        try:
            starts = json.loads((self.folder / "run.json").read_text())["starts"]
            return int(starts[-1]["workers"])
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            if self.checkpoints:
                return self.checkpoints[-1].workers
            raise ValueError(f"'{self.folder}' does not say how many workers it had: neither run.json nor a checkpoint "
                             "can be read") from None

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """The checkpoints that are there, by their steps."""
        return checkpoints_in(self.folder / "checkpoints")

    def lines(self, kind: str | None = None) -> list[Line]:
        """The lines of metrics.jsonl (docs/metrics.md), or those of one kind: train, eval, resume, end.

        A last line that is still being written is left out; another one that cannot be read is left out with a warning.
        """
        try:
            text = (self.folder / "metrics.jsonl").read_bytes()
        except FileNotFoundError:
            return []
        *whole, _ = text.decode(errors="replace").split("\n")
        lines = [line for line in map(self._line, whole) if line is not None]
        return lines if kind is None else [line for line in lines if line["kind"] == kind]

    def metrics(self, kind: str | None = None) -> Any:
        """As lines(), as a pandas DataFrame where pandas is installed, with a row for each line; else as a list of dicts."""
        lines = self.lines(kind)
        try:
            import pandas
        except ImportError:
            return lines
        return pandas.DataFrame(lines)

    @property
    def best(self) -> Best | None:
        """The best evaluation by `checkpoint.keep_best` of the recipe, else by `train.stop.metric`, else by the loss; of equal
        ones the latest. None if there is no evaluation yet.
        """
        metric = self._criterion()
        evaluations = [line for line in self.lines("eval")
                       if line.get(metric) is not None and "source" not in line and "checkpoint" not in line]
        if not evaluations:
            return None
        sign = -1 if direction_of(metric) == "minimize" else 1
        line = max(evaluations, key=lambda each: (sign * each[metric], each["step"]))
        checkpoint = next((each for each in self.checkpoints if each.step == line["step"]), None)
        return Best(metric, line[metric], line["step"], line, checkpoint)

    def report(self, path: str | os.PathLike[str] | None = None) -> Page:
        """The page about the run as it is now (docs/report.md): a notebook shows it, `.open()` opens it in the browser.

        path: where it is written, a name that ends in .html; without it, a temporary folder.
        """
        return compare(self, path=path)

    # ---- the model --------------------------------------------------------------------------------------------------

    def model(self, checkpoint: str | os.PathLike[str] | None = None) -> torch.jit.ScriptModule:
        """The averaged model as a TorchScript module in eval mode, on the CPU.

        checkpoint: None takes the final model of a completed run, else the newest checkpoint; "best" the best one, by the
            metric of `best`; a Checkpoint or a path that one. Raises TrainingError if there is none.
        """
        import torch

        with self._model_file(".pt", checkpoint) as file, warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*torch.jit.load.* is deprecated", DeprecationWarning)
            module: torch.jit.ScriptModule = torch.jit.load(str(file), map_location="cpu")  # type: ignore[no-untyped-call]
            return module.eval()

    def state_dict(self, checkpoint: str | os.PathLike[str] | None = None) -> dict[str, Tensor]:
        """The averaged model's parameters and buffers under their state_dict names, for `load_state_dict` of the module
        that was exported. checkpoint: as in model().
        """
        from .tensor_files import read_tensors

        with self._model_file(".safetensors", checkpoint) as file:
            return read_tensors(file).tensors

    def predict(self, data: object, checkpoint: str | os.PathLike[str] = "auto") -> dict[str, Any]:
        """The averaged model's predictions for new samples, in order (docs/predict.md).

        data: an array or tensor of shape [samples, ..] if the model has one input; a dict of arrays, one for each field of
            `model.inputs`; a pandas DataFrame for a model of tables; the path of a file or folder; or a source as in a recipe,
            {"format": "csv", "path": ..}. Samples get the transforms of evaluation.
        checkpoint: "auto" takes the newest one, "best" the best one, by the metric of `best`; a Checkpoint or a path that one.

        Returns tensors by name: `output` [samples, ..]; `class` and `probability` if the loss is one of classes; `row`, ..; and
        the lists `class_names` and `file` where there are such. Raises TrainingError with the program's message.
        """
        from .tensor_files import read_tensors

        with tempfile.TemporaryDirectory(prefix="decent-train-") as folder:
            source = source_of(data, self.recipe, self._input_fields, Path(folder))
            file = Path(folder, "predictions.safetensors")
            self._start(checkpoint, "--predict", file, "--set", f"data.predict={yaml_text(source)}")
            predictions = read_tensors(file)
        return {**predictions.tensors, **{name: json.loads(text) for name, text in predictions.texts.items()}}

    def evaluate(self, data: object = None, checkpoint: str | os.PathLike[str] = "auto") -> Line:
        """Evaluates the averaged model, adds the line to metrics.jsonl, and returns it.

        data: None takes the recipe's data.eval; else as in predict(), with the target. checkpoint: as in predict().
        """
        with tempfile.TemporaryDirectory(prefix="decent-train-") as folder:
            flags: list[object] = ["--eval-only"]
            if data is not None:
                fields = [*self._input_fields, self.recipe["model"]["target"]]
                flags += ["--set", f"data.eval={yaml_text(source_of(data, self.recipe, fields, Path(folder)))}"]
            before = len(self.lines("eval"))
            self._start(checkpoint, *flags)
        added = self.lines("eval")[before:]
        if not added:
            raise ValueError(f"'{self.folder}' has no metrics.jsonl to which the evaluation could be added")
        return added[-1]

    # ---- parts ------------------------------------------------------------------------------------------------------

    def _start(self, checkpoint: str | os.PathLike[str], *flags: object) -> None:
        """Runs the program on this run's recipe and a checkpoint, also if the folder was moved."""
        arguments = [self.folder / "recipe.yaml", "--set", f"output={yaml_text(self.folder)}", "--checkpoint",
                     os.fspath(checkpoint), *flags]
        if checkpoint == "best":
            arguments += ["--set", f"checkpoint.keep_best={yaml_text(self._criterion())}"]
        run(arguments)

    @contextmanager
    def _model_file(self, ending: str, checkpoint: str | os.PathLike[str] | None) -> Iterator[Path]:
        final = {None: f"model{ending}", "best": f"model-best{ending}"}
        if checkpoint in final and self.status == "completed" and (self.folder / final[checkpoint]).exists():
            yield self.folder / final[checkpoint]
            return
        with tempfile.TemporaryDirectory(prefix="decent-train-") as folder:
            file = Path(folder, f"model{ending}")
            self._start("auto" if checkpoint is None else checkpoint, "--export", file)
            yield file

    @property
    def _input_fields(self) -> list[str]:
        inputs = self.recipe["model"]["inputs"]
        return list(inputs.values() if isinstance(inputs, dict) else inputs)

    def _criterion(self) -> str:
        recipe = self.recipe
        stop = recipe["train"].get("stop") or {}
        return recipe["checkpoint"].get("keep_best") or stop.get("metric") or "loss"

    def _line(self, text: str) -> Line | None:
        try:
            line = json.loads(text)
            return {"kind": line["kind"], **line}
        except (ValueError, KeyError, TypeError):
            warnings.warn(f"'{self.folder / 'metrics.jsonl'}': a line cannot be read: {text[:80]!r}", stacklevel=4)
            return None


def _figures_text(line: Line) -> str:
    shown = [name for name in ("accuracy", "loss") if isinstance(line.get(name), float)]
    return ", ".join(f"{name} {line[name]:.4g}" for name in shown)


def _no_run(folder: Path) -> str:
    """Why the folder is no run, and what may have been meant."""
    if not folder.is_dir():
        return f"'{folder}' is no folder"
    message = f"'{folder}' holds no run: neither {', '.join(SIGNS_OF_A_RUN[:-1])} nor {SIGNS_OF_A_RUN[-1]}"
    if folder.parent.name == "checkpoints":
        return f"{message}; it is a checkpoint of the run '{folder.parent.parent}'"
    runs = sorted(each.name for each in folder.iterdir() if each.is_dir() and Run.is_run(each))
    return f"{message}. The folders in it that do: {', '.join(runs[:10])}" if runs else message
