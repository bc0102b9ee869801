"""What the start of a run says of weights that stay frozen and of what an export lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from one_batch import make_data, settings
from runs import attempt

node = helper.make_node


def notes_of(folder: Path, file: Path, shape: tuple[int, ...], *flags: str, **changes: object) -> list[str]:
    data, _, _ = make_data(folder, shape)
    [ended] = attempt(folder / "run", settings(file, data, train={"steps": 1}, **changes), *flags)
    assert ended.code == 0, ended.err
    return [line.removeprefix("note").lstrip(" :") for line in ended.out.splitlines() if line.startswith("note")]


def about(notes: list[str], text: str) -> list[str]:
    return [note for note in notes if text in note]


def save(path: Path, nodes: list[onnx.NodeProto], tensors: dict[str, np.ndarray], shape: list[object], producer: str = "") -> Path:
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])],
                              [numpy_helper.from_array(value, name) for name, value in tensors.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name=producer), path)
    return path


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.5, 0.5, shape).astype(np.float32)


# ---- weights that stay as they are -----------------------------------------------------------------------------------

def with_tables(path: Path) -> Path:
    """A bias of two dimensions, and a matrix that is divided by its norm on the way to an Einsum."""
    nodes = [node("Add", ["x", "val_1"], ["h"]), node("ReduceL2", ["val_2"], ["norm"], axes=[0], keepdims=1),
             node("Div", ["val_2", "norm"], ["unit"]), node("Einsum", ["h", "unit"], ["hidden"], equation="bij,jk->bk"),
             node("MatMul", ["hidden", "head"], ["logits"])]
    return save(path, nodes, {"val_1": random(2, 4), "val_2": random(4, 5), "head": random(5, 3)}, ["n", 2, 4])


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_weights_that_stay_frozen(flags: tuple[str, ...], tmp_path: Path) -> None:
    file = with_tables(tmp_path / "m.onnx")
    [note] = about(notes_of(tmp_path, file, (2, 4), *flags), "that may be weights stay as they are")
    assert note.startswith("2 tensors of the model file") and "val_1" in note and "val_2" in note and "model.unfreeze" in note


def test_nothing_is_said_of_what_trains(tmp_path: Path) -> None:
    file = with_tables(tmp_path / "m.onnx")
    notes = notes_of(tmp_path, file, (2, 4), model={"unfreeze": ["val_1", "val_2"]})
    assert about(notes, "that may be weights") == []


# ---- batch norm and dropout that are not in the file -----------------------------------------------------------------

def test_norms_that_tf2onnx_folded(tmp_path: Path) -> None:
    """Into a convolution under a name of its own, and after a dense layer as a product and a sum."""
    nodes = [node("Conv", ["x", "net/conv/Conv2D_weights_fused_bn", "net/conv/Conv2D_bias_fused_bn"], ["c"]),
             node("GlobalAveragePool", ["c"], ["pooled"]), node("Flatten", ["pooled"], ["flat"]),
             node("MatMul", ["flat", "net/dense/ReadVariableOp:0"], ["d"]),
             node("Mul", ["d", "const_fold_opt__11"], ["m"], name="net/bn/batchnorm/mul_1"),
             node("Add", ["m", "const_fold_opt__12"], ["logits"], name="net/bn/batchnorm/add_1")]
    tensors = {"net/conv/Conv2D_weights_fused_bn": random(5, 1, 3, 3), "net/conv/Conv2D_bias_fused_bn": random(5),
               "net/dense/ReadVariableOp:0": random(5, 3), "const_fold_opt__11": random(3), "const_fold_opt__12": random(3)}
    notes = notes_of(tmp_path, save(tmp_path / "m.onnx", nodes, tensors, ["n", 1, 6, 6], "tf2onnx"), (1, 6, 6))
    [note] = about(notes, "with a batch norm that the export folded in")
    assert note.startswith("4 weights")
    assert len(about(notes, "no Dropout in the file: a model that has it trains without it")) == 1


class Images(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(64, 3))


def export(path: Path, training: bool) -> Path:
    mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL
    torch.onnx.export(Images().train(training), (torch.zeros(2, 1, 6, 6),), path, dynamo=False, training=mode,
                      do_constant_folding=not training, input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    return path


def test_an_export_of_pytorch_for_inference(tmp_path: Path) -> None:
    notes = notes_of(tmp_path, export(tmp_path / "m.onnx", training=False), (1, 6, 6))
    [note] = about(notes, "with a batch norm that the export folded in")
    assert note.startswith("1 weight ") and "do_constant_folding=False" in note
    assert len(about(notes, "no Dropout in the file")) == 1


def test_an_export_of_pytorch_for_training(tmp_path: Path) -> None:
    notes = notes_of(tmp_path, export(tmp_path / "m.onnx", training=True), (1, 6, 6))
    assert about(notes, "batch norm") == [] and about(notes, "Dropout") == []


def test_a_norm_in_pieces(tmp_path: Path) -> None:
    nodes = [node("Add", ["variance", "eps"], ["sum"]), node("Sqrt", ["sum"], ["root"]), node("Sub", ["x", "mean"], ["centered"]),
             node("Div", ["centered", "root"], ["unit"]), node("MatMul", ["unit", "head"], ["logits"])]
    tensors = {"variance": random(4) + 1, "mean": random(4), "eps": np.array(1e-3, np.float32), "head": random(4, 3)}
    notes = notes_of(tmp_path, save(tmp_path / "m.onnx", nodes, tensors, ["n", 4]), (4,))
    assert len(about(notes, "1 batch norm in inference form: mean and variance stay")) == 1


# ---- state that ONNX has no place for --------------------------------------------------------------------------------

class Followed(nn.Module):
    """A norm of instances that keeps statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.head = nn.InstanceNorm1d(2, track_running_stats=True), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(x).flatten(1))


STATEFUL = {"spectral norm": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)), (4,),
                              ["2 buffers", "parametrizations.weight.0._u", "parametrizations.weight.0._v"]),
            "instance norm": (Followed, (2, 4), ["2 buffers", "norm.running_mean", "norm.running_var"])}


@pytest.mark.parametrize("name", STATEFUL)
def test_buffers_that_change_in_pytorch_alone(name: str, tmp_path: Path) -> None:
    make, shape, says = STATEFUL[name]
    torch.onnx.export(make().train(), (torch.zeros(2, *shape),), tmp_path / "m.onnx", dynamo=True, optimize=False,
                      dynamic_shapes=({0: "batch"},), verbose=False)
    data, _, _ = make_data(tmp_path, shape)
    [ended] = attempt(tmp_path / "run", settings(tmp_path / "m.onnx", data, train={"steps": 1}), "--dry-run")
    [line] = about(ended.out.splitlines(), "that the exported model changes in training, which the file cannot say")
    assert all(text in line for text in says)


def test_batch_norm_keeps_its_state(tmp_path: Path) -> None:
    torch.onnx.export(Images().train(), (torch.zeros(2, 1, 6, 6),), tmp_path / "m.onnx", dynamo=True, optimize=False,
                      dynamic_shapes=({0: "batch"},), verbose=False)
    data, _, _ = make_data(tmp_path, (1, 6, 6))
    [ended] = attempt(tmp_path / "run", settings(tmp_path / "m.onnx", data, train={"steps": 1}), "--dry-run")
    assert about(ended.out.splitlines(), "which the file cannot say") == []
