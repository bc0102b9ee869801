"""decent-train from Python: export a module, train it, read its run, search, track.

Each function imports what it needs when it is called; the native program needs none of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .exporting import export as export
    from .exporting_error import ExportError as ExportError
    from .exporting_result import Check as Check
    from .program import TrainingError as TrainingError
    from .program import main as main
    from .program import program as program

# Name -> the module of this package that has it.
_HOMES = {
    "Check": "exporting_result",
    "ExportError": "exporting_error",
    "export": "exporting",
    "TrainingError": "program",
    "main": "program",
    "program": "program",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
