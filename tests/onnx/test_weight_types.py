"""Weights in the types and fields that files hold them in: they are trained in fp32 and written back as they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import eager
import inference
from agreement import assert_agrees
from catalogue import make_data, make_model
from eager import Imported
from harness import SCHEDULES, TrainedRun, export, make_recipe, optimizer_of, train_recipe, write_only
from matching import same_layout

NAME = "plain"
FEATURES, CLASSES = 10, 4


def raw(name: str, values: np.ndarray, kind: int = TensorProto.FLOAT) -> TensorProto:
    elements = values.astype(helper.tensor_dtype_to_np_dtype(kind))
    return helper.make_tensor(name, kind, values.shape, elements.tobytes(), raw=True)


def typed(name: str, values: np.ndarray, kind: int = TensorProto.FLOAT) -> TensorProto:
    """In float_data; halves in int32_data."""
    return helper.make_tensor(name, kind, values.shape, values.ravel().tolist())


STORAGES: dict[str, Callable[[str, np.ndarray], TensorProto]] = {
    "raw": raw,
    "external": raw,
    "float_data": typed,
    "fp16": lambda name, values: raw(name, values, TensorProto.FLOAT16),
    "bf16": lambda name, values: raw(name, values, TensorProto.BFLOAT16),
    "fp16_int32_data": lambda name, values: typed(name, values, TensorProto.FLOAT16),
    "bf16_int32_data": lambda name, values: typed(name, values, TensorProto.BFLOAT16),
}


def write_model(storage: str, path: Path) -> Path:
    """Weights of other types go through a Cast, as tools write them that compress weights alone."""
    state = {name: p.detach().numpy() for name, p in make_model(NAME).named_parameters()}
    initializers = [STORAGES[storage](name, values) for name, values in state.items()]
    casts = [helper.make_node("Cast", [name], [f"{name}_float"], f"cast_{name}", to=TensorProto.FLOAT)
             for name in state if initializers[0].data_type != TensorProto.FLOAT]
    w1, b1, w2, b2 = (f"{name}_float" if casts else name for name in state)
    nodes = [helper.make_node("MatMul", ["x", w1], ["product"]), helper.make_node("Add", ["product", b1], ["sum"]),
             helper.make_node("Tanh", ["sum"], ["hidden"]), helper.make_node("Gemm", ["hidden", w2, b2], ["output"])]
    graph = helper.make_graph(casts + nodes, "plain",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", FEATURES])],
                              [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", CLASSES])],
                              initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    external = {"save_as_external_data": True, "location": f"{path.name}.data", "size_threshold": 0}
    onnx.save(model, str(path), **(external if storage == "external" else {}))
    return path


@pytest.fixture(scope="module", params=STORAGES)
def run(request: pytest.FixtureRequest, data, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrainedRun]:
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "model").mkdir()
    model = write_model(request.param, folder / "model" / "plain.onnx")
    return model, train_recipe(folder, make_recipe(NAME, model, data(NAME), "adamw"))


def test_trains_in_fp32(run: tuple[Path, TrainedRun]) -> None:
    """From the rounded weights, and without rounding them on the way."""
    imported = run[1].imported()
    assert {tensor.dtype for tensor in imported.tensors.values()} == {np.dtype(np.float32)}
    model = make_model(NAME)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(elements(run[0])[name]))
    found = same_layout(eager.state_of(model))
    reference = eager.train(NAME, model, found, optimizer_of(NAME, "adamw"), SCHEDULES["adamw"])
    assert_agrees(NAME, run[1].run, Imported(imported.tensors, set(found.places)), found, reference)


def elements(path: Path) -> dict[str, np.ndarray]:
    return {tensor.name: numpy_helper.to_array(tensor).astype(np.float32)
            for tensor in onnx.load(str(path)).graph.initializer}


def test_written_back_in_its_type_and_field(run: tuple[Path, TrainedRun]) -> None:
    path, trained = run
    written = trained.export("trained.onnx")
    onnx.checker.check_model(str(written), full_check=True)
    before, after = (onnx.load(str(file), load_external_data=False).graph.initializer for file in (path, written))
    for a, b in zip(before, after, strict=True):
        assert [field.name for field, _ in a.ListFields()] == [field.name for field, _ in b.ListFields()]
        assert (a.name, a.data_type, a.dims) == (b.name, b.data_type, b.dims)
    kind = helper.tensor_dtype_to_np_dtype(before[0].data_type)
    for name, values in elements(written).items():
        np.testing.assert_array_equal(values, trained.run.weights[name].astype(kind).astype(np.float32), err_msg=name)
    x = make_data(NAME)["x"][:7]
    with torch.no_grad():
        w1, b1, w2, b2 = (torch.from_numpy(values) for values in elements(written).values())
        expected = (torch.tanh(torch.from_numpy(x) @ w1 + b1) @ w2 + b2).numpy()
    np.testing.assert_allclose(inference.run(written, {"x": x})["output"], expected, rtol=1e-5, atol=1e-5)


def test_untrained_is_the_same_file(run: tuple[Path, TrainedRun], data, tmp_path: Path) -> None:
    path = run[0]
    settings = write_only(tmp_path, make_recipe(NAME, path, data(NAME), "sgd"))
    again = tmp_path / "again" / path.name
    export(settings.config, again, "--checkpoint", "none")
    names = sorted(file.name for file in path.parent.iterdir())
    assert sorted(file.name for file in again.parent.iterdir()) == names
    if len(names) == 1:
        assert again.read_bytes() == path.read_bytes()
    else:  # external data lies where the writer chooses
        assert onnx.load(str(again)) == onnx.load(str(path))
