"""Writes the networks as .onnx in the forms in which PyTorch exports them, as .pt2 (torch.export) and as TorchScript.

Forms: D, what torch.onnx.export does by default (dynamo, optimized); O, dynamo with optimize=False after train();
LT, the legacy exporter with TrainingMode.TRAINING and without folding; LN, the legacy exporter in inference without
folding. PT, torch.export after train(); PE, after eval(). All with a dynamic batch. The legacy exporter is deprecated but is what most files at hand were written with.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from catalogue import EXAMPLES, make_data, make_model

FORMS = ("D", "O", "LT", "LN")
PT2_FORMS = ("PT", "PE")
OPSET = 20  # what both exporters write by default or can write

# (network, form): why PyTorch cannot write it.
H_N = "torch.export decomposes a bidirectional LSTM into one whose h_n has the shape [layers, 2 * B, hidden]"
IMPOSSIBLE: dict[tuple[str, str], str] = {("lstm_states", "D"): H_N, ("lstm_states", "O"): H_N, ("lstm_states", "PT"): H_N,
                                          ("lstm_states", "PE"): H_N}


def _arguments(name: str) -> tuple[torch.Tensor, ...]:
    """The first two samples, in the order of the network's inputs."""
    fields = make_data(name)
    return tuple(torch.from_numpy(fields[key][:2].copy()) for key in EXAMPLES[name].inputs)


@dataclass(frozen=True)
class Exported:
    """A network with what it is called with, in the order of `inputs`, and the names in the file."""

    model: nn.Module
    arguments: tuple[torch.Tensor, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def _dynamo(network: Exported, path: Path, optimize: bool) -> None:
    batch = torch.export.Dim("batch")
    torch.onnx.export(network.model, network.arguments, str(path), dynamo=True, optimize=optimize, verbose=False,
                      input_names=list(network.inputs), output_names=list(network.outputs),
                      dynamic_shapes=tuple({0: batch} for _ in network.inputs))


def _legacy(network: Exported, path: Path, mode: torch.onnx.TrainingMode) -> None:
    torch.onnx.export(network.model, network.arguments, str(path), dynamo=False, training=mode, do_constant_folding=False,
                      opset_version=OPSET, input_names=list(network.inputs), output_names=list(network.outputs),
                      dynamic_axes={key: {0: "batch"} for key in (*network.inputs, *network.outputs)})


def _pt2(network: Exported, path: Path) -> None:
    batch = torch.export.Dim("batch")
    program = torch.export.export(network.model, network.arguments, dynamic_shapes=tuple({0: batch} for _ in network.inputs))
    torch.export.save(program, str(path))


def write(network: Exported, form: str, path: Path) -> None:
    """The network's file in one of FORMS or PT2_FORMS. Puts the network into the form's mode."""
    network.model.train(form in ("O", "LT", "PT"))
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # that torchvision is not installed, four times an export
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations of the exporters, the tracer's warnings of constants
        if form in PT2_FORMS:
            _pt2(network, path)
        elif form in ("D", "O"):
            _dynamo(network, path, optimize=form == "D")
        else:
            _legacy(network, path, torch.onnx.TrainingMode.TRAINING if form == "LT" else torch.onnx.TrainingMode.EVAL)


def export(name: str, form: str, folder: Path) -> Path:
    """<folder>/<name>.<form>.onnx or .pt2; an .onnx file perhaps has external data beside it."""
    path = folder / f"{name}.{form}{'.pt2' if form in PT2_FORMS else '.onnx'}"
    example = EXAMPLES[name]
    write(Exported(make_model(name, form), _arguments(name), example.inputs, example.outputs), form, path)
    return path


def script(name: str, folder: Path) -> Path:
    """The TorchScript twin: <folder>/<name>.pt."""
    path = folder / f"{name}.pt"
    torch.jit.script(make_model(name)).save(str(path))
    return path
