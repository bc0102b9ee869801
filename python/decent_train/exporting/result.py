"""What an export has checked and lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Check:
    """A written file that trains as its module does. `print(check)` says what was checked, what the file does not hold,
    and what to do about it.
    """

    path: Path
    """The file. Its ending differs from the one that was asked for if TorchScript took the place of torch.export."""
    format: str
    """"torch.export", "torch.export, a program for each mode", "TorchScript", "TorchScript, traced" or "ONNX"."""
    checked: tuple[str, ...] = ()
    """What was compared with the module, with the largest difference."""
    notes: tuple[str, ...] = ()
    """What was changed or lost on the way, and what to do. Empty if there is nothing to know."""
    recipe: dict[str, object] = field(default_factory=dict)
    """The recipe's section `model` for this file; `loss` and `target` are in it if the module returns its own loss."""
    largest_difference: float = 0.0
    """Of outputs, gradients and buffers in both modes: the norm of the difference, relative to the module's own."""

    def __str__(self) -> str:
        lines = [f"{self.path} ({self.format})"]
        lines += [f"  checked: {each}" for each in self.checked]
        lines += [f"  note: {each}" for each in self.notes]
        return "\n".join(lines)

    __repr__ = __str__
