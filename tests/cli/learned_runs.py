"""For tests of what a run learns of its data: a model whose classes can be seen in it, and runs of older versions."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from damaged import MANIFEST, fields_of, sealed


class Bright(torch.nn.Module):
    """Scores that are highest for the class whose pixel is bright."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(9.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1) * self.scale


def make_old(checkpoint: Path) -> None:
    """As a version saved it whose checkpoints had no data.json."""
    (checkpoint / "data.json").unlink()
    fields = fields_of((checkpoint / MANIFEST).read_bytes())
    assert fields.pop("data")
    (checkpoint / MANIFEST).write_bytes(sealed(json.dumps(fields, indent=1).partition("\n")[2].encode()))


def make_old_run(folder: Path) -> list[str]:
    """As a version left it that had no data.json, but names of classes in classes.json, which it returns."""
    names = json.loads((folder / "data.json").read_text())["train"]["classes"]
    (folder / "data.json").unlink()
    (folder / "classes.json").write_text(json.dumps(names))
    for checkpoint in (folder / "checkpoints").iterdir():
        make_old(checkpoint)
    return names
