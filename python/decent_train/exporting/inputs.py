"""The example of an export: which tensors forward takes, under which names, in batches of any size."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from .error import ExportError


Inputs = Tensor | Sequence[Tensor] | Mapping[str, Tensor]


@dataclass(frozen=True)
class Example:
    """Inputs of forward. Dimension 0 of each is the batch, of the same size in all."""

    args: tuple[Tensor, ...]
    kwargs: dict[str, Tensor]
    signature: inspect.Signature
    """Of forward."""

    @staticmethod
    def of(module: nn.Module, inputs: Inputs) -> Example:
        """Inputs as export() takes them. Raises ExportError if forward does not take them or if they have no batch."""
        args, kwargs = _split(inputs)
        signature = inspect.signature(module.forward)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ExportError(f"example_inputs do not fit forward{signature}: {error}") from None
        example = Example(args, kwargs, signature)
        example._check()
        return example

    @property
    def tensors(self) -> dict[str, Tensor]:
        """By name, in the order in which files list them. The inputs of `*args` are args_0, args_1, .."""
        names: list[str] = []
        for name, value in self._bound().items():
            kind = self.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                names += [f"{name}_{i}" for i in range(len(value))]
            elif kind is not inspect.Parameter.VAR_KEYWORD and name not in self.kwargs:
                names.append(name)
        return {**dict(zip(names, self.args, strict=True)), **self.kwargs}

    @property
    def batch(self) -> int:
        return int(next(iter(self.tensors.values())).shape[0])

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Example:
        return replace(self, args=tuple(map(change, self.args)),
                       kwargs={name: change(tensor) for name, tensor in self.kwargs.items()})

    def sized(self, batch: int) -> Example:
        """With so many samples: those of the example, from the first one again where it has too few."""
        return self.mapped(lambda tensor: tensor[torch.arange(batch) % tensor.shape[0]])

    def varied(self) -> Example:
        """With random numbers in place of floating-point inputs whose elements are all equal, such as torch.zeros(..):
        on them most gradients would be 0.
        """
        generator = torch.Generator().manual_seed(0)

        def changed(tensor: Tensor) -> Tensor:
            if not tensor.is_floating_point() or tensor.numel() == 0 or (tensor != tensor.flatten()[0]).any():
                return tensor
            noise = torch.randn(tensor.shape, generator=generator).to(tensor.dtype)
            return noise if tensor.flatten()[0] == 0 else tensor * (1 + 0.1 * noise)

        return self.mapped(changed)

    def for_each(self, value: object) -> dict[str, Any]:
        """{argument of forward: value}, nested as torch.export's dynamic_shapes are."""
        def nested(name: str, given: Any) -> object:
            kind = self.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                return tuple(value for _ in given)
            return dict.fromkeys(given, value) if kind is inspect.Parameter.VAR_KEYWORD else value

        return {name: nested(name, given) for name, given in self._bound().items()}

    def _bound(self) -> dict[str, Any]:
        return self.signature.bind(*self.args, **self.kwargs).arguments

    def _check(self) -> None:
        for name, value in [*enumerate(self.args), *self.kwargs.items()]:
            if not isinstance(value, Tensor):
                raise ExportError(f"example_inputs: the input {name!r} is of type {type(value).__name__}, but data are "
                                  "tensors: give other arguments inside a module that calls yours")
        shapes = {name: list(tensor.shape) for name, tensor in self.tensors.items()}
        if not shapes:
            raise ExportError("example_inputs is empty: give a batch of each input of forward")
        if len({tuple(shape[:1]) for shape in shapes.values()}) > 1 or not all(shapes.values()):
            raise ExportError(f"the inputs have the shapes {shapes}, but dimension 0 of each input has to be the "
                              "batch, of the same size in all: keep constants in the module, as buffers")
        if self.batch == 0:
            raise ExportError("example_inputs is a batch of 0 samples: give 2 or more")


def _split(inputs: object) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """Positional arguments and keyword arguments of forward."""
    if isinstance(inputs, Tensor):
        return (inputs,), {}
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, Sequence) and not isinstance(inputs, str):
        return tuple(inputs), {}
    raise ExportError(f"example_inputs is of type {type(inputs).__name__}: give a tensor, a tuple of tensors in the "
                      "order of forward's arguments, or a dictionary {name of the argument: tensor}")
