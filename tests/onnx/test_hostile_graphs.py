"""Files that the reader takes, but whose graphs are made to do harm, through decent-train: it neither crashes nor hangs,
and what it does not train gets one message.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from hostile import MOST_SECONDS, chain, model, tensor, value
from program import run_alone
from runs import assert_says, error_message, recipe, write_recipe
from tensors import write_safetensors
from test_hostile_files import COSTLY, WITHIN_BOUNDS, deep_graphs, write

MANY = 50_000
WEIGHT = tensor("w", [[1, 2], [3, 4]])
PRODUCT = helper.make_node("MatMul", ["x", "w"], ["g"])


def trained_graph(node: NodeProto, *constants: tuple[str, np.ndarray | int | bool]) -> ModelProto:
    """y is what the node makes of g, a product with the weight."""
    arrays = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants]
    return model([PRODUCT, node], [WEIGHT, *arrays])


def dry_run(folder: Path, made: ModelProto | bytes):
    write_safetensors(folder / "data.safetensors", {"x": np.ones((8, 2), np.float32), "y": np.zeros(8, np.int64)})
    file = write(folder / "m.onnx", made)
    config = write_recipe(folder, recipe(file, folder / "data.safetensors"))
    ended = run_alone("--config", config, "--dry-run", cwd=folder)
    assert ended.seconds < MOST_SECONDS
    return ended


def loop(trips: int) -> ModelProto:
    """Halves g that many times."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["goes_on"], ["still"]), helper.make_node("Mul", ["v", "half"], ["halved"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []), value("v")],
        [helper.make_tensor_value_info("still", TensorProto.BOOL, []), value("halved")])
    return trained_graph(helper.make_node("Loop", ["trips", "yes", "g"], ["y"], body=body),
                         ("trips", trips), ("yes", True), ("half", np.float32(0.5)))


TRAINED: dict[str, Callable[[], ModelProto]] = {
    **{op: lambda op=op: trained_graph(helper.make_node(op, ["g"] * MANY, ["y"])) for op in ("Sum", "Mean", "Max", "Min")},
    "loop": lambda: loop(3),
}


@pytest.mark.parametrize("name", TRAINED)
def test_trains(tmp_path: Path, name: str) -> None:
    assert dry_run(tmp_path, TRAINED[name]()).code == 0


REFUSED: dict[str, tuple[Callable[[], ModelProto], str]] = {
    "loop": (lambda: loop(10**12), "(Loop) runs its body 1000000000000 times; at most 10000000 are imported"),
    "dimensions": (lambda: trained_graph(helper.make_node("Unsqueeze", ["g", "axes"], ["y"]), ("axes", np.arange(MANY))),
                   "(Unsqueeze) adds 50000 dimensions; at most 64 are imported"),
    "nodes": (lambda: chain(30_000), "has 30000 nodes; TorchScript runs up to 20000"),
    "axis": (lambda: trained_graph(helper.make_node("ReduceSum", ["g", "axes"], ["y"]), ("axes", np.arange(MANY))),
             "(ReduceSum) has axis 2 for a tensor of rank 2"),
    "memory": (lambda: trained_graph(helper.make_node("Tile", ["g", "repeats"], ["y"]), ("repeats", np.array([1, 2**40]))),
               "memory"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path: Path, name: str) -> None:
    make, said = REFUSED[name]
    assert_says(error_message(dry_run(tmp_path, make())), said)


@pytest.mark.parametrize("name", WITHIN_BOUNDS)
def test_absurd_counts_within_bounds(tmp_path: Path, name: str) -> None:
    assert_says(error_message(dry_run(tmp_path, COSTLY[name]())), "m.onnx", "has no weight that the import takes")


def test_graphs_inside_graphs(tmp_path: Path) -> None:
    assert_says(error_message(dry_run(tmp_path, deep_graphs(30))), "has no weight that the import takes")
