"""A search for the best values of recipe keys: see `decent_train.search`, and the command decent-sweep."""

from __future__ import annotations

from .command import main as main
from .command import search as search

__all__ = ["main", "search"]
