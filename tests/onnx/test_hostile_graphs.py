"""Files that the reader takes, but whose graphs are made to do harm, through decent-train: it neither crashes nor hangs,
and what it does not train gets one message.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from costly import COSTLY, WITHIN_BOUNDS, deep_graphs
from hostile import MOST_SECONDS, chain, model, tensor, value, write
from program import ROOT, run_alone
from runs import assert_says, error_message, recipe, write_recipe
from tensors import write_safetensors

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


SMALLEST = -2**63


def quotient(a: int, b: int) -> ModelProto:
    """y = g + a / b, of integers that the import computes."""
    constants = [numpy_helper.from_array(np.array([value]), name) for name, value in (("a", a), ("b", b))]
    return model([PRODUCT, helper.make_node("Div", ["a", "b"], ["c"]),
                  helper.make_node("Cast", ["c"], ["d"], to=TensorProto.FLOAT), helper.make_node("Add", ["g", "d"], ["y"])],
                 [WEIGHT, *constants])


def of_image(*nodes: NodeProto, opset: int = 18) -> ModelProto:
    """Nodes from "image", g as [n, 2, 1, 1], to "z", of which y is the row."""
    shape, row = (numpy_helper.from_array(np.array(sizes), name)
                  for name, sizes in (("shape", [-1, 2, 1, 1]), ("row", [0, -1])))
    return model([PRODUCT, helper.make_node("Reshape", ["g", "shape"], ["image"]), *nodes,
                  helper.make_node("Reshape", ["z", "row"], ["y"])], [WEIGHT, shape, row], opset=opset)


def recurrent(width: int) -> ModelProto:
    """An LSTM over one step of g, whose weights are made for so many inputs."""
    constants = [tensor("wx", np.ones([1, 8, width])), tensor("wh", np.ones([1, 8, 2])),
                 *(numpy_helper.from_array(np.array(sizes), name) for name, sizes in (("steps", [1, -1, 2]), ("row", [-1, 2])))]
    return model([PRODUCT, helper.make_node("Reshape", ["g", "steps"], ["s"]),
                  helper.make_node("LSTM", ["s", "wx", "wh"], ["", "h"], hidden_size=2),
                  helper.make_node("Reshape", ["h", "row"], ["y"])], [WEIGHT, *constants])


def attention(keys: int, values: int) -> ModelProto:
    """One query a sample, and so many keys and values for each of 8 samples."""
    constants = [tensor("k", np.ones([8, keys, 2])), tensor("v", np.ones([8, values, 2])),
                 *(numpy_helper.from_array(np.array(sizes), name) for name, sizes in (("q_shape", [8, 1, 2]), ("row", [8, 2])))]
    return model([PRODUCT, helper.make_node("Reshape", ["g", "q_shape"], ["q"]),
                  helper.make_node("Attention", ["q", "k", "v"], ["a"], q_num_heads=1, kv_num_heads=1),
                  helper.make_node("Reshape", ["a", "row"], ["y"])], [WEIGHT, *constants], opset=23)


TRAINED: dict[str, Callable[[], ModelProto]] = {
    "quotient": lambda: quotient(SMALLEST, -1),
    "keys": lambda: attention(3, 3),
    "recurrent": lambda: recurrent(2),
    "no_outputs": lambda: model([helper.make_node("Split", ["shape"], []), helper.make_node("MatMul", ["x", "w"], ["y"])],
                                [WEIGHT, numpy_helper.from_array(np.array([2, 3]), "shape")]),
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
    "quotient": (lambda: quotient(1, 0), "(Div) cannot be computed: RuntimeError: ZeroDivisionError"),
    "groups": (lambda: of_image(helper.make_node("Constant", [], ["s"], value_floats=[1.0, 1.0]),
                                helper.make_node("GroupNormalization", ["image", "s", "s"], ["z"], num_groups=0)),
               "an integer is divided by 0"),
    "block": (lambda: of_image(helper.make_node("DepthToSpace", ["image"], ["z"], blocksize=0)),
              "an integer is divided by 0"),
    "strides": (lambda: of_image(helper.make_node("AveragePool", ["image"], ["z"], kernel_shape=[1, 1], strides=[0, 1],
                                                  auto_pad="SAME_UPPER")),
                "(AveragePool) has 0 in 'strides'; 1 to 2147483647 are"),
    "keys": (lambda: attention(3, 0), "keys and values do not fit together"),
    "recurrent": (lambda: recurrent(0), "weights of other shapes than the input has"),
    "type": (lambda: trained_graph(helper.make_node("Cast", ["g"], ["y"], to=-2**31)), "(Cast) has 'to' = -2147483648"),
    "inputs": (lambda: trained_graph(helper.make_node("LessOrEqual", [], ["y"])), "(LessOrEqual) lacks input 0"),
    "input_left_out": (lambda: trained_graph(helper.make_node("Add", ["g", ""], ["y"])), "(Add) lacks input 1"),
    "one_operand": (lambda: trained_graph(helper.make_node("Equal", ["i"], ["y"]), ("i", 3)), "(Equal) lacks input 1"),
    "attribute": (lambda: trained_graph(helper.make_node("Cast", ["g"], ["y"])), "(Cast) has 'to' = 0"),
    "outputs": (lambda: trained_graph(helper.make_node("Relu", ["g"], ["r", "y"])), "(Relu) does not make its output 1, 'y'"),
    "shape": (lambda: trained_graph(helper.make_node("Conv", ["g", "k"], ["y"]), ("k", np.ones(2, np.float32))),
              "(Conv) has 0 spatial axes; PyTorch has 1 to 3"),
    "elements": (lambda: trained_graph(helper.make_node("Identity", ["t"], ["y"]), ("t", np.array(["text"], object))),
                 "(Identity) reads strings, which PyTorch lacks"),
    "rank": (lambda: trained_graph(helper.make_node("Gather", ["s", "i"], ["y"]), ("s", np.float32(1)), ("i", 0)),
             "(Gather) makes a tensor of -1 dimensions; PyTorch has 0 to 64"),
    "axis_twice": (lambda: trained_graph(helper.make_node("Unsqueeze", ["w", "axes"], ["y"]), ("axes", np.array([3, 3]))),
                   "(Unsqueeze) has an axis twice"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path: Path, name: str) -> None:
    make, said = REFUSED[name]
    assert_says(error_message(dry_run(tmp_path, make())), said)


# What a node of these files lacks once ended the program with a signal.
@pytest.mark.parametrize(("name", "said"), [("null-sizes", "(LessOrEqual) lacks input 0"),
                                            ("null-value", "(Loop) does not make its output 1, 'res_scan'")])
def test_files_that_fuzzing_found(tmp_path: Path, name: str, said: str) -> None:
    found = ROOT / "tests" / "fuzz" / "corpus" / "onnx" / f"{name}.onnx"
    assert_says(error_message(dry_run(tmp_path, found.read_bytes())), "m.onnx", said)


@pytest.mark.parametrize("name", WITHIN_BOUNDS)
def test_absurd_counts_within_bounds(tmp_path: Path, name: str) -> None:
    assert_says(error_message(dry_run(tmp_path, COSTLY[name]())), "m.onnx", "has no weight that the import takes")


def test_graphs_inside_graphs(tmp_path: Path) -> None:
    assert_says(error_message(dry_run(tmp_path, deep_graphs(30))), "has no weight that the import takes")
