"""Training in eager PyTorch, spelled out: what decent-train is to follow, on one worker.

The network is put into the state in which the export left it: batch norm that is folded into convolutions is folded
here, weights that were tied and are no more are two, and what the import freezes or finds no more is frozen.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.nn.utils import fusion

from catalogue import EXAMPLES, Example, make_data, make_model
from matching import Match, Tensors, match

OPTIMIZERS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}


@dataclass(frozen=True)
class Imported:
    """What decent-train made of a model file, before training."""

    tensors: Tensors  # parameters and buffers
    trainable: set[str]

    @staticmethod
    def load(module: torch.jit.ScriptModule) -> Imported:
        """Of the model that --checkpoint none --export writes as TorchScript."""
        tensors = {name: tensor.detach().numpy() for name, tensor in module.state_dict().items()}
        return Imported(tensors, {name for name, p in module.named_parameters() if p.requires_grad})


@dataclass(frozen=True)
class Trained:
    losses: np.ndarray  # per step
    evaluation: float  # loss over all samples after the last step
    start: Tensors
    state: Tensors


# ---- the state in which the export left the network ----------------------------------------------------------------

def fold_batch_norm(model: nn.Module) -> nn.Module:
    """Every batch norm that follows a convolution or a linear layer is made part of it."""
    if not any(isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)) for module in model.modules()):
        return model  # perhaps one that fx cannot trace
    graph = fx.symbolic_trace(model)
    modules = dict(graph.named_modules())
    for node in graph.graph.nodes:
        norm = modules.get(node.target) if node.op == "call_module" else None
        if not isinstance(norm, (nn.BatchNorm1d, nn.BatchNorm2d)):
            continue
        before = str(node.args[0].target)
        fuse = fusion.fuse_linear_bn_eval if isinstance(modules[before], nn.Linear) else fusion.fuse_conv_bn_eval
        _replace(model, before, fuse(modules[before].eval(), norm.eval()))
        _replace(model, node.target, nn.Identity())
    return model


def _replace(model: nn.Module, path: str, new: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, new)


def untie(model: nn.Module) -> nn.Module:
    """Every parameter of several names becomes several."""
    seen: set[int] = set()
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            if id(parameter) in seen:
                setattr(module, name, nn.Parameter(parameter.detach().clone()))
            seen.add(id(parameter))
    return model


def as_exported(name: str, form: str) -> nn.Module:
    """D folds batch norm and unties what is tied; the other forms keep everything."""
    model = make_model(name, form)
    return untie(fold_batch_norm(model)) if form == "D" else model


def state_of(model: nn.Module) -> Tensors:
    """Parameters and floating-point buffers, tied ones once."""
    named = [*model.named_parameters(), *((k, b) for k, b in model.named_buffers() if b.is_floating_point())]
    return {name: tensor.detach().numpy().copy() for name, tensor in named}


def follow(name: str, form: str, model: nn.Module, imported: Imported) -> Match:
    """Starts `model` where the import starts, with the same parameters trained: all but what the catalogue calls lost.
    """
    if form == "LT":  # tracing in training mode has moved the running statistics
        _take_statistics(model, imported)
    found = match(imported.tensors, state_of(model))
    parameters = dict(model.named_parameters())
    for key, own in found.close.items():  # folded by the exporter in its own rounding
        _assign(parameters[own], found, key, imported.tensors[key])
    for key, parameter in parameters.items():
        trained = sum(count for own, count in found.of(key).items() if own in imported.trainable)
        assert trained in (0, parameter.numel()), f"{key}: {trained} of {parameter.numel()} elements are trained"
        parameter.requires_grad_(trained > 0)
    frozen = {key for key, parameter in parameters.items() if not parameter.requires_grad}
    assert frozen == set(EXAMPLES[name].lost.get(form, ()))
    return found


@torch.no_grad()
def _take_statistics(model: nn.Module, imported: Imported) -> None:
    for name, buffer in model.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            buffer.copy_(torch.from_numpy(imported.tensors[name].copy()))


@torch.no_grad()
def _assign(parameter: Tensor, found: Match, name: str, values: np.ndarray) -> None:
    places = found.places[name].ravel()
    flat = parameter.view(-1)
    flat[torch.from_numpy(places - places.min())] = torch.from_numpy(values.ravel().copy())


# ---- training ------------------------------------------------------------------------------------------------------

def lr_at(t: int, steps: int, lr: float, schedule: dict) -> float:
    """Learning rate of update t = 1, 2, ..; eta_min and warmup_decay are the recipe's defaults."""
    if schedule["name"] == "constant":
        return lr
    warmup, eta_min, decay = schedule["warmup_steps"], 1e-6, 0.01
    if t - 1 < warmup:
        return lr * (decay + (1 - decay) * (t - 1) / warmup)
    return eta_min + (lr - eta_min) * (1 + math.cos(math.pi * (t - 1 - warmup) / (steps - warmup))) / 2


def make_optimizer(model: nn.Module, found: Match, settings: dict) -> torch.optim.Optimizer:
    """Tensors of fewer than two dimensions do not decay. It is the file's dimensions that count: packed biases of
    recurrent layers and reshaped scales have more than eager's.
    """
    options = dict(settings)
    kind, decay = OPTIMIZERS[options.pop("name")], options.pop("weight_decay")
    groups: dict[bool, list[Tensor]] = {True: [], False: []}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            dims = {found.places[own].ndim >= 2 for own in found.of(name)}
            assert len(dims) == 1, f"{name} is in tensors that decay and in tensors that do not"
            groups[dims.pop()].append(parameter)
    return kind([{"params": groups[True], "weight_decay": decay}, {"params": groups[False], "weight_decay": 0.0}],
                **options)


def loss_of(example: Example, output: Tensor | tuple[Tensor, ...], y: Tensor) -> Tensor:
    if isinstance(output, tuple):
        output = output[example.outputs.index(example.model["output"])]
    if example.loss == "mse":
        return F.mse_loss(output, y)
    if example.loss == "bce_with_logits":
        return F.binary_cross_entropy_with_logits(output, y)
    if example.model.get("class_dim", -1) == -1:
        return F.cross_entropy(output.flatten(0, -2), y.flatten())
    return F.cross_entropy(output, y)


def train(name: str, model: nn.Module, found: Match, optimizer: dict, schedule: dict) -> Trained:
    """As many updates as are compared, the data in order; an epoch drops what is left."""
    example = EXAMPLES[name]
    steps = example.steps_of(optimizer["name"])
    fields = {key: torch.from_numpy(array) for key, array in make_data(name).items()}
    start, updates = state_of(model), make_optimizer(model, found, optimizer)
    per_epoch = len(fields["y"]) // example.batch_size
    losses = []
    for t in range(1, steps + 1):
        first = (t - 1) % per_epoch * example.batch_size
        rows = slice(first, first + example.batch_size)
        model.train()
        loss = loss_of(example, model(*(fields[key][rows] for key in example.inputs)), fields["y"][rows])
        loss.backward()
        losses.append(loss.item())
        for group in updates.param_groups:
            group["lr"] = lr_at(t, steps, optimizer["lr"], schedule)
        updates.step()
        updates.zero_grad()
    return Trained(np.array(losses), _evaluate(example, model, fields), start, state_of(model))


@torch.no_grad()
def _evaluate(example: Example, model: nn.Module, fields: dict[str, Tensor]) -> float:
    output = copy.deepcopy(model).eval()(*(fields[key] for key in example.inputs))
    return loss_of(example, output, fields["y"]).item()
