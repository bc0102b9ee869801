"""Files of Keras (tf2onnx), scikit-learn, JAX and onnxslim, and graphs whose weights are Constant nodes: every weight
trains, by the right gradient, and is written back. make_fixtures.py made the files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper
from onnx.utils import extract_model

from differences import weights_of
from one_batch import FIXTURES, SGD, check_gradients, check_training, make_data, settings, train_and_export
from program import run_alone
from runs import assert_says, attempt, error_message, train, write_recipe

# Those that give logits, and the shapes of their samples.
LOGITS = {"keras_dense": (4,), "keras_cnn": (6, 6, 1), "keras_simple_rnn": (5, 3), "keras_gru": (5, 3),
          "keras_gru_loop": (5, 3), "keras3_gru": (5, 3), "jax_scan": (4,), "torch_slim": (1, 6, 6)}


def outputs(file: Path) -> list[str]:
    return [output.name for output in onnx.load(file).graph.output]


@pytest.mark.parametrize("name", LOGITS)
def test_gradients_are_those_of_finite_differences(name: str, tmp_path: Path) -> None:
    file = FIXTURES / f"{name}.onnx"
    check_gradients(tmp_path, file, LOGITS[name], outputs(file)[0])


@pytest.mark.parametrize("name", LOGITS)
def test_training(name: str, tmp_path: Path) -> None:
    file = FIXTURES / f"{name}.onnx"
    check_training(tmp_path, file, LOGITS[name], outputs(file)[0])


# ---- weights in Constant nodes -------------------------------------------------------------------------------------

def constant(name: str, value: np.ndarray, raw: bool = True) -> onnx.NodeProto:
    values = value.tobytes() if raw else value.ravel()
    tensor = helper.make_tensor("", helper.np_dtype_to_tensor_dtype(value.dtype), value.shape, values, raw=raw)
    return helper.make_node("Constant", [], [name], value=tensor)


def constants_model(path: Path) -> Path:
    """No initializers: weights in raw_data, float_data and value_floats, one of them tied, a mask and a shape."""
    rng = np.random.default_rng(0)

    def weight(*shape: int) -> np.ndarray:
        return rng.uniform(-0.6, 0.6, shape).astype(np.float32)

    nodes = [constant("first.weight", weight(4, 6)), constant("const_2", weight(6), raw=False),
             helper.make_node("Constant", [], ["c"], value_floats=weight(4).tolist()),
             constant("head", weight(4, 3), raw=False), constant("shape", np.array([-1, 4])),
             constant("mask", np.array([0, 0, 0, -1e9], np.float32)),
             constant("half", np.array(0.5, np.float32)),
             helper.make_node("Reshape", ["x", "shape"], ["flat"]),
             helper.make_node("MatMul", ["flat", "first.weight"], ["a"]), helper.make_node("Add", ["a", "const_2"], ["b"]),
             helper.make_node("Tanh", ["b"], ["h"]), helper.make_node("Transpose", ["first.weight"], ["t"], perm=[1, 0]),
             helper.make_node("MatMul", ["h", "t"], ["d"]), helper.make_node("Add", ["c", "d"], ["e"]),
             helper.make_node("Mul", ["e", "half"], ["f"]), helper.make_node("Add", ["f", "mask"], ["g"]),
             helper.make_node("Softmax", ["g"], ["p"]), helper.make_node("MatMul", ["p", "head"], ["logits"])]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


WEIGHTS = {"first.weight", "const_2", "c", "head"}


def test_constant_nodes_train(tmp_path: Path) -> None:
    file = constants_model(tmp_path / "m.onnx")
    check_gradients(tmp_path / "gradients", file, (4,), "logits", weights=WEIGHTS)
    check_training(tmp_path / "training", file, (4,), "logits")


def test_constant_nodes_keep_their_fields(tmp_path: Path) -> None:
    file = constants_model(tmp_path / "m.onnx")
    data, _, _ = make_data(tmp_path, (4,))
    _, trained = train_and_export(tmp_path, settings(file, data, train={"steps": 2}))
    before, after = onnx.load(file).graph.node, onnx.load(trained).graph.node
    for old, new in zip(before, after, strict=True):
        if old.output[0] in WEIGHTS:
            assert old.attribute[0] != new.attribute[0]
            assert len(old.SerializeToString()) == len(new.SerializeToString())
            [(field, _)] = [each for each in new.attribute[0].ListFields() if each[0].name in ("t", "floats")]
            assert old.attribute[0].HasField("t") == (field.name == "t")
            assert old.attribute[0].t.HasField("raw_data") == new.attribute[0].t.HasField("raw_data")
        else:
            assert old == new


def test_constant_nodes_are_written_back_untouched(tmp_path: Path) -> None:
    file = constants_model(tmp_path / "m.onnx")
    data, _, _ = make_data(tmp_path, (4,))
    config = write_recipe(tmp_path, settings(file, data))
    ended = run_alone("--config", config, "--checkpoint", "none", "--export", tmp_path / "out.onnx", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert (tmp_path / "out.onnx").read_bytes() == file.read_bytes()


@pytest.mark.parametrize(("keys", "weights"), [
    ({"freeze": ["c", "head"]}, {"first.weight", "const_2"}),
    ({"unfreeze": ["mask"]}, WEIGHTS | {"mask"}),
])
def test_patterns_name_constant_nodes(keys: dict, weights: set[str], tmp_path: Path) -> None:
    file = constants_model(tmp_path / "m.onnx")
    data, _, _ = make_data(tmp_path, (4,))
    run, trained = train_and_export(tmp_path, settings(file, data, model=keys, train={"steps": 1}, optimizer=SGD))
    start, end = weights_of(file), weights_of(trained)
    moved = {name for name in start if not np.array_equal(start[name], end[name])}
    assert moved == weights
    assert ("mask" in {name for name in run.weights}) == ("mask" in weights)


def test_report_names_constant_nodes(tmp_path: Path) -> None:
    file = constants_model(tmp_path / "m.onnx")
    data, _, _ = make_data(tmp_path, (4,))
    run = train(tmp_path, settings(file, data, train={"steps": 1}))
    assert_says((run.folder / "run.log").read_text(), "trainable: 4 tensors", "first.weight float32[4, 6]: weight of Linear",
                "c float32[4]: bias of Linear", "mask float32[4]: values beyond 1e4", "half float32[]")


def test_unfreeze_says_what_a_constant_node_is(tmp_path: Path) -> None:
    file = constants_model(tmp_path / "m.onnx")
    data, _, _ = make_data(tmp_path, (4,))
    message = error_message(attempt(tmp_path, settings(file, data, model={"unfreeze": ["hed"]})))
    assert_says(message, "'hed' matches no tensor", "did you mean 'head'?")


def test_scan_over_stacked_weights(tmp_path: Path) -> None:
    """The operator Scan with layers' weights as its elements and one that it carries unchanged, in Constant nodes."""
    rng = np.random.default_rng(1)
    body = helper.make_graph(
        [helper.make_node("MatMul", ["h_in", "own"], ["a"]), helper.make_node("Add", ["a", "bias_in"], ["b"]),
         helper.make_node("Tanh", ["b"], ["h_out"]), helper.make_node("Identity", ["bias_in"], ["bias_out"])], "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("h_in", "bias_in", "own")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("h_out", "bias_out")])
    nodes = [constant("layers", rng.uniform(-0.7, 0.7, (3, 4, 4)).astype(np.float32)),
             constant("bias", rng.uniform(-0.7, 0.7, (1, 4)).astype(np.float32)),
             constant("head", rng.uniform(-0.7, 0.7, (4, 3)).astype(np.float32)),
             helper.make_node("Scan", ["x", "bias", "layers"], ["h", "same"], num_scan_inputs=1, body=body),
             helper.make_node("Add", ["h", "same"], ["s"]), helper.make_node("MatMul", ["s", "head"], ["logits"])]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])])
    file = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    check_gradients(tmp_path / "run", file, (4,), "logits")


# ---- tf2onnx: an operator of TensorFlow's that it leaves in the file -------------------------------------------------

def test_erfc_of_tf2onnx(tmp_path: Path) -> None:
    """The GELU of Keras is 0.5 * x * erfc(-x * sqrt(0.5)); onnxruntime has no Erfc, PyTorch has."""
    rng = np.random.default_rng(2)
    first, second = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((4, 6), (6, 3)))
    nodes = [helper.make_node("MatMul", ["x", "first"], ["h"]), helper.make_node("Mul", ["h", "half"], ["halved"]),
             helper.make_node("Neg", ["h"], ["minus"]), helper.make_node("Mul", ["minus", "root"], ["scaled"]),
             helper.make_node("Erfc", ["scaled"], ["tail"]), helper.make_node("Mul", ["halved", "tail"], ["gelu"]),
             helper.make_node("MatMul", ["gelu", "second"], ["logits"])]
    tensors = {"first": first, "second": second, "half": np.float32(0.5), "root": np.float32(np.sqrt(0.5))}
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])],
                              [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in tensors.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8,
                                producer_name="tf2onnx"), tmp_path / "m.onnx")
    data, x, y = make_data(tmp_path, (4,))
    run = train(tmp_path, settings(tmp_path / "m.onnx", data, train={"steps": 4}, optimizer={**SGD, "lr": 0.2}))

    weights = [torch.from_numpy(value).requires_grad_() for value in (first, second)]
    optimizer, losses = torch.optim.SGD(weights, lr=0.2), []
    for _ in range(4):
        optimizer.zero_grad()
        logits = torch.nn.functional.gelu(torch.from_numpy(x) @ weights[0]) @ weights[1]
        loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(y))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_allclose(run.losses, losses, rtol=1e-5)  # float32, the factors in another order


# ---- scikit-learn: a Softmax at the end, and operators of ai.onnx.ml that make the label -----------------------------

MLP = FIXTURES / "sklearn_mlp.onnx"
MLP_LOGITS = "add_result1"


def test_file_of_scikit_learn_as_it_is(tmp_path: Path) -> None:
    chosen = {"output": "probabilities"}
    check_gradients(tmp_path / "gradients", MLP, (4,), MLP_LOGITS, model=chosen)
    run = check_training(tmp_path / "training", MLP, (4,), "probabilities", model=chosen)
    assert_says((run.folder / "run.log").read_text(),
                "output 'label' is left out: operator ai.onnx.ml.ArrayFeatureExtractor")
    session = onnxruntime.InferenceSession(tmp_path / "training" / "trained.onnx")  # gives labels still
    _, x, _ = make_data(tmp_path, (4,))
    labels, probabilities = session.run(["label", "probabilities"], {"X": x})
    np.testing.assert_array_equal(labels, probabilities.argmax(1))


def test_output_by_index_where_others_are_left_out(tmp_path: Path) -> None:
    data, _, _ = make_data(tmp_path, (4,))
    by_index = train(tmp_path / "index", settings(MLP, data, model={"output": 1}, train={"steps": 2}))
    by_name = train(tmp_path / "name", settings(MLP, data, model={"output": "probabilities"}, train={"steps": 2}))
    np.testing.assert_array_equal(by_index.losses, by_name.losses)


def test_file_of_scikit_learn_that_was_cut(tmp_path: Path) -> None:
    cut = tmp_path / "cut.onnx"
    extract_model(str(MLP), str(cut), ["X"], ["probabilities"])
    check_gradients(tmp_path / "gradients", cut, (4,), MLP_LOGITS)
    check_training(tmp_path / "training", cut, (4,), "probabilities")


@pytest.mark.parametrize("keys", [{}, {"output": "label"}])
def test_output_that_needs_another_domain(keys: dict, tmp_path: Path) -> None:
    data, _, _ = make_data(tmp_path, (4,))
    message = error_message(attempt(tmp_path, settings(MLP, data, model=keys)))
    assert_says(message, "sklearn_mlp.onnx", "ai.onnx.ml.ArrayFeatureExtractor")
