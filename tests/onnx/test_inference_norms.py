"""Batch norms in pieces and in inference form, as Keras on JAX, Flax, TensorFlow graphs that were not folded and PyTorch's
frozen batch norms are written: mean and variance stay, weight and bias train.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

from differences import weights_of
from one_batch import SGD, check_gradients, check_training, make_data, settings, train_and_export
from runs import assert_says

EPS = 1e-3
TINY_VARIANCE = 0.01
NUMBERED = {"mean": "const_2", "variance": "const_3", "weight": "const_4", "bias": "const_5"}
VARIABLES = {each: f"net/batch_normalization/batchnorm/{each}/ReadVariableOp:0" for each in NUMBERED}
MODULE = {each: f"backbone.bn1.{each}" for each in NUMBERED}
node = helper.make_node


def inverse_root(kind: str) -> list[onnx.NodeProto]:
    """1 / sqrt(variance + eps), as `inverse`."""
    if kind == "pow":
        return [node("Add", ["variance", "eps"], ["sum"]), node("Pow", ["sum", "minus_half"], ["inverse"])]
    if kind == "reciprocal":
        return [node("Add", ["variance", "eps"], ["sum"]), node("Sqrt", ["sum"], ["root"]),
                node("Reciprocal", ["root"], ["inverse"])]
    return [node("Add", ["eps", "variance"], ["sum"]), node("Sqrt", ["sum"], ["root"]), node("Div", ["one", "root"], ["inverse"])]


def keras_on_jax() -> list[onnx.NodeProto]:
    """x * scale + (-mean * scale + bias), each constant reshaped first."""
    views = [node("Reshape", [each, "row"], [f"{each}_row"]) for each in ("mean", "variance", "weight", "bias")]
    root = [node("Add", ["variance_row", "eps"], ["sum"]), node("Sqrt", ["sum"], ["root"]), node("Div", ["one", "root"], ["inverse"])]
    return [*views, *root, node("Mul", ["inverse", "weight_row"], ["scale"]), node("Neg", ["mean_row"], ["minus"]),
            node("Mul", ["minus", "scale"], ["product"]), node("Add", ["product", "bias_row"], ["shift"]),
            node("Mul", ["h", "scale"], ["scaled"]), node("Add", ["scaled", "shift"], ["normed"])]


def flax() -> list[onnx.NodeProto]:
    """(x - mean) * (inverse * weight) + bias."""
    return [node("Sub", ["h", "mean"], ["centered"]), *inverse_root("reciprocal"), node("Mul", ["inverse", "weight"], ["scale"]),
            node("Mul", ["centered", "scale"], ["scaled"]), node("Add", ["scaled", "bias"], ["normed"])]


def tensorflow() -> list[onnx.NodeProto]:
    """x * scale + (bias - mean * scale)."""
    return [*inverse_root("reciprocal"), node("Mul", ["inverse", "weight"], ["scale"]), node("Mul", ["h", "scale"], ["scaled"]),
            node("Mul", ["mean", "scale"], ["product"]), node("Sub", ["bias", "product"], ["shift"]),
            node("Add", ["scaled", "shift"], ["normed"])]


def frozen_by_pow() -> list[onnx.NodeProto]:
    """The form of tensorflow() by a power, as PyTorch's rsqrt is after some rewriters."""
    return [*inverse_root("pow"), *tensorflow()[3:]]


def division() -> list[onnx.NodeProto]:
    """(x - mean) / sqrt(variance + eps) * weight + bias, as one writes it."""
    return [node("Sub", ["h", "mean"], ["centered"]), node("Add", ["variance", "eps"], ["sum"]), node("Sqrt", ["sum"], ["root"]),
            node("Div", ["centered", "root"], ["unit"]), node("Mul", ["unit", "weight"], ["scaled"]),
            node("Add", ["scaled", "bias"], ["normed"])]


def negated_mean() -> list[onnx.NodeProto]:
    """(x + -mean) * inverse * weight + bias: the scale comes from two products with the data."""
    return [node("Neg", ["mean"], ["minus"]), node("Add", ["h", "minus"], ["centered"]), *inverse_root("division"),
            node("Mul", ["centered", "inverse"], ["unit"]), node("Mul", ["unit", "weight"], ["scaled"]),
            node("Add", ["scaled", "bias"], ["normed"])]


FORMS = {"keras_on_jax": (keras_on_jax, NUMBERED), "flax": (flax, NUMBERED), "tensorflow": (tensorflow, VARIABLES),
         "frozen_by_pow": (frozen_by_pow, MODULE), "division": (division, MODULE), "negated_mean": (negated_mean, VARIABLES),
         "frozen_of_pytorch": (tensorflow, MODULE)}


def values_of(variance: float | None) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    def around(middle: float, *shape: int) -> np.ndarray:
        return (middle + 0.3 * rng.uniform(-1, 1, shape)).astype(np.float32)
    return {"first": around(0, 4, 6), "second": around(0, 6, 3), "mean": around(0.2, 6), "weight": around(1, 6),
            "bias": around(0, 6), "variance": around(1, 6) if variance is None else np.full(6, variance, np.float32)}


def renamed(nodes: list[onnx.NodeProto], names: dict[str, str]) -> list[onnx.NodeProto]:
    for each in nodes:
        each.input[:] = [names.get(name, name) for name in each.input]
    return nodes


def norm_model(path: Path, form: str, variance: float | None = None) -> tuple[Path, dict[str, str]]:
    """MatMul, the norm, Tanh, MatMul; and how the file calls the norm's tensors."""
    make, names = FORMS[form]
    names = {**names, "first": "const_0", "second": "const_6"}
    nodes = [node("MatMul", ["x", "first"], ["h"]), *make(), node("Tanh", ["normed"], ["t"]),
             node("MatMul", ["t", "second"], ["logits"])]
    scalars = {"eps": np.float32(EPS), "one": np.float32(1), "minus_half": np.float32(-0.5), "row": np.array([1, 6])}
    tensors = [numpy_helper.from_array(np.asarray(value), names.get(name, name))
               for name, value in {**values_of(variance), **scalars}.items()]
    graph = helper.make_graph(renamed(nodes, names), "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path, names


def trained(names: dict[str, str]) -> set[str]:
    return {names[each] for each in ("first", "second", "weight", "bias")}


@pytest.mark.parametrize("form", FORMS)
def test_weight_and_bias_train_and_statistics_stay(form: str, tmp_path: Path) -> None:
    file, names = norm_model(tmp_path / "m.onnx", form)
    check_gradients(tmp_path / "gradients", file, (4,), "logits", weights=trained(names))
    run = check_training(tmp_path / "training", file, (4,), "logits")
    assert_says((run.folder / "run.log").read_text(), "1 batch norm in inference form: mean and variance stay",
                "running variance of a batch norm in inference form", "running mean of a batch norm in inference form")


def losses_of_pytorch(x: np.ndarray, y: np.ndarray, steps: int, lr: float) -> list[float]:
    values = {name: torch.from_numpy(value) for name, value in values_of(TINY_VARIANCE).items()}
    weights = [values[name].requires_grad_() for name in ("first", "second", "weight", "bias")]
    optimizer = torch.optim.SGD(weights, lr=lr)
    losses = []
    for _ in range(steps):
        normed = F.batch_norm(torch.from_numpy(x) @ values["first"], values["mean"], values["variance"], values["weight"],
                              values["bias"], training=False, eps=EPS)
        loss = F.cross_entropy(torch.tanh(normed) @ values["second"], torch.from_numpy(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("form", FORMS)
def test_small_variance_trains_as_in_pytorch(form: str, tmp_path: Path) -> None:
    file, names = norm_model(tmp_path / "m.onnx", form, TINY_VARIANCE)
    data, x, y = make_data(tmp_path, (4,))
    steps, lr = 8, 0.01
    run, written = train_and_export(tmp_path, settings(file, data, train={"steps": steps}, optimizer={**SGD, "lr": lr}))
    # Both compute in float32; the order of the factors of a norm differs, by a rounding or two.
    np.testing.assert_allclose(run.losses, losses_of_pytorch(x, y, steps, lr), rtol=2e-5)
    start, end = weights_of(file), weights_of(written)
    for statistic in ("mean", "variance"):
        np.testing.assert_array_equal(start[names[statistic]], end[names[statistic]])


def test_weight_of_a_convolution_that_is_scaled_at_run_time_is_no_mean(tmp_path: Path) -> None:
    """A norm that goes into the weight before it (as RepVGG and training-aware quantisation write it)."""
    nodes = [node("Add", ["variance", "eps"], ["sum"]), node("Sqrt", ["sum"], ["root"]), node("Div", ["gamma.weight", "root"], ["scale"]),
             node("Mul", ["first.weight", "scale"], ["scaled"]), node("MatMul", ["x", "scaled"], ["h"]),
             node("Mul", ["mean", "scale"], ["product"]), node("Sub", ["gamma.bias", "product"], ["shift"]),
             node("Add", ["h", "shift"], ["normed"]), node("Tanh", ["normed"], ["t"]), node("MatMul", ["t", "second"], ["logits"])]
    names = {"weight": "gamma.weight", "bias": "gamma.bias", "first": "first.weight"}
    tensors = [numpy_helper.from_array(value, names.get(name, name)) for name, value in values_of(None).items()]
    tensors.append(numpy_helper.from_array(np.float32(EPS), "eps"))
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])], tensors)
    file = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    check_gradients(tmp_path / "run", file, (4,), "logits", weights={"gamma.weight", "gamma.bias", "first.weight", "second"})


def test_weights_before_and_after_a_norm_keep_their_biases(tmp_path: Path) -> None:
    """The bias of a layer before the norm is added to the data, not to a constant."""
    file, names = norm_model(tmp_path / "m.onnx", "tensorflow")
    model = onnx.load(file)
    model.graph.initializer.append(numpy_helper.from_array(np.linspace(0.1, 0.6, 6, dtype=np.float32), "const_9"))
    model.graph.node[0].output[0] = "product_of_x"
    model.graph.node.insert(1, node("Add", ["product_of_x", "const_9"], ["h"]))
    onnx.save(model, file)
    check_gradients(tmp_path / "run", file, (4,), "logits", weights=trained(names) | {"const_9"})
