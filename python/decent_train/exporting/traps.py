"""Finds what a module does in Python that no file holds, so that a refusal can name it."""

from __future__ import annotations

import inspect
import linecache
import re
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

_HOOKS = {
    "_forward_hooks": "forward hook",
    "_forward_pre_hooks": "forward pre-hook",
    "_backward_hooks": "backward hook",
    "_backward_pre_hooks": "backward pre-hook",
}
_TORCH = str(Path(torch.__file__).parent)
_HERE = str(Path(__file__).parent)


def hooks_on_gradients(module: nn.Module) -> list[str]:
    """Hooks of the parameters, and backward hooks of the submodules."""
    found = [f"the hook {_where(hook)} on the gradient of the parameter '{name}' (register_hook)"
             for name, parameter in module.named_parameters()
             for hook in (parameter._backward_hooks or {}).values()]
    return found + _module_hooks(module, ("_backward_hooks", "_backward_pre_hooks"))


def hooks_on_forward(module: nn.Module) -> list[str]:
    return _module_hooks(module, ("_forward_hooks", "_forward_pre_hooks"))


def hooks_after_gradients(module: nn.Module) -> list[str]:
    """Hooks that run when a gradient has been added to `.grad`; comparing gradients does not show what they do."""
    return [f"the hook {_where(hook)} of the parameter '{name}' (register_post_accumulate_grad_hook)"
            for name, parameter in module.named_parameters()
            for hook in (getattr(parameter, "_post_accumulate_grad_hooks", None) or {}).values()]


def custom_functions(outputs: Iterable[Tensor]) -> list[str]:
    """The torch.autograd.Functions through which gradients of these outputs go, apart from PyTorch's own."""
    found: dict[str, None] = {}
    seen: set[object] = set()
    ahead = [output.grad_fn for output in outputs if output.grad_fn is not None]
    while ahead:
        node = ahead.pop()
        if node in seen:
            continue
        seen.add(node)
        function = getattr(type(node), "_forward_cls", None)
        if function is not None and not function.__module__.startswith("torch."):
            found[f"the torch.autograd.Function {_where(function)}"] = None
        ahead += [following for following, _ in node.next_functions if following is not None]
    return list(found)


def mode_branches(module: nn.Module) -> list[str]:
    """The places where classes that are not PyTorch's read `self.training`."""
    found: dict[str, None] = {}
    for name, each in module.named_modules():
        if type(each).__module__.startswith("torch."):
            continue
        for line in _lines_with(type(each), r"\bself\.training\b"):
            found.setdefault(f"'self.training' in {type(each).__name__} ({line}), the module '{name}'" if name else
                             f"'self.training' in {type(each).__name__} ({line})")
    return list(found)


@contextmanager
def noting_tensor_hooks() -> Iterator[list[str]]:
    """Collects the calls of Tensor.register_hook in the block."""
    found: list[str] = []
    original = Tensor.register_hook

    def register_hook(tensor: Tensor, hook: object) -> object:
        place = _caller()
        if place is not None:
            found.append(f"the hook {_where(hook)} on the gradient of a tensor (register_hook, {place})")
        return original(tensor, hook)

    Tensor.register_hook = register_hook  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Tensor.register_hook = original  # type: ignore[method-assign]


def name_of(module: nn.Module, part: nn.Module) -> str:
    """"the module 'layer1.0' (Block)"."""
    name = next(name for name, each in module.named_modules() if each is part)
    return f"the module '{name}' ({type(part).__name__})" if name else f"the module ({type(part).__name__})"


def some(things: Iterable[str], most: int = 3) -> str:
    """"a, b, c and 5 more"."""
    all_ = list(things)
    return ", ".join(all_[:most]) + (f" and {len(all_) - most} more" if len(all_) > most else "")


def reason_of(error: BaseException) -> str:
    """The first lines of a long message of PyTorch, with the line of the user's code where it says so."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    constraints = [line.removeprefix("- ").partition(". ")[0] for line in lines if line.startswith("- ")]
    if lines[0].startswith("Constraints violated") and constraints:
        return _shortened("; ".join(constraints))
    if lines[0].startswith("The following operation failed in the TorchScript interpreter"):
        return _shortened(lines[-1].removeprefix("RuntimeError: ").removeprefix("AssertionError: "))
    goes_on = lines[0].endswith(":") and len(lines) > 1 and not lines[1].startswith("File ")
    first = f"{lines[0]} {lines[1]}" if goes_on else lines[0].rstrip(".:")
    places = [place for place in re.findall(r'File "([^"]+)", line (\d+)', text)
              if not place[0].startswith((_TORCH, _HERE, "<"))]
    if not places:
        places = [(frame.filename, str(frame.lineno)) for frame in traceback.extract_tb(error.__traceback__)
                  if not frame.filename.startswith((_TORCH, _HERE, "<"))]
    return _shortened(first) + (f" ({_code(*places[-1])})" if places else "")


def _shortened(text: str, most: int = 300) -> str:
    return text if len(text) <= most else text[:most] + ".."


def _code(file: str, line: str) -> str:
    code = linecache.getline(file, int(line)).strip()
    return f"{Path(file).name}:{line}" + (f": {_shortened(code, 100)}" if code else "")


def _module_hooks(module: nn.Module, kinds: tuple[str, ...]) -> list[str]:
    return [f"the {_HOOKS[kind]} {_where(hook)} of {name_of(module, each)}"
            for each in module.modules() for kind in kinds for hook in getattr(each, kind).values()
            if not getattr(hook, "__module__", None) or not str(hook.__module__).startswith("torch.")]


def _where(thing: object) -> str:
    """"'Reverse' (model.py:12)"."""
    thing = inspect.unwrap(getattr(thing, "func", thing))  # type: ignore[arg-type]
    name = getattr(thing, "__qualname__", type(thing).__qualname__).replace("<locals>.", "")
    try:
        file = inspect.getsourcefile(thing)  # type: ignore[arg-type]
        line = inspect.getsourcelines(thing)[1]  # type: ignore[arg-type]
    except (TypeError, OSError):
        return f"'{name}'"
    return f"'{name}' ({Path(file or '?').name}:{line})"


def _lines_with(kind: type, pattern: str) -> list[str]:
    try:
        lines, first = inspect.getsourcelines(kind)
        file = Path(inspect.getsourcefile(kind) or "?").name
    except (TypeError, OSError):
        return []
    return [f"{file}:{first + i}" for i, line in enumerate(lines) if re.search(pattern, line.partition("#")[0])]


def _caller() -> str | None:
    """The line that called register_hook; None if it is PyTorch's."""
    frame = traceback.extract_stack(limit=3)[0]
    return None if frame.filename.startswith(_TORCH) else f"{Path(frame.filename).name}:{frame.lineno}"
