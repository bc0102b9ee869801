"""Data whose dimensions are in another order than the model's: the batch not first, channels last, other sizes. The file's
own shapes tell, in the field's terms, whether the model fails on the data or runs on what is not meant.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from one_batch import FIXTURES
from runs import assert_says, attempt, error_message, recipe, train
from tensors import write_safetensors

SAMPLES, STEPS, WIDTH, CLASSES = 32, 10, 8, 5
BATCH = 8
Shape = list[int | str | None]


def data_of(folder: Path, shape: tuple[int, ...], target: tuple[int, ...] = (), classes: int = CLASSES) -> Path:
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "data.safetensors", {"x": rng.standard_normal((SAMPLES, *shape)).astype(np.float32),
                                                    "y": rng.integers(0, classes, (SAMPLES, *target))})
    return folder / "data.safetensors"


def settings(file: Path, data: Path, **changes: object) -> dict:
    return recipe(file, data, data={"batch_size": BATCH, "eval_batch_size": BATCH}, train={"steps": 2}, **changes)


def warnings_of(folder: Path, file: Path, data: Path, **changes: object) -> str:
    """What a run that goes well says on stderr, which --dry-run and run.log say, too."""
    run = train(folder, settings(file, data, **changes))
    warned = run.ended[0].err
    dry = attempt(folder / "dry", settings(file, data, **changes), "--dry-run")[0]
    assert dry.code == 0 and dry.err == ""
    log = (run.folder / "run.log").read_text()
    for line in warned.removeprefix("warning: ").splitlines():
        assert line in dry.out and line in log
    return warned


def save(path: Path, nodes: list[onnx.NodeProto], x: Shape, y: Shape, tensors: dict[str, tuple[int, ...]],
         producer: str = "pytorch", **constants: list[int]) -> Path:
    rng = np.random.default_rng(1)
    initializers = [numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name)
                    for name, shape in tensors.items()]
    initializers += [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                                producer_name=producer), path)
    return path


def recurrent(path: Path, x: Shape, y: Shape, producer: str = "pytorch") -> Path:
    """A GRU over dimension 0 of x."""
    nodes = [helper.make_node("GRU", ["x", "wi", "wh"], ["all"], hidden_size=6),
             helper.make_node("Squeeze", ["all", "one"], ["h"]),
             helper.make_node("MatMul", ["h", "head"], ["y"])]
    return save(path, nodes, x, y, {"wi": (1, 18, WIDTH), "wh": (1, 18, 6), "head": (6, CLASSES)}, producer, one=[1])


def image_net(path: Path, x: Shape, producer: str = "pytorch") -> Path:
    """Convolution of any size of image, then the mean over it."""
    nodes = [helper.make_node("Conv", ["x", "kernel"], ["c"]),
             helper.make_node("ReduceMean", ["c"], ["m"], axes=[2, 3], keepdims=0),
             helper.make_node("MatMul", ["m", "head"], ["y"])]
    return save(path, nodes, x, ["batch", CLASSES], {"kernel": (4, 3, 3, 3), "head": (4, CLASSES)}, producer)


# ---- the batch is not the first dimension ----------------------------------------------------------------------------

@pytest.mark.parametrize(("declared", "shown"), [
    (["seq", "batch", WIDTH], "[seq, batch, 8]"), (["T", "N", WIDTH], "[T, N, 8]"),
    ([None, "batch_size", WIDTH], "[?, batch_size, 8]"), ([STEPS, "batch", WIDTH], "[10, batch, 8]"),
])
def test_batch_in_the_second_dimension(declared: Shape, shown: str, tmp_path: Path) -> None:
    """It runs, over samples in the place of steps, and the loss falls as well: only a warning can tell."""
    file = recurrent(tmp_path / "m.onnx", declared, declared[:2] + [CLASSES])
    warned = warnings_of(tmp_path, file, data_of(tmp_path, (STEPS, WIDTH), (STEPS,)))
    assert_says(warned, f"warning: input 'x' of the model is {shown} in the file, the field 'x' of a batch is [8, 10, 8]:",
                "the batch is dimension 1 there (counted from 0)", "Export it with batch_first=True")
    assert len(warned.splitlines()) == 2


@pytest.mark.parametrize("declared", [["batch", "seq", WIDTH], ["B", "N", WIDTH], ["n", None, WIDTH], [None, None, WIDTH],
                                      ["s0", "s1", WIDTH], None])
def test_batch_that_is_first_or_not_named(declared: Shape | None, tmp_path: Path) -> None:
    file = recurrent(tmp_path / "m.onnx", declared, None)
    assert warnings_of(tmp_path, file, data_of(tmp_path, (STEPS, WIDTH), (STEPS,))) == ""


def test_fixed_sizes_tell_which_dimension_is_the_batch(tmp_path: Path) -> None:
    nodes = [helper.make_node("Reshape", ["x", "flat"], ["f"]), helper.make_node("MatMul", ["f", "head"], ["g"]),
             helper.make_node("Reshape", ["g", "back"], ["y"])]
    file = save(tmp_path / "m.onnx", nodes, [STEPS, 4, WIDTH], [STEPS, 4, CLASSES], {"head": (WIDTH, CLASSES)},
                flat=[STEPS * 4, WIDTH], back=[STEPS, 4, CLASSES])
    message = error_message(attempt(tmp_path, settings(file, data_of(tmp_path, (STEPS, WIDTH), (STEPS,)))), max_lines=3)
    assert_says(message, "data.eval", "m.onnx", "input 'x' of the model is [10, 4, 8] in the file",
                "the batch is dimension 1 there", "batch_first=True", "It failed with: RuntimeError: shape '[40, 8]'")
    assert "batches of 10" not in message


class Recurrent(torch.nn.Module):
    def __init__(self, turned: bool, **options: bool) -> None:
        super().__init__()
        self.rnn, self.head, self.turned = torch.nn.GRU(WIDTH, 6, **options), torch.nn.Linear(6, CLASSES), turned

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.transpose(0, 1) if self.turned else x
        x = self.head(self.rnn(x)[0])
        return x.transpose(0, 1) if self.turned else x


@pytest.mark.parametrize("network", [Recurrent(False, batch_first=True), Recurrent(True)], ids=["batch_first", "transpose"])
def test_way_out_of_the_second_dimension(network: Recurrent, tmp_path: Path) -> None:
    torch.onnx.export(network, (torch.randn(4, STEPS, WIDTH),), tmp_path / "m.onnx", dynamo=False, input_names=["x"],
                      output_names=["y"], dynamic_axes={name: {0: "batch", 1: "seq"} for name in "xy"})
    assert warnings_of(tmp_path, tmp_path / "m.onnx", data_of(tmp_path, (STEPS, WIDTH), (STEPS,))) == ""


def transposing_net(path: Path, y: Shape) -> Path:
    """From [batch, 8] to [5, batch]."""
    return save(path, [helper.make_node("MatMul", ["x", "head"], ["h"]),
                       helper.make_node("Transpose", ["h"], ["y"], perm=[1, 0])],
                ["batch", WIDTH], y, {"head": (WIDTH, CLASSES)})


def test_batch_of_the_output_is_not_first(tmp_path: Path) -> None:
    file = transposing_net(tmp_path / "m.onnx", [CLASSES, "batch"])
    data = data_of(tmp_path, (WIDTH,))
    message = error_message(attempt(tmp_path, settings(file, data)), max_lines=3)
    assert_says(message, "do not fit the loss", "output 'y' of the model is [5, batch] in the file",
                "the batch is dimension 1")
    # With the classes in the first dimension it is right.
    assert warnings_of(tmp_path / "classes", file, data, model={"class_dim": 0}) == ""


def test_output_of_as_many_steps_as_samples(tmp_path: Path) -> None:
    """Output and target have one shape, [8, 8], in another order."""
    file = save(tmp_path / "m.onnx", [helper.make_node("MatMul", ["x", "head"], ["h"]),
                                      helper.make_node("Transpose", ["h"], ["y"], perm=[1, 0, 2])],
                ["batch", BATCH, WIDTH], ["seq", "batch", CLASSES], {"head": (WIDTH, CLASSES)})
    data = data_of(tmp_path, (BATCH, WIDTH), (BATCH,))
    warned = warnings_of(tmp_path, file, data)
    assert_says(warned, "warning: output 'y' of the model is [seq, batch, 5] in the file: the batch is dimension 1")


def test_fields_that_feed_inputs_by_name(tmp_path: Path) -> None:
    """The message is about the input that the recipe feeds with the field, wherever it stands."""
    nodes = [helper.make_node("MatMul", ["ids.1", "a"], ["i"]), helper.make_node("Add", ["i", "mask"], ["y"])]
    file = save(tmp_path / "m.onnx", nodes, None, ["batch", CLASSES], {"a": (WIDTH, CLASSES)})
    model = onnx.load(file)
    del model.graph.input[:]
    model.graph.input.extend([helper.make_tensor_value_info("ids.1", TensorProto.FLOAT, ["batch", WIDTH]),
                              helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["batch", CLASSES])])
    onnx.save(model, file)
    data = tmp_path / "data.safetensors"
    write_safetensors(data, {"m": np.zeros((SAMPLES, CLASSES), np.float32), "x": np.zeros((SAMPLES, 3), np.float32),
                             "y": np.zeros(SAMPLES, np.int64)})
    inputs = {"mask": "m", "ids.1": "x"}
    message = error_message(attempt(tmp_path, settings(file, data, model={"inputs": inputs})), max_lines=3)
    assert_says(message, "input 'ids.1' of the model is [batch, 8] in the file, the field 'x' of a batch is [8, 3]:",
                "they differ in dimension 1")


# ---- channels --------------------------------------------------------------------------------------------------------

def test_channels_last_for_a_model_that_has_them_first(tmp_path: Path) -> None:
    file = image_net(tmp_path / "m.onnx", ["batch", 3, 12, 12])
    message = error_message(attempt(tmp_path, settings(file, data_of(tmp_path, (12, 12, 3)))), max_lines=3)
    assert_says(message, "input 'x' of the model is [batch, 3, 12, 12] in the file, "
                "the field 'x' of a batch is [8, 12, 12, 3]:",
                "the channels come first in the file and last in the data",
                "Store samples as [3, 12, 12]; in numpy: x.transpose(0, 3, 1, 2)",
                "It failed with: RuntimeError: Given groups=1")
    right = data_of(tmp_path / "right", (12, 12, 3))
    write_safetensors(right, {"x": np.zeros((SAMPLES, 12, 12, 3), np.float32).transpose(0, 3, 1, 2).copy(),
                              "y": np.zeros(SAMPLES, np.int64)})
    assert warnings_of(tmp_path / "right", file, right) == ""


def test_channels_first_for_keras(tmp_path: Path) -> None:
    """tf2onnx makes a Reshape of the Transpose of one channel, which takes such data without a word."""
    warned = warnings_of(tmp_path, FIXTURES / "keras_cnn.onnx", data_of(tmp_path, (1, 6, 6), classes=3))
    assert_says(warned, "[unk__31, 6, 6, 1] in the file, the field 'x' of a batch is [8, 1, 6, 6]:",
                "the channels come last in the file and first in the data", "x.transpose(0, 2, 3, 1)")


def test_steps_and_features_swapped(tmp_path: Path) -> None:
    message = error_message(attempt(tmp_path, settings(FIXTURES / "keras_gru.onnx", data_of(tmp_path, (3, 5), classes=3))),
                            max_lines=3)
    assert_says(message, "[unk__238, 5, 3] in the file", "in the other order", "x.transpose(0, 2, 1)")


@pytest.mark.parametrize(("shape", "said"), [((8, 8), "3 dimensions in the file and 2 in the data"),
                                             ((64,), "3 dimensions in the file and 1 in the data")])
def test_missing_dimensions(shape: tuple[int, ...], said: str, tmp_path: Path) -> None:
    nodes = [helper.make_node("Conv", ["x", "kernel"], ["c"]), helper.make_node("Flatten", ["c"], ["f"]),
             helper.make_node("MatMul", ["f", "head"], ["y"])]
    file = save(tmp_path / "m.onnx", nodes, ["batch", 1, 8, 8], ["batch", CLASSES],
                {"kernel": (2, 1, 3, 3), "head": (72, CLASSES)})
    message = error_message(attempt(tmp_path, settings(file, data_of(tmp_path, shape))), max_lines=3)
    assert_says(message, said, "Store samples as [1, 8, 8]; in numpy: x.reshape(-1, 1, 8, 8)")


def test_other_sizes_are_a_warning_where_they_run(tmp_path: Path) -> None:
    file = image_net(tmp_path / "m.onnx", ["batch", 3, 12, 12])
    warned = warnings_of(tmp_path, file, data_of(tmp_path, (3, 9, 12)))
    assert_says(warned, "they differ in dimension 2",
                "Store samples as [3, 12, 12], or export with these dimensions in dynamic_shapes")


@pytest.mark.parametrize(("producer", "said"), [("tf2onnx", "None for these dimensions in input_signature"),
                                                ("jax2onnx", "names for these dimensions in to_onnx"),
                                                ("my tool", "or export the model again with these dimensions free")])
def test_advice_for_other_tools(producer: str, said: str, tmp_path: Path) -> None:
    file = image_net(tmp_path / "m.onnx", ["batch", 3, 12, 12], producer)
    warned = warnings_of(tmp_path, file, data_of(tmp_path, (3, 9, 9)))
    assert_says(warned, "they differ in dimension 2 and 3", said)
    assert "dynamic" not in warned
