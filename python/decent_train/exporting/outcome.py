"""What a module gives for a batch: its outputs, its gradients, its buffers; and how far two of these are apart."""

from __future__ import annotations

import dataclasses
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Call = Callable[[], object]


@dataclass(frozen=True)
class Outcome:
    """All tensors are copies without a graph."""

    outputs: dict[str, Tensor]
    """By key, attribute or number; one output alone is called ""."""
    gradients: dict[str, Tensor | None]
    """By name of the parameter, of those that require a gradient: of the sum of all outputs, each element of which has
    a weight of its own. Empty in evaluation."""
    buffers: dict[str, Tensor]
    """After forward."""


def outcome_of(module: nn.Module, call: Call, seed: int, gradients: bool,
               visit: Callable[[dict[str, Tensor]], None] = lambda outputs: None) -> Outcome:
    """Calls `call`, which runs the module, with the random generators at `seed`. `visit` gets the outputs with their
    graph.
    """
    seed_all(seed)
    with torch.set_grad_enabled(gradients):
        outputs = dict(named_outputs(call()))
        visit(outputs)
    slopes = gradients_of(module, weighted_sum(outputs)) if gradients else {}
    return Outcome({name: _copy(each) for name, each in outputs.items()}, slopes,
                   {name: _copy(buffer) for name, buffer in module.named_buffers(remove_duplicate=False)})


def named_outputs(result: object, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors of a result, in order: of mappings by key, of dataclasses by field, of lists and tuples by number."""
    if isinstance(result, Tensor):
        yield name, result
        return
    parts: Iterator[tuple[object, object]] | list[tuple[object, object]] = []
    if isinstance(result, Mapping):
        parts = list(result.items())
    elif dataclasses.is_dataclass(result) and not isinstance(result, type):
        parts = [(field.name, getattr(result, field.name)) for field in dataclasses.fields(result)]
    elif isinstance(result, (list, tuple)):
        parts = list(enumerate(result))
    for key, part in parts:
        yield from named_outputs(part, f"{name}.{key}" if name else str(key))


def gradients_of(module: nn.Module, loss: Tensor | None) -> dict[str, Tensor | None]:
    """By name of the parameter; None for those on which the loss does not depend."""
    parameters = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    if loss is None or not loss.requires_grad or not parameters:
        return dict.fromkeys(parameters)
    slopes = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    return {name: None if slope is None else _copy(slope) for name, slope in zip(parameters, slopes)}


def weighted_sum(outputs: Mapping[str, Tensor]) -> Tensor | None:
    """Sum of all elements of the floating-point outputs, times random numbers that are always the same."""
    generator, total = torch.Generator().manual_seed(1), None
    for output in outputs.values():
        weights = torch.randn(output.shape, generator=generator).to(output.device, torch.float32)
        if output.requires_grad and output.is_floating_point():
            part = (output.to(torch.promote_types(output.dtype, torch.float32)) * weights).sum()
            total = part if total is None else total + part
    return total


def seed_all(seed: int) -> None:
    """The generators of PyTorch, Python and NumPy."""
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def difference(ours: Tensor, expected: Tensor, floor: float = 0.0) -> float:
    """Norm of the difference, relative to that of `expected` or to `floor`, whichever is larger. Infinite if shapes or
    types differ, or if other elements are NaN or infinite.
    """
    if ours.shape != expected.shape or ours.dtype != expected.dtype:
        return float("inf")
    a, b = ours.detach().cpu(), expected.detach().cpu()
    if not a.is_floating_point() and not a.is_complex():
        return 0.0 if torch.equal(a, b) else float("inf")
    finite = b.isfinite()
    if not torch.equal(a.isfinite(), finite) or not torch.equal(a[~finite].nan_to_num(), b[~finite].nan_to_num()):
        return float("inf")
    wide = torch.complex128 if a.is_complex() else torch.float64
    a, b = a[finite].to(wide), b[finite].to(wide)
    apart = float((a - b).norm())
    return apart / max(float(b.norm()), floor) if apart > 0 else 0.0


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()
