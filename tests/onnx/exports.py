"""Writes the networks as .onnx in the forms in which PyTorch exports them, and as TorchScript.

Forms: D, what torch.onnx.export does by default (dynamo, optimized); O, dynamo with optimize=False after train();
LT, the legacy exporter with TrainingMode.TRAINING and without folding; LN, the legacy exporter in inference without
folding. All with a dynamic batch. The legacy exporter is deprecated but is what most files at hand were written with.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from catalogue import EXAMPLES, make_data, make_model

FORMS = ("D", "O", "LT", "LN")
OPSET = 20  # what both exporters write by default or can write

# (network, form): why PyTorch cannot write it.
H_N = "torch.export decomposes a bidirectional LSTM into one whose h_n has the shape [layers, 2 * B, hidden]"
IMPOSSIBLE: dict[tuple[str, str], str] = {("lstm_states", "D"): H_N, ("lstm_states", "O"): H_N}


def _arguments(name: str) -> tuple[torch.Tensor, ...]:
    """The first two samples, in the order of the network's inputs."""
    fields = make_data(name)
    return tuple(torch.from_numpy(fields[key][:2].copy()) for key in EXAMPLES[name].inputs)


def _dynamo(name: str, model: nn.Module, path: Path, optimize: bool) -> None:
    example = EXAMPLES[name]
    batch = torch.export.Dim("batch")
    torch.onnx.export(model, _arguments(name), str(path), dynamo=True, optimize=optimize, verbose=False,
                      input_names=list(example.inputs), output_names=list(example.outputs),
                      dynamic_shapes=tuple({0: batch} for _ in example.inputs))


def _legacy(name: str, model: nn.Module, path: Path, mode: torch.onnx.TrainingMode) -> None:
    example = EXAMPLES[name]
    torch.onnx.export(model, _arguments(name), str(path), dynamo=False, training=mode, do_constant_folding=False,
                      opset_version=OPSET, input_names=list(example.inputs), output_names=list(example.outputs),
                      dynamic_axes={key: {0: "batch"} for key in (*example.inputs, *example.outputs)})


WRITERS: dict[str, Callable[[str, nn.Module, Path], None]] = {
    "D": lambda name, model, path: _dynamo(name, model.eval(), path, optimize=True),
    "O": lambda name, model, path: _dynamo(name, model.train(), path, optimize=False),
    "LT": lambda name, model, path: _legacy(name, model.train(), path, torch.onnx.TrainingMode.TRAINING),
    "LN": lambda name, model, path: _legacy(name, model.eval(), path, torch.onnx.TrainingMode.EVAL),
}


def export(name: str, form: str, folder: Path) -> Path:
    """<folder>/<name>.<form>.onnx, perhaps with external data beside it."""
    path = folder / f"{name}.{form}.onnx"
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # that torchvision is not installed, four times an export
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations of the exporters, the tracer's warnings of constants
        WRITERS[form](name, make_model(name, form), path)
    return path


def script(name: str, folder: Path) -> Path:
    """The TorchScript twin: <folder>/<name>.pt."""
    path = folder / f"{name}.pt"
    torch.jit.script(make_model(name, "pt")).save(str(path))
    return path
