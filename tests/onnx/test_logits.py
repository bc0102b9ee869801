"""Files that end in the Softmax or Sigmoid which the loss applies itself: the loss is given the logits before it, and the
model that is written computes what the file does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from onnx import NodeProto, TensorProto, helper, numpy_helper

from one_batch import FIXTURES, check_gradients, check_training, make_data, output_of, settings, train_and_export
from program import run_alone
from runs import Run, assert_says, merged, train, write_recipe
from tensors import write_safetensors

KERAS = FIXTURES / "keras_softmax.onnx"
NOTE = "is given the logits before"


def node(op: str, inputs: list[str], output: str, **attributes: object) -> NodeProto:
    return helper.make_node(op, inputs, [output], name=op.lower() if output in "yp" else "", **attributes)


def model(path: Path, end: list[NodeProto], outputs: tuple[str, ...] = ("y",), shape: tuple[int, ...] = (4,),
          opset: int = 17) -> Path:
    """z = x W + b along the last dimension, to 3 numbers, and `end`."""
    rng = np.random.default_rng(0)
    tensors = {"W": rng.standard_normal((4, 3)), "b": rng.standard_normal(3), "most": np.array(0.9), "least": np.array(0.0),
               "one": np.array(1.0)}
    initializers = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in tensors.items()]
    initializers.append(numpy_helper.from_array(np.array([-1, 3]), "shape"))
    nodes = [node("MatMul", ["x", "W"], "a"), node("Add", ["a", "b"], "z"), *end]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *shape])],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
                              initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


def logits_of(file: Path, x: np.ndarray) -> torch.Tensor:
    tensors = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in onnx.load(file).graph.initializer}
    return torch.from_numpy(x.astype(np.float64) @ tensors["W"] + tensors["b"])


def log_of(run: Run) -> str:
    return (run.folder / "run.log").read_text()


def test_keras_trains_on_logits(tmp_path: Path) -> None:
    check_gradients(tmp_path / "gradients", KERAS, (4,), "sequential_1/dense_3/BiasAdd:0")
    run = check_training(tmp_path / "training", KERAS, (4,), "Identity:0")
    assert_says(log_of(run),
                "the loss cross_entropy is given the logits before node 'sequential_1/dense_3/Softmax' (Softmax); "
                "the model that is written gives 'Identity:0' as the file does")
    assert run.ended[0].out.count(NOTE) == 1
    assert run.ended[0].err == ""


def test_what_is_written_gives_probabilities(tmp_path: Path) -> None:
    data, x, _ = make_data(tmp_path, (4,))
    run, trained = train_and_export(tmp_path, settings(KERAS, data, train={"steps": 3}))
    assert [n.op_type for n in onnx.load(trained).graph.node] == [n.op_type for n in onnx.load(KERAS).graph.node]
    module = torch.jit.load(str(run.folder / "model.pt"))
    with torch.no_grad():
        for each in (module, torch.jit.freeze(module.eval())):
            np.testing.assert_allclose(each(torch.from_numpy(x)).sum(1), 1, atol=1e-6)


def test_evaluation_is_of_logits(tmp_path: Path) -> None:
    file = model(tmp_path / "m.onnx", [node("Softmax", ["z"], "y")])
    data, x, y = make_data(tmp_path, (4,))
    config = write_recipe(tmp_path, settings(file, data, eval={"metrics": ["accuracy"]}))
    ended = run_alone("--config", config, "--eval-only", "--checkpoint", "none", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert_says(ended.out, NOTE)
    logits, classes = logits_of(file, x), torch.from_numpy(y)
    assert_says(ended.out, f"loss {F.cross_entropy(logits, classes):.4f}",
                f"accuracy {(logits.argmax(1) == classes).double().mean():.2%}")


def test_dry_run_says_it(tmp_path: Path) -> None:
    data, _, _ = make_data(tmp_path, (4,))
    ended = run_alone("--config", write_recipe(tmp_path, settings(KERAS, data)), "--dry-run", cwd=tmp_path)
    assert_says(ended.out, "note: the loss cross_entropy " + NOTE)


ENDS = {
    "plain": ([node("Softmax", ["z"], "y")], 17),
    "over_dimension_1": ([node("Softmax", ["z"], "y", axis=1)], 17),
    "identity": ([node("Softmax", ["z"], "p"), node("Identity", ["p"], "y")], 17),
    "cast": ([node("Softmax", ["z"], "p"), node("Cast", ["p"], "y", to=TensorProto.DOUBLE)], 17),
    "reshape": ([node("Softmax", ["z"], "p"), node("Reshape", ["p", "shape"], "q"), node("Identity", ["q"], "y")], 17),
    "transposed_twice": ([node("Transpose", ["z"], "t"), node("Softmax", ["t"], "p", axis=0),
                          node("Transpose", ["p"], "y")], 17),
    "flattening": ([node("Softmax", ["z"], "y")], 11),
}


@pytest.mark.parametrize("name", ENDS)
def test_logits_are_found(name: str, tmp_path: Path) -> None:
    end, opset = ENDS[name]
    file = model(tmp_path / "m.onnx", end, opset=opset)
    if name == "cast":
        loaded = onnx.load(file)
        loaded.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
        onnx.save(loaded, file)
    data, x, y = make_data(tmp_path, (4,))
    run, trained = train_and_export(tmp_path, settings(file, data, train={"steps": 2}))
    assert_says(log_of(run), NOTE)
    expected = F.cross_entropy(logits_of(file, x), torch.from_numpy(y))
    np.testing.assert_allclose(run.losses[0], expected, rtol=1e-6)  # float32
    module = torch.jit.load(str(run.folder / "model.pt"))
    with torch.no_grad():
        np.testing.assert_allclose(module(torch.from_numpy(x)), output_of(trained, "y", x), rtol=1e-5)


def test_classes_in_dimension_1(tmp_path: Path) -> None:
    """[n, positions, classes] -> Softmax -> [n, classes, positions], as tf2onnx writes images."""
    file = model(tmp_path / "m.onnx", [node("Softmax", ["z"], "p"), node("Transpose", ["p"], "y", perm=[0, 2, 1])],
                 shape=(5, 4))
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((16, 5, 4)).astype(np.float32), rng.integers(0, 3, (16, 5))
    write_safetensors(tmp_path / "data.safetensors", {"x": x, "y": y})
    run = train(tmp_path, settings(file, tmp_path / "data.safetensors", model={"class_dim": 1}, train={"steps": 1}))
    assert_says(log_of(run), NOTE)
    expected = F.cross_entropy(logits_of(file, x).transpose(1, 2), torch.from_numpy(y))
    np.testing.assert_allclose(run.losses[0], expected, rtol=1e-6)


WITHOUT_LOGITS = {
    "another_dimension": ([node("Softmax", ["z"], "y", axis=0)], "'softmax' (Softmax), which is not over dimension -1"),
    "clipped": ([node("Softmax", ["z"], "p"), node("Clip", ["p", "least", "most"], "y")], "and Clip after it"),
    "scaled": ([node("Softmax", ["z"], "p"), node("Mul", ["p", "most"], "y")], "and Mul after it"),
    "joined": ([node("Slice", ["z", "from", "to", "axis"], "s"), node("Sigmoid", ["s"], "p"), node("Sub", ["one", "p"], "q"),
                node("Concat", ["q", "p"], "y", axis=1)], "is probabilities already (numbers >= 0 that sum to 1"),
}


@pytest.mark.parametrize("name", WITHOUT_LOGITS)
def test_warning_where_there_are_no_logits(name: str, tmp_path: Path) -> None:
    end, said = WITHOUT_LOGITS[name]
    file = model(tmp_path / "m.onnx", end)
    if name == "joined":
        loaded = onnx.load(file)
        for key, value in (("from", 0), ("to", 1), ("axis", 1)):
            loaded.graph.initializer.append(numpy_helper.from_array(np.array([value]), key))
        onnx.save(loaded, file)
    data, x, y = make_data(tmp_path, (4,))
    write_safetensors(data, {"x": x, "y": y % 2})
    run = train(tmp_path, settings(file, data, train={"steps": 1}))
    assert_says(run.ended[0].err, "warning: ", said, "remove the softmax from the model, or use loss nll")
    assert len(run.ended[0].err.splitlines()) == 1
    assert NOTE not in run.ended[0].out
    output = torch.from_numpy(output_of(file, "y", x)).double()
    np.testing.assert_allclose(run.losses[0], F.cross_entropy(output, torch.from_numpy(y % 2)), rtol=1e-5)
    ended = run_alone("--config", tmp_path / "recipe.yaml", "--dry-run", cwd=tmp_path)
    assert_says(ended.out, "warning: ", said)


@pytest.mark.parametrize(("end", "loss"), [
    ([node("LogSoftmax", ["z"], "y")], "cross_entropy"),
    ([node("LogSoftmax", ["z"], "y")], "nll"),
    ([node("Softmax", ["z"], "p"), node("Log", ["p"], "y")], "cross_entropy"),
    ([node("Identity", ["z"], "y")], "cross_entropy"),
])
def test_nothing_changes_otherwise(end: list[NodeProto], loss: str, tmp_path: Path) -> None:
    file = model(tmp_path / "m.onnx", end)
    data, x, y = make_data(tmp_path, (4,))
    run = train(tmp_path, settings(file, data, model={"loss": loss}, train={"steps": 1}))
    assert run.ended[0].err == "" and NOTE not in log_of(run)
    output = torch.from_numpy(output_of(file, "y", x)).double()
    function = F.nll_loss if loss == "nll" else F.cross_entropy
    np.testing.assert_allclose(run.losses[0], function(output, torch.from_numpy(y)), rtol=1e-5)


def binary_data(folder: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((16, 4)).astype(np.float32), rng.integers(0, 2, (16, 3)).astype(np.float32)
    write_safetensors(folder / "data.safetensors", {"x": x, "y": y})
    return folder / "data.safetensors", x, y


def test_sigmoid(tmp_path: Path) -> None:
    file = model(tmp_path / "m.onnx", [node("Sigmoid", ["z"], "y")])
    data, x, y = binary_data(tmp_path)
    run, trained = train_and_export(tmp_path, settings(file, data, model={"loss": "bce_with_logits"}, train={"steps": 2}))
    assert_says(log_of(run), "the loss bce_with_logits is given the logits before node 'sigmoid' (Sigmoid)")
    expected = F.binary_cross_entropy_with_logits(logits_of(file, x), torch.from_numpy(y).double())
    np.testing.assert_allclose(run.losses[0], expected, rtol=1e-6)
    module = torch.jit.load(str(run.folder / "model.pt"))
    with torch.no_grad():
        np.testing.assert_allclose(module(torch.from_numpy(x)), output_of(trained, "y", x), rtol=1e-5)


def test_softmax_is_no_sigmoid(tmp_path: Path) -> None:
    file = model(tmp_path / "m.onnx", [node("Softmax", ["z"], "y")])
    data, _, _ = binary_data(tmp_path)
    run = train(tmp_path, settings(file, data, model={"loss": "bce_with_logits"}, train={"steps": 1}))
    assert_says(run.ended[0].err, "warning: ", "(Softmax)", "the loss bce_with_logits takes the sigmoid of it once more")


@pytest.mark.parametrize("choice", ["y", 1])
def test_one_of_several_outputs(choice: str | int, tmp_path: Path) -> None:
    """Another output is made of the probabilities, and stays what it is."""
    file = model(tmp_path / "m.onnx", [node("Softmax", ["z"], "y"), node("Mul", ["y", "y"], "squares")],
                 ("squares", "y", "z"))
    data, x, y = make_data(tmp_path, (4,))
    run, trained = train_and_export(tmp_path, settings(file, data, model={"output": choice}, train={"steps": 2}))
    assert_says(log_of(run), NOTE, "gives 'y' as the file does")
    expected = F.cross_entropy(logits_of(file, x), torch.from_numpy(y))
    np.testing.assert_allclose(run.losses[0], expected, rtol=1e-6)
    module = torch.jit.load(str(run.folder / "model.pt"))
    with torch.no_grad():
        results = module(torch.from_numpy(x))
    assert results.keys() == {"squares", "y", "z"}
    for name, result in results.items():
        np.testing.assert_allclose(result, output_of(trained, name, x), rtol=1e-4)


def test_mixed_precision(tmp_path: Path) -> None:
    data, x, y = make_data(tmp_path, (4,))
    file = model(tmp_path / "m.onnx", [node("Softmax", ["z"], "p"), node("Identity", ["p"], "y")])
    run = train(tmp_path, settings(file, data, amp={"dtype": "bf16"}, train={"steps": 1}))
    assert_says(log_of(run), NOTE)
    expected = F.cross_entropy(logits_of(file, x), torch.from_numpy(y))
    np.testing.assert_allclose(run.losses[0], expected, rtol=0.02)  # bfloat16 has 8 bits


def test_two_workers(tmp_path: Path) -> None:
    """Each has half of the samples; both train on logits."""
    data, x, y = make_data(tmp_path, (4,))
    file = model(tmp_path / "m.onnx", [node("Softmax", ["z"], "y")])
    run = train(tmp_path, merged(settings(file, data, train={"steps": 3}), {"data": {"batch_size": 8}}), workers=2)
    expected = F.cross_entropy(logits_of(file, x), torch.from_numpy(y))
    np.testing.assert_allclose(run.losses[0], expected, rtol=1e-6)
    assert run.losses[-1] < run.losses[0]


def test_resumed_is_undisturbed(tmp_path: Path) -> None:
    data, _, _ = make_data(tmp_path, (4,))
    whole = train(tmp_path / "whole", settings(KERAS, data, train={"steps": 6}))
    train(tmp_path / "parts", settings(KERAS, data, train={"steps": 3}))
    parts = train(tmp_path / "parts", settings(KERAS, data, train={"steps": 6}), "--resume", "auto")
    assert (parts.folder / "model.safetensors").read_bytes() == (whole.folder / "model.safetensors").read_bytes()
