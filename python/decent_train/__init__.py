"""decent-train from Python: export a module, train it, read its run, search, track.

Each function imports what it needs when it is called; the native program needs none of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .checkpoint import Checkpoint as Checkpoint
    from .data import save_data as save_data
    from .exporting import export as export
    from .exporting_error import ExportError as ExportError
    from .exporting_result import Check as Check
    from .page import Page as Page
    from .page import compare as compare
    from .program import TrainingError as TrainingError
    from .program import main as main
    from .runs import Best as Best
    from .runs import Run as Run
    from .tracking.errors import TrackingError as TrackingError
    from .tracking.follow import track as track
    from .training import Stopped as Stopped
    from .training import train as train

# Name -> the module of this package that has it.
_HOMES = {
    "Best": "runs",
    "Checkpoint": "checkpoint",
    "Page": "page",
    "Run": "runs",
    "Stopped": "training",
    from .search import search as search
    from .searching.results import Search as Search

# Name -> the module of this package that has it.
_HOMES = {
    "Search": "searching.results",
    "Check": "exporting_result",
    "ExportError": "exporting_error",
    "export": "exporting",
    "TrainingError": "program",
    "compare": "page",
    "main": "program",
    "save_data": "data",
    "train": "training",
    "search": "search",
    "track": "tracking.follow",
    "TrackingError": "tracking.errors",
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
