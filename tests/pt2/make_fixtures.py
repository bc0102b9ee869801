"""Makes fixtures/*.pt2: small programs as torch.export of several versions of PyTorch writes them.

Each version has an environment of its own, which no test needs; the version is part of the names:

    python make_fixtures.py

The fixtures were made with torch 2.11.0 and 2.15.0. Where code stood is left out of them, as it names folders.
"""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import torch
from torch import nn
from torch.export import Dim, ExportedProgram, export
from torch.export.pt2_archive._package import package_pt2
from torch.utils import _pytree

FOLDER = Path(__file__).resolve().parent / "fixtures"
VERSION = "_".join(torch.__version__.split(".")[:2])

Pair = namedtuple("Pair", ["first", "second"])
_pytree._register_namedtuple(Pair, serialized_type_name="fixtures.Pair")


class Assorted(nn.Module):
    """Arguments and results of many kinds, weights that share memory, tensors that are no parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.head = nn.Linear(4, 6, bias=False)
        self.head.weight = self.embed.weight
        self.norm = nn.BatchNorm1d(4)
        self.left = nn.Linear(4, 4)
        self.right = nn.Linear(4, 4)
        self.register_buffer("rows", self.embed.weight.detach()[2:4].t())  # a view: strides, an offset
        self.register_buffer("scale", torch.tensor([0.5, 2.0, 1.0, 1.0]), persistent=False)

    def forward(self, ids: torch.Tensor, options: dict, *, mask: torch.Tensor | None = None, times: int = 2) -> dict:
        x = self.norm(self.embed(ids).mean(1)) * self.scale
        x = x + torch.tensor([1.0, -1.0, 0.5, 0.0])
        with torch.no_grad():
            shift = x.mean() * times
        x = torch.cond(x.sum() > 0, lambda t: self.left(t), lambda t: self.right(t).relu(), (x,))
        values, places = torch.topk(x[:, torch.tensor([3, 1, 0])], 2)
        bound = torch.full((2,), float("inf"))
        return {"logits": self.head(x + options["bias"]), "pair": Pair(values, places), "rest": [shift, ids.shape[0], None],
                "bound": torch.minimum(values, bound)}


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.linear(x))


def without_places(program: ExportedProgram) -> ExportedProgram:
    for module in program.graph_module.modules():
        for node in module.graph.nodes:
            node.meta.pop("stack_trace", None)
    return program


def make_assorted() -> None:
    batch = Dim("batch", min=2, max=64)
    ids = torch.tensor([[0, 1, 2], [3, 4, 5]])
    options = {"bias": torch.full((4,), 0.25), "unused": [torch.zeros(1), None]}
    program = export(Assorted(), (ids, options), {"times": 3, "mask": None},
                     dynamic_shapes={"ids": {0: batch}, "options": {"bias": None, "unused": [None, None]}, "times": None,
                                     "mask": None})
    torch.export.save(without_places(program), FOLDER / f"assorted_{VERSION}.pt2")


def make_package() -> None:
    model, x = Small(), torch.ones(2, 3)
    programs = {"train": without_places(export(model.train(), (x,))), "eval": without_places(export(model.eval(), (x,)))}
    package_pt2(FOLDER / f"package_{VERSION}.pt2", exported_programs=programs)


if __name__ == "__main__":
    torch.manual_seed(0)
    FOLDER.mkdir(exist_ok=True)
    make_assorted()
    make_package()
    for path in sorted(FOLDER.glob(f"*_{VERSION}.pt2")):
        print(path.name, path.stat().st_size, "bytes")
