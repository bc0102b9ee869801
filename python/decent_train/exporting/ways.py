"""The ways of writing a module to a file, a row for each."""

from __future__ import annotations

import contextlib
import io
import linecache
import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .inputs import Example
from .reference import Reference

_EXTERNAL_BYTES = 1_500_000_000  # of weights: a protobuf, as an .onnx file is one, ends at 2 GiB
_LOGGERS = ("torch.export", "torch.fx", "torch.onnx", "torch._dynamo", "onnxscript")
Shapes = dict[str, Any] | tuple[Any, ...] | list[Any] | None  # torch.export's dynamic_shapes
Write = Callable[[Reference, Shapes, Path], None]


@dataclass(frozen=True)
class Way:
    """`write(reference, dynamic_shapes, path)` writes the module in train mode."""

    format: str
    suffix: str
    write: Write
    keeps_frozen: bool = True
    """Whether the file holds requires_grad."""
    after: tuple[str, ...] | None = None
    """Kinds of differences (Differs.kind) of the last way that this one may mend; None: all, and also a failure."""
    note: str = ""


def _program(reference: Reference, shapes: Shapes) -> torch.export.ExportedProgram:
    example = reference.example
    return torch.export.export(reference.module, example.args, example.kwargs, dynamic_shapes=shapes, strict=False)


def _write_pt2(reference: Reference, shapes: Shapes, path: Path) -> None:
    reference.train()
    torch.export.save(_program(reference, shapes), path)


def _write_two_programs(reference: Reference, shapes: Shapes, path: Path) -> None:
    from torch.export.pt2_archive._package import package_pt2

    programs = {}
    for mode, switch in (("train", reference.train), ("eval", reference.eval)):
        switch()
        programs[mode] = _program(reference, shapes)
        reference.state.restore()
    package_pt2(str(path), exported_programs=programs)


def _write_script(reference: Reference, shapes: Shapes, path: Path) -> None:
    reference.train()
    torch.jit.script(reference.module).save(str(path))


def _write_trace(reference: Reference, shapes: Shapes, path: Path) -> None:
    """Raises RuntimeError where PyTorch warns of a branch or a number that the trace would hold as a constant."""
    reference.train()
    example = reference.example
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        given = {"example_kwarg_inputs": example.tensors} if example.kwargs else {"example_inputs": example.args}
        traced = torch.jit.trace(reference.module, **given, check_trace=False, strict=False)
    for each in caught:
        if issubclass(each.category, torch.jit.TracerWarning):
            line = linecache.getline(each.filename, each.lineno).strip()
            raise RuntimeError(f"a trace holds what the example gave as a constant ({Path(each.filename).name}:"
                               f"{each.lineno}: {line})")
    traced.save(str(path))


def _write_onnx(reference: Reference, shapes: Shapes, path: Path) -> None:
    reference.train()
    weights = sum(each.numel() * each.element_size() for each in reference.module.parameters())
    torch.onnx.export(reference.module, reference.example.args, str(path), kwargs=reference.example.kwargs, dynamo=True,
                      optimize=False, dynamic_shapes=shapes, input_names=list(reference.example.tensors), verbose=False,
                      external_data=weights > _EXTERNAL_BYTES)


_SCRIPT = Way("TorchScript", ".pt", _write_script)
WAYS: dict[str, tuple[Way, ...]] = {
    ".pt2": (
        Way("torch.export", ".pt2", _write_pt2),
        Way("torch.export, a program for each mode", ".pt2", _write_two_programs,
            after=("evaluation", "outputs", "buffers"),
            note="train and eval mode differ by more than dropout and batch norm, so that the file holds a program for "
                 "each of them, and the weights twice"),
        _SCRIPT,
    ),
    ".pt": (
        _SCRIPT,
        Way("TorchScript, traced", ".pt", _write_trace,
            note="torch.jit.script does not take the module, so that it was traced: the file holds the operators of "
                 "one call, which do not depend on the mode"),
    ),
    ".onnx": (Way("ONNX", ".onnx", _write_onnx, keeps_frozen=False),),
}


def shapes_of(example: Example, dynamic_batch: bool) -> Shapes:
    """torch.export's dynamic_shapes: dimension 0 of each input is "batch"."""
    return example.for_each({0: torch.export.Dim("batch")}) if dynamic_batch else None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Exporters print progress, graphs and warnings of their own; errors are what counts."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with (warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()),
              contextlib.redirect_stderr(io.StringIO())):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)

