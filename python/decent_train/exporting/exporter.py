"""Writes a module to a file that trains as the module does, or says why there is none."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

from torch import nn

from .comparison import Comparison, Differs, explained
from .error import ExportError
from .inputs import Example, Inputs
from .preparation import frozen_names, notes_of, on_the_cpu, refuse_early, unwrapped, usable
from .trial import ProgramRefuses, Task, Trial
from .reference import Reference, reference_of
from .result import Check
from .state import unchanged
from .traps import reason_of
from .ways import WAYS, Shapes, Way, quiet, shapes_of
from ..program import program


def export(module: nn.Module, example_inputs: Inputs, path: str | os.PathLike[str], *, dynamic_batch: bool = True,
           dynamic_shapes: Shapes = None) -> Check:
    """Writes `module` to `path`, in train mode and for batches of any size: `.pt2` (torch.export), `.pt` (TorchScript)
    or `.onnx`. Returns what was checked, and what the file does not hold.

    The program loads the file, and what it understands is compared with the module: outputs in eval mode, outputs,
    gradients and changes of buffers in train mode, each for another size of the batch, too, and one step of training.
    Only then the file appears under its name. A module that torch.export does not take, or not rightly, becomes a
    TorchScript file in place of a .pt2 (its name then ends in .pt), with a warning. The module stays as it was.

    - example_inputs: a tensor, a tuple in the order of forward's arguments, or {name of the argument: tensor}.
      Dimension 0 is the batch. Real data check more than torch.zeros.
    - dynamic_batch=False: the file only takes batches of the example's size.
    - dynamic_shapes: as for torch.export.export, where more than the batch is to be free, such as the length of texts:
      {"x": {0: Dim("batch"), 1: Dim("length")}}.

    Raises ExportError, which names what the file cannot hold and what to write instead, FileNotFoundError if the
    program is not there, and TrainingError if it fails for another reason than the file.
    """
    target = _target(path)
    notes: list[str] = []
    module = on_the_cpu(unwrapped(module, notes), notes)
    refuse_early(module)
    program()
    example = usable(Example.of(module, example_inputs).mapped(lambda each: each.detach().cpu()), dynamic_batch, notes)
    with unchanged(module) as state:
        if not module.training:
            notes.append("the module was in eval mode and is exported in train mode, with all of its layers")
        reference = reference_of(module, example, state, dynamic_batch)
        reference.measure()
        notes += notes_of(reference)
        shapes = dynamic_shapes if dynamic_shapes is not None else shapes_of(example, dynamic_batch)
        return _first_that_holds(reference, shapes, target, notes)


def _first_that_holds(reference: Reference, shapes: Shapes, target: Path, notes: list[str]) -> Check:
    task = Task.of(reference)
    failures: list[tuple[Way, str, str]] = []  # with the kind of the difference, "" for a failure
    for way in WAYS[target.suffix]:
        if failures and way.after is not None and failures[-1][2] not in way.after:
            continue
        if way.suffix != target.suffix and target.with_suffix(way.suffix).exists():
            name = target.with_suffix(way.suffix).name
            failures.append((way, f"'{name}' is there already: export to that name if it may be replaced", ""))
            continue
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
            file = Path(folder) / target.with_suffix(way.suffix).name
            try:
                check = _written(way, reference, shapes, file, task)
            except _Failed as failed:
                failures.append((way, str(failed), failed.kind))
                continue
            return _moved(check, file, target, [*notes, *_notes_of_the_way(way, failures, target)])
    raise ExportError(_message(target, failures))


class _Failed(Exception):
    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


def _written(way: Way, reference: Reference, shapes: Shapes, file: Path, task: Task) -> Check:
    """Raises _Failed."""
    try:
        with quiet():
            way.write(reference, shapes, file)
    except (OSError, MemoryError):
        raise  # of the machine, and not of the module
    except Exception as error:
        raise _Failed(reason_of(error)) from error
    finally:
        reference.state.restore()
    freeze = () if way.keeps_frozen else tuple(frozen_names(reference.module))
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(reference, Trial(file, Path(folder), reference, task, freeze), way.format)
        try:
            comparison.compare()
        except ProgramRefuses as error:
            raise _Failed(f"decent-train does not take the file: {error}") from error
        except Differs as error:
            raise _Failed(explained(error, reference), error.kind) from error
    recipe = {**task.model, **({"freeze": list(freeze)} if freeze else {})}
    return Check(file, way.format, tuple(comparison.lines), recipe=recipe, largest_difference=comparison.largest)


def _moved(check: Check, file: Path, target: Path, notes: list[str]) -> Check:
    """The file, and data beside it, under its own name."""
    final = target.with_suffix(file.suffix)
    for each in sorted(file.parent.iterdir(), key=lambda each: each == file):  # the file itself comes last
        os.replace(each, final.parent / each.name)
    if check.recipe.get("freeze"):
        notes.append("ONNX does not hold requires_grad=False: give the recipe model.freeze as in Check.recipe")
    return Check(final, check.format, check.checked, tuple(notes), {"path": str(final), **check.recipe},
                 check.largest_difference)


def _notes_of_the_way(way: Way, failures: list[tuple[Way, str, str]], target: Path) -> list[str]:
    notes = [way.note] if way.note else []
    if way.suffix != target.suffix:
        text = (f"wrote TorchScript, '{target.with_suffix(way.suffix).name}', in place of '{target.name}', since "
                f"torch.export does not hold the module: {failures[0][1]}")
        warnings.warn(text, stacklevel=4)
        notes.append(text)
    elif way.note and failures:
        notes[-1] += f" ({failures[0][1]})"
    return notes


def _message(target: Path, failures: list[tuple[Way, str, str]]) -> str:
    reasons = dict.fromkeys(f"{way.format}: {text}" for way, text, _ in failures)
    return "\n".join([f"'{target.name}' is not written, since it would not train as the module does", *reasons])


def _target(path: str | os.PathLike[str]) -> Path:
    target = Path(path).absolute()
    if target.suffix not in WAYS:
        raise ExportError(f"'{target.name}' does not say what to write: its name has to end in .pt2 (torch.export), "
                          ".pt (TorchScript) or .onnx")
    if not target.parent.is_dir():
        raise ExportError(f"cannot write '{target}': the folder '{target.parent}' is not there")
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise ExportError(f"cannot write '{target}': " + ("it is a folder" if target.is_dir() else
                                                          f"no permission to write into '{target.parent}'"))
    return target
