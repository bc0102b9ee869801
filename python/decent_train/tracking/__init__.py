"""decent-track: sends the figures, settings and models of runs to the tracker that people use (docs/track.md).

A run is only read, never written to. How much of it a tracker holds is asked of the tracker itself, so that a tracking
process that was killed goes on without a line lost or sent twice.
"""

from __future__ import annotations

from .command import main as main
from .follow import track as track

__all__ = ["main", "track"]
