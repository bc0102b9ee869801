"""LSTM, GRU and RNN of tf2onnx, whose second bias is zeros that stand for none: only the first trains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from differences import Loss, weights_of
from one_batch import SGD, make_data, output_of, settings, train_and_export
from runs import assert_says, train
from tensors import write_safetensors

HIDDEN, LENGTH, FEATURES = 3, 4, 2
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent_model(path: Path, op: str, directions: int = 1, producer: str = "tf2onnx", second: float = 0.0,
                    **attributes: int) -> Path:
    rng = np.random.default_rng(4)
    rows = GATES[op] * HIDDEN

    def around_zero(*shape: int) -> np.ndarray:
        return rng.uniform(-0.7, 0.7, shape).astype(np.float32)

    bias = np.concatenate([around_zero(directions, rows), np.full((directions, rows), second, np.float32)], axis=1)
    tensors = {"W__1": around_zero(directions, rows, FEATURES), "R__2": around_zero(directions, rows, HIDDEN), "B__3": bias,
               "head": around_zero(directions * HIDDEN, 3), "flat": np.array([0, directions * HIDDEN])}
    if directions == 2:
        attributes = {**attributes, "direction": "bidirectional"}
    nodes = [helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
             helper.make_node(op, ["steps", "W__1", "R__2", "B__3"], ["", "last"], name=f"{op}__7", hidden_size=HIDDEN, **attributes),
             helper.make_node("Transpose", ["last"], ["samples"], perm=[1, 0, 2]),
             helper.make_node("Reshape", ["samples", "flat"], ["h"]), helper.make_node("MatMul", ["h", "head"], ["logits"])]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", LENGTH, FEATURES])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])],
                              [numpy_helper.from_array(value, name) for name, value in tensors.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8, producer_name=producer), path)
    return path


def step_of_bias(folder: Path, file: Path) -> tuple[np.ndarray, np.ndarray, str]:
    """What a step with lr 1 takes from the bias, the gradient by finite differences in onnxruntime, and the log."""
    data, x, y = make_data(folder, (LENGTH, FEATURES))
    run, trained = train_and_export(folder, settings(file, data, train={"steps": 1}, optimizer=SGD))
    start, end = weights_of(file), weights_of(trained)
    return start["B__3"] - end["B__3"], Loss(file, "logits", x, y).gradient(start, "B__3"), (run.folder / "run.log").read_text()


@pytest.mark.parametrize(("op", "directions"), [("LSTM", 1), ("LSTM", 2), ("GRU", 1), ("RNN", 2)])
def test_the_second_bias_stays_zero(op: str, directions: int, tmp_path: Path) -> None:
    step, gradient, log = step_of_bias(tmp_path, recurrent_model(tmp_path / "m.onnx", op, directions))
    half = step.shape[1] // 2
    # As in check_gradients: rounding of onnxruntime, divided by h.
    np.testing.assert_allclose(step[:, :half], gradient[:, :half], rtol=0, atol=1e-3 * np.abs(gradient).max())
    assert np.abs(gradient[:, half:]).max() > 0.01  # or there would be nothing to hold back
    np.testing.assert_array_equal(step[:, half:], 0)
    assert_says(log, "recurrent layer of one bias 1", f"bias of {op}")


def test_a_second_bias_from_other_weights_counts(tmp_path: Path) -> None:
    """It does not train, but the model that is written computes what was trained."""
    file = recurrent_model(tmp_path / "m.onnx", "LSTM")
    data, x, _ = make_data(tmp_path, (LENGTH, FEATURES))
    weights = train(tmp_path / "first", settings(file, data, train={"steps": 1})).weights
    [bias] = [name for name, value in weights.items() if value.shape == (1, 2 * GATES["LSTM"] * HIDDEN)]
    loaded = weights[bias].copy()
    loaded[:, GATES["LSTM"] * HIDDEN:] = 0.5
    write_safetensors(tmp_path / "w.safetensors", {**weights, bias: loaded})
    run, trained = train_and_export(tmp_path / "second", settings(file, data, train={"steps": 2}, optimizer=SGD,
                                                                  model={"weights": str(tmp_path / "w.safetensors")}))
    np.testing.assert_array_equal(run.weights[bias][:, GATES["LSTM"] * HIDDEN:], 0.5)
    with torch.no_grad():
        ours = torch.jit.load(str(run.folder / "model.pt"))(torch.from_numpy(x))
    np.testing.assert_allclose(ours.numpy(), output_of(trained, "logits", x), rtol=1e-4, atol=1e-5)  # float32


@pytest.mark.parametrize("case", [{"op": "GRU", "linear_before_reset": 1}, {"op": "LSTM", "producer": "pytorch"},
                                  {"op": "LSTM", "second": 0.1}])
def test_layers_of_two_biases_train_both(case: dict, tmp_path: Path) -> None:
    """Keras' GRU with reset_after has two, and so have PyTorch's layers, whatever their values."""
    step, gradient, log = step_of_bias(tmp_path, recurrent_model(tmp_path / "m.onnx", **case))
    np.testing.assert_allclose(step, gradient, rtol=0, atol=1e-3 * np.abs(gradient).max())
    assert "of one bias" not in log
