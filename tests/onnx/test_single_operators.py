"""What the node tests leave out, one node at a time: recurrent layers and Resize in all their variants, against
onnxruntime; random numbers; what is refused, and how."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import nodes

ONNX_RUN = Path(os.environ["DECENT_ONNX_RUN"])
Array = NDArray[Any]
RANDOM = np.random.default_rng(0)


def model_of(op: str, inputs: dict[str, Array | None], outputs: int = 1, constants: tuple[str, ...] = (),
             opset: int = 19, **attributes: Any) -> onnx.ModelProto:
    given = {name: value for name, value in inputs.items() if value is not None}
    node = helper.make_node(op, [name if name in given else "" for name in inputs],
                            [f"y{i}" for i in range(outputs)], name="it", **attributes)
    graph = helper.make_graph(
        [node], "one",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
         for name, value in given.items() if name not in constants],
        [helper.make_tensor_value_info(f"y{i}", onnx.TensorProto.FLOAT, None) for i in range(outputs)],
        [numpy_helper.from_array(given[name], name) for name in constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def feed(model: onnx.ModelProto, inputs: dict[str, Array | None]) -> dict[str, Array]:
    return {each.name: value for each in model.graph.input if (value := inputs[each.name]) is not None}


Case = tuple[onnx.ModelProto, dict[str, Array | None]]


def run(folder: Path, cases: list[Case]) -> list[list[Any]]:
    """The outputs of each, by one run of the program."""
    places = [folder / str(i) for i in range(len(cases))]
    for place, (model, inputs) in zip(places, cases, strict=True):
        place.mkdir()
        (place / "model.onnx").write_bytes(model.SerializeToString())
        for i, value in enumerate(feed(model, inputs).values()):
            nodes.write_tensor(place / f"input_{i}.pb", value)
    (folder / "list").write_text("".join(f"{place}\n" for place in places))
    subprocess.run([ONNX_RUN, folder / "list"], check=True)
    for place in places:
        if (place / "error.txt").exists():
            raise RuntimeError((place / "error.txt").read_text())
    return [nodes.read_outputs(place) for place in places]


def expect_as_onnxruntime(folder: Path, cases: list[Case]) -> None:
    for outputs, (model, inputs) in zip(run(folder, cases), cases, strict=True):
        wants = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed(model, inputs))
        for got, want in zip(outputs, wants, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def normal(*shape: int) -> Array:
    return (0.4 * RANDOM.standard_normal(shape)).astype(np.float32)


@pytest.mark.parametrize("op, gates, states", [("LSTM", 4, 2), ("GRU", 3, 1), ("RNN", 1, 1)])
def test_recurrent_layers(tmp_path: Path, op: str, gates: int, states: int) -> None:
    steps, batch, features, hidden = 5, 3, 4, 6
    own = {"LSTM": ["HardSigmoid", "Softsign", "LeakyRelu"], "GRU": ["HardSigmoid", "Elu"], "RNN": ["Relu"]}[op]
    variants = itertools.product(("forward", "reverse", "bidirectional"), *[(False, True)] * 4)
    cases: list[Case] = []
    for direction, full, lengths, clipped, activated in variants:
        directions = 2 if direction == "bidirectional" else 1
        state = normal(directions, batch, hidden) if full else None
        inputs: dict[str, Array | None] = {
            "x": normal(steps, batch, features), "w": normal(directions, gates * hidden, features),
            "r": normal(directions, gates * hidden, hidden), "b": normal(directions, 2 * gates * hidden) if full else None,
            "lengths": np.array([3, 5, 2], np.int32) if lengths else None, "h": state}
        attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
        if op == "LSTM":
            inputs |= {"c": state, "p": normal(directions, 3 * hidden) if clipped else None}
        if op == "GRU":
            attributes["linear_before_reset"] = int(full)
        if clipped:
            attributes["clip"] = 0.25
        if activated:
            attributes["activations"] = own * directions
        cases.append((model_of(op, inputs, states + 1, opset=17, **attributes), inputs))
    expect_as_onnxruntime(tmp_path, cases)


@pytest.mark.parametrize("constants", [("scales", "sizes"), ()], ids=["known", "told when it runs"])
@pytest.mark.parametrize("transform", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize(tmp_path: Path, mode: str, transform: str, constants: tuple[str, ...]) -> None:
    x = normal(2, 3, 5, 6)
    how: list[tuple[str, Array]] = [
        ("scales", np.array([1, 1, 2, 3], np.float32)), ("scales", np.array([1, 1, 0.7, 1.5], np.float32)),
        ("sizes", np.array([2, 3, 8, 4])), ("sizes", np.array([2, 3, 1, 11]))]
    cases: list[Case] = []
    for name, value in how:
        inputs: dict[str, Array | None] = {"x": x, "roi": None, "scales": None, "sizes": None, name: value}
        known = (name,) if name in constants else ()
        model = model_of("Resize", inputs, constants=known, mode=mode, coordinate_transformation_mode=transform,
                         nearest_mode="floor")
        cases.append((model, inputs))
    expect_as_onnxruntime(tmp_path, cases)


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min"])
def test_many_inputs(tmp_path: Path, op: str) -> None:
    """More than are written as one expression. Of two shapes, to be broadcast."""
    inputs: dict[str, Array | None] = {f"x{i}": normal(2, 1 + i % 2 * 4) for i in range(150)}
    expect_as_onnxruntime(tmp_path, [(model_of(op, inputs, opset=13), inputs)])


def test_random_numbers_have_their_distribution(tmp_path: Path) -> None:
    like: dict[str, Array | None] = {"x": np.zeros((50, 400), np.float32)}
    shape = {"shape": [50, 400]}
    drawn: list[tuple[str, dict[str, Array | None], dict[str, Any], float, float]] = [
        ("RandomUniform", {}, {"low": 2.0, "high": 5.0, **shape}, 3.5, 3 / 12 ** 0.5),
        ("RandomUniformLike", like, {}, 0.5, 1 / 12 ** 0.5),
        ("RandomNormal", {}, {"mean": -1.0, "scale": 3.0, **shape}, -1.0, 3.0),
        ("RandomNormalLike", like, {"dtype": onnx.TensorProto.DOUBLE}, 0.0, 1.0),
        ("Multinomial", {"x": np.log(np.array([[0.2, 0.8]], np.float32))}, {"sample_size": 20000}, 0.8, 0.4)]
    outcomes = run(tmp_path, [(model_of(op, inputs, **attributes), inputs) for op, inputs, attributes, _, _ in drawn])
    for (y,), (_, _, _, mean, deviation) in zip(outcomes, drawn, strict=True):
        assert y.size == 20000
        assert abs(y.mean() - mean) < 0.05 * deviation
        assert abs(y.std() - deviation) < 0.05 * deviation


@pytest.mark.parametrize("op, shapes, attributes, message", [
    ("LSTM", [(2, 1, 3), (1, 8, 3), (1, 8, 2)], {"hidden_size": 2, "activations": ["Sigmoid"]},
     "needs 3 activations a direction"),
    ("GRU", [(2, 1, 3), (1, 6, 3), (1, 6, 2)], {"hidden_size": 2, "direction": "sideways"},
     "direction 'sideways'; the specification has forward, reverse and bidirectional"),
    ("GridSample", [(1, 1, 4, 4, 4), (1, 2, 2, 2, 3)], {"mode": "bicubic"},
     "interpolates volumes cubically, which PyTorch does not"),
    ("NegativeLogLikelihoodLoss", [(2, 3), (2,)], {"reduction": "most"},
     "reduction 'most'; the specification has none, mean and sum"),
    ("Resize", [(1, 1, 4, 4)], {"mode": "nearest"}, "has neither scales nor sizes"),
])
def test_refused(tmp_path: Path, op: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any],
                 message: str) -> None:
    inputs: dict[str, Array | None] = {f"x{i}": normal(*shape) for i, shape in enumerate(shapes)}
    with pytest.raises(RuntimeError, match=message):
        run(tmp_path, [(model_of(op, inputs, **attributes), inputs)])
