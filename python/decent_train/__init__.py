"""decent-train from Python: export a module, train it, read its run, search, track.

Each function imports what it needs when it is called; the native program needs none of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .checkpoint import Checkpoint as Checkpoint
    from .data import save_data as save_data
    from .exporting.error import ExportError as ExportError
    from .exporting.exporter import export as export
    from .exporting.result import Check as Check
    from .page import Page as Page
    from .page import compare as compare
    from .program import TrainingError as TrainingError
    from .program import main as main
    from .runs import Best as Best
    from .runs import Run as Run
    from .searching.command import search as search
    from .searching.results import Search as Search
    from .tracking.errors import TrackingError as TrackingError
    from .tracking.follow import track as track
    from .training import Stopped as Stopped
    from .training import train as train

# Name -> the module of this package that has it.
_HOMES = {
    "Best": "runs",
    "Check": "exporting.result",
    "Checkpoint": "checkpoint",
    "ExportError": "exporting.error",
    "Page": "page",
    "Run": "runs",
    "Search": "searching.results",
    "Stopped": "training",
    "TrackingError": "tracking.errors",
    "TrainingError": "program",
    "compare": "page",
    "export": "exporting.exporter",
    "main": "program",
    "save_data": "data",
    "search": "searching.command",
    "track": "tracking.follow",
    "train": "training",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
