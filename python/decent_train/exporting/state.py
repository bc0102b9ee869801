"""Keeps a module, and all that is random, as they were."""

from __future__ import annotations

import random
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import torch
from torch import Tensor, nn

_PLAIN = (bool, int, float, complex, str, type(None))
_CONTAINERS = (list, dict, set, deque, OrderedDict)


class ModuleState:
    """A copy of a module's tensors, modes and attributes, to compare with and to put back."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._tensors = {tensor: tensor.detach().clone() for tensor in (*module.parameters(), *module.buffers())}
        self._flags = {parameter: (parameter.requires_grad, parameter.grad) for parameter in module.parameters()}
        self._attributes = {each: {name: _copied(value) for name, value in vars(each).items()}
                            for each in module.modules()}
        self._originals = {each: dict(vars(each)) for each in module.modules()}

    def restore(self) -> None:
        """Puts all of it back. Tensors stay the same objects, and those that did not change are not written."""
        for module, originals in self._originals.items():
            self._restore_attributes(module, originals)
        with torch.no_grad():
            for tensor, value in self._tensors.items():
                if not _same(tensor, value):
                    tensor.copy_(value)
        for parameter, (requires_grad, grad) in self._flags.items():
            parameter.requires_grad_(requires_grad)
            parameter.grad = grad

    def changed_attributes(self) -> dict[tuple[nn.Module, str], tuple[object, object]]:
        """{(submodule, attribute): (before, now)} of the numbers and texts that are not what they were."""
        return {(module, name): (before.get(name), now)
                for module, before in self._attributes.items()
                for name, now in vars(module).items()
                if name != "training" and isinstance(now, _PLAIN) and isinstance(before.get(name, now), _PLAIN)
                and before.get(name) != now}

    def changed_tensors(self) -> list[tuple[nn.Module, str]]:
        """(submodule, attribute) of the tensors that forward has replaced and that are no parameters or buffers."""
        return [(module, name) for module, before in self._attributes.items() for name, now in vars(module).items()
                if isinstance(now, Tensor) and before.get(name) is not now]

    def _restore_attributes(self, module: nn.Module, originals: dict[str, object]) -> None:
        attributes = vars(module)
        for name in attributes.keys() - originals.keys():
            del attributes[name]
        for name, original in originals.items():
            saved = self._attributes[module][name]
            attributes[name] = original
            if type(original) in _CONTAINERS and not _has_the_same(original, saved):
                _refill(original, saved)


@contextmanager
def unchanged(module: nn.Module) -> Iterator[ModuleState]:
    """The module and the states of the random generators are at the end what they were."""
    state, numpy = ModuleState(module), sys.modules.get("numpy")
    python_state, numpy_state = random.getstate(), numpy.random.get_state() if numpy else None
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() and torch.cuda.is_initialized() else []
    try:
        with torch.random.fork_rng(devices=devices):
            yield state
    finally:
        state.restore()
        random.setstate(python_state)
        if numpy is not None:
            numpy.random.set_state(numpy_state)


def _copied(value: object) -> object:
    return copy(value) if type(value) in _CONTAINERS else value


def _has_the_same(container: object, saved: object) -> bool:
    """The same objects in the same order; tensors in it are not compared."""
    def items(each: Any) -> list[object]:
        return [part for pair in each.items() for part in pair] if isinstance(each, dict) else list(each)

    now, before = items(container), items(saved)
    return len(now) == len(before) and all(a is b for a, b in zip(now, before))


def _refill(container: Any, saved: Any) -> None:
    container.clear()
    container.update(saved) if isinstance(container, (dict, set)) else container.extend(saved)


def _same(tensor: Tensor, value: Tensor) -> bool:
    """Bit for bit, NaN included."""
    if tensor.shape != value.shape or tensor.dtype != value.dtype:
        return False
    plain, saved = tensor.detach().contiguous(), value.contiguous()
    if tensor.numel() == 0 or tensor.is_sparse:
        return tensor.numel() == 0
    return torch.equal(plain.flatten().view(torch.uint8), saved.flatten().view(torch.uint8))
