"""Gradients without autograd: finite differences of what onnxruntime computes from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

Tensors = dict[str, np.ndarray]


def constant_of(node: onnx.NodeProto) -> np.ndarray | None:
    """What a Constant node holds, where that is a tensor or a list of floats."""
    if node.op_type != "Constant":
        return None
    value = helper.get_attribute_value(node.attribute[0])
    return np.array(value, np.float32) if isinstance(value, list) else numpy_helper.to_array(value)


def weights_of(path: Path) -> Tensors:
    """The floating-point tensors of a file's outermost graph with more than one element: those that look like weights."""
    graph = onnx.load(path).graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        value = constant_of(node)
        if value is not None:
            tensors[node.output[0]] = value
    return {name: value for name, value in tensors.items() if value.dtype == np.float32 and value.size > 1}


def with_weights_as_inputs(path: Path, output: str) -> bytes:
    """`output` may be any value of the graph, which gives nothing else."""
    model = onnx.load(path)
    del model.graph.output[:]
    model.graph.output.append(onnx.ValueInfoProto(name=output))
    weights = weights_of(path)
    kept = [tensor for tensor in model.graph.initializer if tensor.name not in weights]
    nodes = [node for node in model.graph.node if not (node.op_type == "Constant" and node.output[0] in weights)]
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend(kept)
    model.graph.node.extend(nodes)
    for name, value in weights.items():
        model.graph.input.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, value.shape))
    return model.SerializeToString()


def cross_entropy(logits: np.ndarray, classes: np.ndarray) -> float:
    """The mean over samples, in float64."""
    logits = logits.astype(np.float64)
    largest = logits.max(1, keepdims=True)
    log_sums = np.log(np.exp(logits - largest).sum(1)) + largest[:, 0]
    return float((log_sums - logits[np.arange(len(classes)), classes]).mean())


class Loss:
    """Cross entropy of logits, the value `output` of a file, on (x, classes), as a function of its weights."""

    def __init__(self, path: Path, output: str, x: np.ndarray, classes: np.ndarray) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(with_weights_as_inputs(path, output), options)
        self._output, self._x, self._classes = output, x, classes
        self._input = onnx.load(path).graph.input[0].name

    def __call__(self, weights: Tensors) -> float:
        [logits] = self._session.run([self._output], {self._input: self._x, **weights})
        return cross_entropy(logits, self._classes)

    def gradient(self, weights: Tensors, name: str) -> np.ndarray:
        """By five points each: exact up to h**4, so that h can be large. onnxruntime computes in float32, with errors of
        some 1e-7 in the loss, which come into the gradient divided by about h.
        """
        h = 0.03
        gradient = np.zeros(weights[name].shape)
        for place in np.ndindex(gradient.shape):
            def moved(steps: int) -> float:
                changed = weights[name].copy()
                changed[place] += steps * h
                return self({**weights, name: changed})
            gradient[place] = (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * h)
        return gradient
