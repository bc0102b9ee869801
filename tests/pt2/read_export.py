"""Reads written models as their users do, without decent-train: the mean loss of some samples, three times.

For each line of standard input, which has the path of a model and that of its data (.npz) with a tab between them, it prints a line:
a JSON object with "losses" and "random", the operators in the file that draw random numbers, or with "error". The model is a .pt2
file (of two programs: "eval"), an .onnx file or TorchScript.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

BATCH = 8  # that of the run: statistics of a batch are part of what quantization-aware training evaluates
Forward = Callable[[np.ndarray], torch.Tensor]


def exported(path: str) -> tuple[Forward, list[str]]:
    from torch.export.pt2_archive._package import load_pt2

    programs = load_pt2(path).exported_programs
    program = programs["eval"] if "eval" in programs else torch.export.load(path)
    targets = [node.target for module in program.graph_module.modules() if hasattr(module, "graph") for node in module.graph.nodes]
    random = [str(each) for each in targets if str(each).startswith(("aten.rand", "aten.bernoulli"))]
    module = program.module()
    return lambda x: module(torch.from_numpy(x)), random


def onnx(path: str) -> tuple[Forward, list[str]]:
    import onnx as package
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    model = package.load(path)
    package.checker.check_model(model, full_check=True)
    operators = [node.op_type for nodes in (model.graph.node, *(each.node for each in model.functions)) for node in nodes]
    random = [each for each in operators if each.startswith("Random") or each == "Bernoulli"]
    return lambda x: torch.from_numpy(session.run(None, {name: x})[0]), random


def torchscript(path: str) -> tuple[Forward, list[str]]:
    module = torch.jit.load(path)
    return lambda x: module(torch.from_numpy(x)), []


def read(path: str, data: str) -> dict:
    forward, random = {"pt2": exported, "onnx": onnx, "pt": torchscript}[path.rsplit(".", 1)[1]](path)
    with np.load(data) as fields, torch.no_grad():
        x, y = fields["x"], torch.from_numpy(fields["y"])
        outputs = [torch.cat([forward(batch) for batch in np.split(x, len(x) // BATCH)]) for _ in range(3)]
    losses = [F.cross_entropy(each.flatten(0, -2), y.flatten()).item() for each in outputs]
    return {"losses": losses, "random": random}


def main() -> None:
    torch.set_num_threads(1)
    answers = sys.stdout
    sys.stdout = sys.stderr  # of packages that print
    for line in sys.stdin:
        try:
            found = read(*line.rstrip("\n").split("\t"))
        except Exception:
            found = {"error": traceback.format_exc()}
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
