"""Files that no import can train, as tools make them: quantised, fused by onnxruntime, of classical machine learning, with
custom operators. Each is refused by one message whose way out is tried here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

from one_batch import CLASSES, FIXTURES, make_data, settings, train_and_export
from runs import assert_says, attempt, error_message, train

MLP = FIXTURES / "sklearn_mlp.onnx"
WAY_OUT_OF_QUANTISED = ("its weights are integers, which cannot be trained",
                        "Give model.path the float model that it was made from, as the exporter wrote it")
Made = Callable[[Path], None]


def weight(name: str, *shape: int) -> TensorProto:
    """Other numbers for each name: onnxruntime makes one tensor of those that are equal."""
    return numpy_helper.from_array(np.random.default_rng(list(name.encode())).normal(0, 0.4, shape).astype(np.float32), name)


def save(path: Path, nodes: list[onnx.NodeProto], tensors: list[TensorProto], outputs: tuple[str, ...] = ("logits",),
         shape: tuple[int, ...] = (4,), opset: int = 17, domains: tuple[str, ...] = (), functions=()) -> Path:
    """A graph from x to `outputs`."""
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *shape])],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs], tensors)
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8, functions=functions), path)
    return path


def dense_net(path: Path) -> Path:
    return save(path, [helper.make_node("MatMul", ["x", "a"], ["h"], name="one"), helper.make_node("Relu", ["h"], ["r"]),
                       helper.make_node("MatMul", ["r", "b"], ["logits"], name="two")],
                [weight("a", 4, 8), weight("b", 8, CLASSES)])


def image_net(path: Path) -> Path:
    return save(path, [helper.make_node("Conv", ["x", "kernel", "bias"], ["c"], name="conv"),
                       helper.make_node("Relu", ["c"], ["r"]), helper.make_node("Flatten", ["r"], ["f"]),
                       helper.make_node("Gemm", ["f", "head"], ["logits"], name="head")],
                [weight("kernel", 3, 1, 3, 3), weight("bias", 3), weight("head", 48, CLASSES)], shape=(1, 6, 6))


def normalized_net(path: Path) -> Path:
    """What onnxruntime fuses: a layer norm of several nodes, GELU, a sum before a norm, MatMul and Add."""
    half, root, two, small = (numpy_helper.from_array(np.float32(value), name) for name, value in
                              (("half", 0.5), ("root", np.sqrt(2)), ("two", 2), ("small", 1e-5)))
    one = numpy_helper.from_array(np.float32(1), "one")
    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"]), helper.make_node("Add", ["h", "a_bias"], ["i"]),
             helper.make_node("ReduceMean", ["i"], ["mean"], axes=[-1]), helper.make_node("Sub", ["i", "mean"], ["d"]),
             helper.make_node("Pow", ["d", "two"], ["p"]), helper.make_node("ReduceMean", ["p"], ["v"], axes=[-1]),
             helper.make_node("Add", ["v", "small"], ["w"]), helper.make_node("Sqrt", ["w"], ["s"]),
             helper.make_node("Div", ["d", "s"], ["n"]), helper.make_node("Mul", ["n", "scale"], ["m"]),
             helper.make_node("Add", ["m", "shift"], ["o"]), helper.make_node("MatMul", ["o", "b"], ["q0"]),
             helper.make_node("Add", ["q0", "b_bias"], ["q"]), helper.make_node("Div", ["q", "root"], ["e0"]),
             helper.make_node("Erf", ["e0"], ["e1"]), helper.make_node("Add", ["e1", "one"], ["e2"]),
             helper.make_node("Mul", ["q", "e2"], ["e3"]), helper.make_node("Mul", ["e3", "half"], ["g"]),
             helper.make_node("MatMul", ["g", "c"], ["logits"])]
    tensors = [weight("a", 4, 8), weight("a_bias", 8), weight("scale", 8), weight("shift", 8), weight("b", 8, 8),
               weight("b_bias", 8), weight("c", 8, CLASSES), half, root, two, small, one]
    return save(path, nodes, tensors, opset=13)


def refusal(folder: Path, file: Path, max_lines: int = 5, **model: object) -> str:
    data, _, _ = make_data(folder, (4,))
    return error_message(attempt(folder / "refused", settings(file, data, model=model)), max_lines=max_lines)


# ---- quantised -----------------------------------------------------------------------------------------------------

class Samples(CalibrationDataReader):
    def __init__(self, *shape: int) -> None:
        self.left = [{"x": np.random.default_rng(1).standard_normal((4, *shape)).astype(np.float32)}]

    def get_next(self) -> dict | None:
        return self.left.pop() if self.left else None


def quantised(path: Path, how: str, float_file: Path, shape: tuple[int, ...]) -> Path:
    if how == "dynamic":
        quantize_dynamic(float_file, path)
    else:
        quantize_static(float_file, path, Samples(*shape), quant_format=QuantFormat[how], weight_type=QuantType.QInt8)
    return path


@pytest.mark.parametrize("net", [dense_net, image_net])
@pytest.mark.parametrize(("how", "operators"), [
    ("QDQ", ["DequantizeLinear", "QuantizeLinear"]), ("QOperator", ["DequantizeLinear", "QLinear", "QuantizeLinear"]),
    ("dynamic", ["DynamicQuantizeLinear", "MatMulInteger"]),
])
def test_quantised_by_onnxruntime(net: Made, how: str, operators: list[str], tmp_path: Path) -> None:
    """The way out: the float model trains, and what --export writes of it is quantised."""
    float_file = net(tmp_path / "float.onnx")
    shape = (1, 6, 6) if net is image_net else (4,)
    file = quantised(tmp_path / "quantised.onnx", how, float_file, shape)
    data, x, _ = make_data(tmp_path, shape)
    message = error_message(attempt(tmp_path, settings(file, data)), max_lines=2)
    assert_says(message, "quantised.onnx", "it is quantised", *operators, *WAY_OUT_OF_QUANTISED)
    assert message == error_message(attempt(tmp_path, settings(file, data), "--dry-run"))
    _, trained = train_and_export(tmp_path / "float", settings(float_file, data, train={"steps": 2}))
    again = quantised(tmp_path / "again.onnx", how, trained, shape)
    [logits] = onnxruntime.InferenceSession(again).run(None, {"x": x})
    assert logits.shape == (len(x), CLASSES)


def test_weights_packed_in_four_bits(tmp_path: Path) -> None:
    """MatMulNBits of onnxruntime's own domain, as quantised language models have it: no advice about fused operators."""
    packed = numpy_helper.from_array(np.zeros((3, 1, 2), np.uint8), "packed")
    file = save(tmp_path / "m.onnx", [helper.make_node("MatMulNBits", ["x", "packed", "scales"], ["logits"], K=4, N=3,
                                                       bits=4, block_size=16, domain="com.microsoft")],
                [packed, weight("scales", 3)], domains=("com.microsoft",))
    message = refusal(tmp_path, file, max_lines=2)
    assert_says(message, "it is quantised (MatMulNBits)", *WAY_OUT_OF_QUANTISED)
    assert "optimizer" not in message


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "FLOAT8E4M3FN"])
def test_elements_of_a_quantised_model(kind: str, tmp_path: Path) -> None:
    """Types that hold nothing but quantised numbers are refused where the file is read."""
    narrow = TensorProto(name="w", data_type=getattr(TensorProto, kind), dims=[4, 2], raw_data=b"\0" * 8)
    file = save(tmp_path / "m.onnx", [helper.make_node("DequantizeLinear", ["w", "scale"], ["d"]),
                                      helper.make_node("MatMul", ["x", "d"], ["logits"])],
                [narrow, numpy_helper.from_array(np.float32(1), "scale")], opset=21)
    assert_says(refusal(tmp_path, file, max_lines=2), "'w'", kind.lower(), "of a quantised model", WAY_OUT_OF_QUANTISED[1])


def test_simulated_quantisation(tmp_path: Path) -> None:
    """Of quantisation-aware training: float weights that are rounded on the way."""
    scale, zero = numpy_helper.from_array(np.float32(0.05), "s"), numpy_helper.from_array(np.int8(0), "z")
    file = save(tmp_path / "m.onnx", [helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"]),
                                      helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
                                      helper.make_node("MatMul", ["x", "d"], ["logits"])], [weight("w", 4, 3), scale, zero])
    message = refusal(tmp_path, file, max_lines=2)
    assert_says(message, "it is quantised", "it rounds to integers, and no gradient passes that")
    assert "weights are integers" not in message


# ---- operators of onnxruntime ----------------------------------------------------------------------------------------

def optimized(path: Path, file: Path, level: str) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(file, options)


@pytest.mark.parametrize(("net", "operators"), [
    (image_net, ["FusedConv"]), (normalized_net, ["LayerNormalization", "Gelu"]),
])
def test_optimized_by_onnxruntime(net: Made, operators: list[str], tmp_path: Path) -> None:
    """The way out: the file from before, which trains. LayerNormalization is written as a standard operator, of an opset
    that has none.
    """
    file = net(tmp_path / "net.onnx")
    optimized(tmp_path / "optimized.onnx", file, "EXTENDED")
    data, _, _ = make_data(tmp_path, (1, 6, 6) if net is image_net else (4,))
    message = error_message(attempt(tmp_path, settings(tmp_path / "optimized.onnx", data)), max_lines=2)
    assert_says(message, "optimized.onnx", "it has onnxruntime's own operators (com.microsoft: ", *operators,
                "the file from before the optimisation", "SessionOptions.optimized_model_filepath")
    assert "nearest" not in message
    train(tmp_path / "before", settings(file, data, train={"steps": 2}))


def test_basic_optimization_keeps_what_trains(tmp_path: Path) -> None:
    optimized(tmp_path / "basic.onnx", normalized_net(tmp_path / "net.onnx"), "BASIC")
    data, _, _ = make_data(tmp_path, (4,))
    run = train(tmp_path / "run", settings(tmp_path / "basic.onnx", data, train={"steps": 2}))
    assert set(run.weights) == {"a", "a_bias", "scale", "shift", "b", "b_bias", "c"}


def test_layouts_of_one_kind_of_machine(tmp_path: Path) -> None:
    """ORT_ENABLE_ALL writes convolutions of a domain inside onnxruntime's."""
    nodes = [helper.make_node("ReorderInput", ["x"], ["a"], domain="com.microsoft.nchwc"),
             helper.make_node("MatMul", ["a", "w"], ["logits"])]
    file = save(tmp_path / "m.onnx", nodes, [weight("w", 4, 3)], domains=("com.microsoft.nchwc",))
    assert_says(refusal(tmp_path, file, max_lines=2), "onnxruntime's own operators (com.microsoft: nchwc.ReorderInput)")


def test_fused_operators_of_a_large_model_are_one_message(tmp_path: Path) -> None:
    kinds = ["Attention", "BiasGelu", "EmbedLayerNormalization", "FastGelu", "FusedMatMul", "SkipLayerNormalization"]
    nodes = [helper.make_node(kind, [f"v{i * len(kinds) + j}" if i + j else "x"], [f"v{i * len(kinds) + j + 1}"],
                              domain="com.microsoft") for i in range(50) for j, kind in enumerate(kinds)]
    nodes.append(helper.make_node("MatMul", [nodes[-1].output[0], "w"], ["logits"]))
    file = save(tmp_path / "m.onnx", nodes, [weight("w", 4, 3)], domains=("com.microsoft",))
    assert_says(refusal(tmp_path, file, max_lines=2), "Attention, BiasGelu, EmbedLayerNormalization, FastGelu and 2 more")


# ---- custom operators --------------------------------------------------------------------------------------------------

def custom_net(path: Path, functions=()) -> Path:
    return save(path, [helper.make_node("Twice", ["x"], ["t"], name="twice", domain="my.ops"),
                       helper.make_node("MatMul", ["t", "w"], ["logits"])], [weight("w", 4, CLASSES)],
                domains=("my.ops",), functions=functions)


def test_custom_operators(tmp_path: Path) -> None:
    """The way out: a function of standard operators in the file."""
    message = refusal(tmp_path, custom_net(tmp_path / "m.onnx"), max_lines=2)
    assert_says(message, "custom operators of the domain 'my.ops' (Twice)", "Export the model without them",
                "docs/onnx.md, Custom operators")
    twice = helper.make_function("my.ops", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
                                 [helper.make_opsetid("", 17)])
    data, _, _ = make_data(tmp_path, (4,))
    train(tmp_path / "function", settings(custom_net(tmp_path / "f.onnx", [twice]), data, train={"steps": 2}))


def test_custom_and_standard_operators_are_both_told_of(tmp_path: Path) -> None:
    file = save(tmp_path / "m.onnx", [helper.make_node("Twice", ["x"], ["t"], domain="my.ops"),
                                      helper.make_node("Foo", ["t"], ["u"], domain="ops.of.others"),
                                      helper.make_node("Reluu", ["u"], ["r"], name="act"),
                                      helper.make_node("MatMul", ["r", "w"], ["logits"])], [weight("w", 4, 3)],
                domains=("my.ops", "ops.of.others"))
    assert_says(refusal(tmp_path, file, max_lines=4), "'my.ops' (Twice), 'ops.of.others' (Foo)", "operator Reluu (opset 17)",
                "'act'")


# ---- ai.onnx.ml ------------------------------------------------------------------------------------------------------

def scaler(value: str, result: str) -> onnx.NodeProto:
    return helper.make_node("Scaler", [value], [result], domain="ai.onnx.ml", offset=[0.0] * 4, scale=[1.0] * 4)


def test_classical_model(tmp_path: Path) -> None:
    """A pipeline of scikit-learn: scaling, a linear classifier, a map of names to probabilities."""
    nodes = [scaler("x", "s"),
             helper.make_node("LinearClassifier", ["s"], ["label", "scores"], domain="ai.onnx.ml", coefficients=[0.1] * 12,
                              intercepts=[0.0] * 3, classlabels_ints=[0, 1, 2], multi_class=1, post_transform="SOFTMAX"),
             helper.make_node("Normalizer", ["scores"], ["p"], domain="ai.onnx.ml", norm="L1"),
             helper.make_node("ZipMap", ["p"], ["probabilities"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2])]
    file = save(tmp_path / "m.onnx", nodes, [], outputs=("label", "probabilities"), domains=("ai.onnx.ml",))
    for choice in ({}, {"output": "probabilities"}):
        assert_says(refusal(tmp_path, file, max_lines=2, **choice), "a model of classical machine learning",
                    "(ai.onnx.ml: LinearClassifier, Normalizer, Scaler, ZipMap)", "no weights that gradients reach",
                    "Only neural networks can be trained")


def test_classical_model_of_standard_operators(tmp_path: Path) -> None:
    """Naive Bayes: means and deviations in tensors, which are no layers."""
    nodes = [helper.make_node("Sub", ["x", "mean"], ["d"]), helper.make_node("Div", ["d", "deviation"], ["q"]),
             helper.make_node("Add", ["q", "prior"], ["s"]),
             helper.make_node("ZipMap", ["s"], ["probabilities"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2, 3])]
    file = save(tmp_path / "m.onnx", nodes, [weight("mean", 4), weight("deviation", 4), weight("prior", 4)],
                outputs=("probabilities",), domains=("ai.onnx.ml",))
    assert_says(refusal(tmp_path, file, max_lines=2), "a model of classical machine learning (ai.onnx.ml: ZipMap)")


def test_network_behind_a_scaler(tmp_path: Path) -> None:
    nodes = [scaler("x", "s"), helper.make_node("MatMul", ["s", "w"], ["logits"])]
    file = save(tmp_path / "m.onnx", nodes, [weight("w", 4, 3)], domains=("ai.onnx.ml",))
    message = refusal(tmp_path, file, max_lines=2)
    assert_says(message, "besides a neural network", "(ai.onnx.ml: Scaler)", "Convert the network by itself")


# ---- what other outputs need ---------------------------------------------------------------------------------------------

def test_output_that_can_be_trained_is_named(tmp_path: Path) -> None:
    """Its label needs ai.onnx.ml, its probabilities do not."""
    for choice in ({}, {"output": "label"}):
        message = refusal(tmp_path, MLP, max_lines=2, **choice)
        assert_says(message, "what its output 'label' needs is not supported (operator ai.onnx.ml.ArrayFeatureExtractor)",
                    "model.output: probabilities chooses an output that does without")
    data, _, _ = make_data(tmp_path, (4,))
    train(tmp_path / "chosen", settings(MLP, data, model={"output": "probabilities"}, train={"steps": 2}))


def test_output_without_weights_is_no_way_out(tmp_path: Path) -> None:
    """Of a quantised model that also hands on its input: the choice would leave nothing to train."""
    nodes = [helper.make_node("QuantizeLinear", ["logits", "scale", "zero"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["other"]),
             helper.make_node("Relu", ["x"], ["seen"])]
    file = branches(tmp_path / "m.onnx", nodes, outputs=("other", "seen"))
    message = refusal(tmp_path, file, max_lines=2)
    assert_says(message, "it is quantised")
    assert "model.output" not in message


def branches(path: Path, other: list[onnx.NodeProto], outputs: tuple[str, ...] = ("logits", "other")) -> Path:
    return save(path, [helper.make_node("MatMul", ["x", "w"], ["logits"]), *other],
                [weight("w", 4, CLASSES), numpy_helper.from_array(np.float32(0.1), "scale"),
                 numpy_helper.from_array(np.uint8(0), "zero")], outputs, domains=("ai.onnx.ml", "com.microsoft"))


OTHERS = {
    "quantised": [helper.make_node("QuantizeLinear", ["logits", "scale", "zero"], ["q"]),
                  helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["other"])],
    "zipmap": [helper.make_node("ZipMap", ["logits"], ["other"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2])],
    "fused": [helper.make_node("FastGelu", ["logits"], ["other"], domain="com.microsoft")],
}


@pytest.mark.parametrize("kind", OTHERS)
def test_branch_to_an_output_that_was_not_chosen(kind: str, tmp_path: Path) -> None:
    file = branches(tmp_path / "m.onnx", OTHERS[kind])
    assert_says(refusal(tmp_path, file, max_lines=2), "what its output 'other' needs is not supported (operator",
                "model.output: logits")
    data, _, _ = make_data(tmp_path, (4,))
    run = train(tmp_path / "chosen", settings(file, data, model={"output": "logits"}, train={"steps": 2}))
    assert_says((run.folder / "run.log").read_text(), "output 'other' is left out: operator")


@pytest.mark.parametrize("kind", OTHERS)
def test_branch_that_nothing_needs(kind: str, tmp_path: Path) -> None:
    """It leads to no output."""
    file = branches(tmp_path / "m.onnx", OTHERS[kind], outputs=("logits",))
    data, _, _ = make_data(tmp_path, (4,))
    train(tmp_path / "run", settings(file, data, train={"steps": 2}))


def test_branch_that_nothing_needs_besides_two_outputs(tmp_path: Path) -> None:
    """What is missing is the choice, not an operator."""
    nodes = [helper.make_node("Relu", ["logits"], ["hidden"]), *OTHERS["quantised"]]
    file = branches(tmp_path / "m.onnx", nodes, outputs=("logits", "hidden"))
    assert_says(refusal(tmp_path, file), "model.output chooses one: 0 ('logits'), 1 ('hidden')")
