"""ONNX files that are broken or made to do harm, and what reading them comes to."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from program import ROOT

READER = Path(os.environ.get("DECENT_ONNX_READ", ROOT / "build" / "bin" / "onnx_read")).absolute()
MOST_SECONDS = 10
FILES_AT_ONCE = 500  # on one command line


@dataclass(frozen=True)
class Outcome:
    """What came of reading a file."""

    size: int  # of the file
    refused: bool
    seconds: float
    grown: int  # bytes, of the process
    message: str

    def check(self) -> None:
        """The promises that hold for any file."""
        assert self.seconds < MOST_SECONDS
        assert self.grown <= 4 * self.size + 64e6
        if self.refused:
            assert self.message.startswith("model '")
            assert self.message.count("\\n") < 5 and len(self.message) < 1000
            assert self.message.isprintable()


def write(path: Path, made: ModelProto | bytes) -> Path:
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    return path


def read_files(paths: list[Path]) -> list[Outcome]:
    """Reads them one after the other. A crash fails here, with the file that it came at."""
    outcomes: list[Outcome] = []
    while len(outcomes) < len(paths):
        batch = paths[len(outcomes):len(outcomes) + FILES_AT_ONCE]
        ended = subprocess.run([READER, *batch], capture_output=True, timeout=MOST_SECONDS * (10 + len(batch) / 10))
        lines = ended.stdout.decode().splitlines()
        assert ended.returncode == 0, f"{batch[len(lines)]}: {ended.returncode}, {ended.stderr.decode()}"
        for path, line in zip(batch, lines, strict=True):
            outcome, seconds, grown, message = line.split("\t", 3)
            outcomes.append(Outcome(path.stat().st_size, outcome == "refused", float(seconds), int(grown), message))
    for outcome in outcomes:
        outcome.check()
    return outcomes


def read_file(path: Path) -> Outcome:
    return read_files([path])[0]


# ---- a model that is whole -----------------------------------------------------------------------------------------

def tensor(name: str, values, **changes) -> TensorProto:
    """An initializer as raw data; `changes` are set on it, a list in place of a repeated field."""
    made = numpy_helper.from_array(np.asarray(values, np.float32), name)
    for field, value in changes.items():
        if isinstance(value, list):
            del getattr(made, field)[:]
            getattr(made, field).extend(value)
        else:
            setattr(made, field, value)
    return made


def external(name: str, location: str, dims: list[int] | None = None, **entries: object) -> TensorProto:
    """An initializer of [2, 2] floats in another file, whose external_data has these entries."""
    made = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims if dims is not None else [2, 2],
                       data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        made.external_data.add(key=key, value=str(value))
    return made


def value(name: str, shape=("N", 2)):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(nodes: list[NodeProto], initializers: list[TensorProto] | None = None, opset: int = 17,
          ir_version: int = 8, functions=(), imports=()) -> ModelProto:
    """From x to y."""
    graph = helper.make_graph(nodes, "main", [value("x")], [value("y")], initializers or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *imports], ir_version=ir_version,
                             functions=functions)


def small_model(**arguments) -> ModelProto:
    """Whole: a matrix product, normalized, with a branch, typed data and attributes of several kinds."""
    branch = helper.make_graph([helper.make_node("Add", ["a", "b"], ["t"])], "branch", [], [value("t")],
                               [helper.make_tensor("b", TensorProto.FLOAT, [2], [1, 2])])
    other = helper.make_graph([helper.make_node("Relu", ["a"], ["e"])], "other", [], [value("e")])
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["g"], "layer", transB=1, alpha=0.5),
        helper.make_node("LayerNormalization", ["g", "scale"], ["a"], epsilon=1e-5),
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True))),
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other),
    ]
    made = model(nodes, [tensor("w", [[1, 2], [3, 4]]), tensor("scale", [1, 1])], **arguments)
    helper.set_model_props(made, {"author": "test"})
    return made


def times_w(initializer: TensorProto) -> ModelProto:
    """y = x @ w."""
    return model([helper.make_node("MatMul", ["x", "w"], ["y"])], [initializer])


# ---- files of absurd counts ----------------------------------------------------------------------------------------

def varint(number: int) -> bytes:
    coded = bytearray()
    while number > 127:
        coded.append(number & 127 | 128)
        number >>= 7
    return bytes(coded) + bytes([number])


def field(number: int, content: bytes) -> bytes:
    """A field of bytes: text or a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def nested(number: int, depth: int) -> bytes:
    """A field inside itself."""
    lengths = [0]
    for _ in range(depth):
        lengths.append(len(varint(number << 3 | 2)) + len(varint(lengths[-1])) + lengths[-1])
    return b"".join(varint(number << 3 | 2) + varint(length) for length in reversed(lengths[:-1]))


def with_graph(fields: bytes) -> bytes:
    """A model whose graph has these fields before those that make it whole."""
    whole = model([helper.make_node("Relu", ["x"], ["y"])])
    graph = fields + whole.graph.SerializeToString()
    whole.ClearField("graph")
    return field(7, graph) + whole.SerializeToString()


def with_node(fields: bytes) -> bytes:
    return with_graph(field(1, field(1, b"x") + field(2, b"z") + field(4, b"Relu") + fields))


def chain(length: int) -> ModelProto:
    names = ["x", *(f"v{i}" for i in range(length - 1)), "y"]
    return model([helper.make_node("Relu", [a], [b]) for a, b in zip(names, names[1:], strict=False)])
