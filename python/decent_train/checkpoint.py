"""A checkpoint of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Checkpoint:
    """A folder `checkpoints/step-..` of a run (docs/checkpoints.md). Can be given wherever the path of a checkpoint can."""

    path: Path
    step: int  # updates done
    workers: int  # the workers that trained, with those that were lost
    # Of the evaluation at this step; empty if there was none.
    figures: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __fspath__(self) -> str:
        return str(self.path)

    @staticmethod
    def open(folder: Path) -> Checkpoint:
        """Raises OSError, ValueError or KeyError if the folder has no manifest that can be read."""
        manifest = json.loads((folder / "manifest.json").read_text())
        return Checkpoint(folder, int(manifest["step"]), int(manifest["world_size"]), dict(manifest.get("metrics") or {}))


def checkpoints_in(folder: Path) -> list[Checkpoint]:
    """Those of a folder `checkpoints`, by their steps. One that was removed meanwhile, or cannot be read, is left out."""
    found = []
    for path in folder.glob("step-*"):
        try:
            found.append(Checkpoint.open(path))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return sorted(found, key=lambda each: each.step)
