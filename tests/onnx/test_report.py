"""What the report says of tensors that stay frozen, and its advice, which depends on the tool that wrote the file."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from differences import weights_of
from one_batch import FIXTURES, SGD, make_data, settings, train_and_export
from program import run_alone
from runs import assert_says, attempt, error_message, train, write_recipe
from tensors import write_safetensors

STEPS, WIDTH, CLASSES = 4, 16, 3
PYTORCH_ONLY = re.compile(r"torch|dynamo|optimize=|dynamic_|constant_folding|model\.train|batch_first")


def report(folder: Path, file: Path, *flags: str, shape: tuple[int, ...] = (STEPS, WIDTH)) -> list[str]:
    """The lines of --dry-run about the import, without their margin."""
    data, _, _ = make_data(folder, shape)
    config = write_recipe(folder, settings(file, data))
    ended = run_alone("--config", config, "--dry-run", *flags, cwd=folder)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("import"))
    end = next(i for i, line in enumerate(lines) if line.startswith("device"))
    return [line[11:] for line in lines[begin:end]]


def adapted_net(path: Path, layers: int, kinds: int = 1) -> Path:
    """Layers whose weights are a base that a product of two small matrices is added to, behind statistics, tables and
    numbers, which come first in the file. `kinds` shapes of base.
    """
    rng = np.random.default_rng(0)
    tensors: dict[str, np.ndarray] = {"onnx::Sub_1": rng.normal(size=WIDTH), "eps.scale": np.full(1, 0.5),
                                      "onnx::Add_2": rng.normal(size=(STEPS, WIDTH)),
                                      "onnx::Mul_3": rng.normal(size=(1, STEPS, WIDTH))}
    nodes = [helper.make_node("Sub", ["x", "onnx::Sub_1"], ["a"]), helper.make_node("Mul", ["a", "eps.scale"], ["b"]),
             helper.make_node("Add", ["b", "onnx::Add_2"], ["c"]), helper.make_node("Mul", ["c", "onnx::Mul_3"], ["h0"])]
    widths = [WIDTH, *(WIDTH + 1 + i % kinds for i in range(layers))]
    for i, (before, after) in enumerate(zip(widths, widths[1:], strict=False)):
        base, down, up = f"onnx::Add_{1000 + i}", f"onnx::MatMul_{2000 + i}", f"onnx::MatMul_{3000 + i}"
        tensors |= {base: rng.normal(size=(before, after)), down: rng.normal(size=(before, 2)),
                    up: rng.normal(size=(2, after))}
        place = f"/layers.{i}/fc/"
        nodes += [helper.make_node("MatMul", [down, up], [f"d{i}"], name=place + "MatMul"),
                  helper.make_node("Add", [base, f"d{i}"], [f"w{i}"], name=place + "Add"),
                  helper.make_node("MatMul", [f"h{i}", f"w{i}"], [f"y{i}"], name=place + "MatMul_1"),
                  helper.make_node("Tanh", [f"y{i}"], [f"t{i}"]),
                  # Gradients reach the first of many layers by this sum.
                  helper.make_node("Sum", [f"t{i}", *([f"h{i}"] if before == after else [])], [f"h{i + 1}"])]
    tensors["head.weight"] = rng.normal(size=(widths[-1], CLASSES))
    nodes += [helper.make_node("ReduceMean", [f"h{layers}"], ["m"], axes=[1], keepdims=0),
              helper.make_node("MatMul", ["m", "head.weight"], ["logits"])]
    initializers = [numpy_helper.from_array((0.2 * value).astype(np.float32), name) for name, value in tensors.items()]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", STEPS, WIDTH])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", CLASSES])], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def frozen_part(lines: list[str]) -> list[str]:
    begin = next(i for i, line in enumerate(lines) if line.startswith("frozen"))
    return [lines[begin], *(line for line in lines[begin + 1:] if line.startswith("  "))]


def test_weights_stand_before_tables_and_numbers(tmp_path: Path) -> None:
    reason = "added or multiplied: a weight, or a table that the export made"
    lines = frozen_part(report(tmp_path, adapted_net(tmp_path / "m.onnx", 1)))
    assert lines == [
        "frozen, though 5 tensors may be weights; model.unfreeze: [name, ..] trains them",
        "  layers.0.fc.bias ('onnx::Add_1000' in the file) float32[16, 17]: "
        + reason + "; goes into the weight of MatMul",
        "  onnx_Add_2 ('onnx::Add_2' in the file) float32[4, 16]: " + reason,
        "  onnx_Mul_3 ('onnx::Mul_3' in the file) float32[1, 4, 16]: " + reason,
        "  onnx_Sub_1 ('onnx::Sub_1' in the file) float32[16]: subtracted or divided by, as statistics of the data are",
        "  and 1 smaller: eps.scale; --dry-run --verbose and run.log name each",
    ]


def test_hundreds_of_weights_are_one_line_and_a_glob_that_trains_them(tmp_path: Path) -> None:
    file = adapted_net(tmp_path / "m.onnx", 120)
    lines = frozen_part(report(tmp_path, file))
    assert_says(lines[0], "frozen, though 124 tensors")
    assert_says(lines[2], "  119 x layers.*.fc.bias float32[17, 17]", "goes into the weight of MatMul")
    assert len(lines) == 7
    data, _, _ = make_data(tmp_path, (STEPS, WIDTH))
    _, trained = train_and_export(tmp_path / "run", settings(file, data, model={"unfreeze": ["layers.*.fc.bias"]},
                                                             train={"steps": 1}, optimizer=SGD))
    start, end = weights_of(file), weights_of(trained)
    moved = {name for name in start if not np.array_equal(start[name], end[name])}
    assert {f"onnx::Add_{1000 + i}" for i in range(120)} <= moved


def test_every_weight_has_a_line_where_the_report_is_full(tmp_path: Path) -> None:
    file = adapted_net(tmp_path / "m.onnx", 60, kinds=25)
    brief = frozen_part(report(tmp_path, file))
    assert_says("\n".join(brief), " more kinds; --dry-run --verbose and run.log name each")
    assert len(brief) == 26
    full = report(tmp_path, file, "--verbose")
    data, _, _ = make_data(tmp_path, (STEPS, WIDTH))
    log = (train(tmp_path / "run", settings(file, data, train={"steps": 1})).folder / "run.log").read_text()
    for i in range(60):
        [line] = [line for line in full if f"'onnx::Add_{1000 + i}'" in line]
        assert line in log
    assert any("eps.scale float32[1]" in line for line in full)


def test_matrix_that_the_exported_model_calls_a_buffer(tmp_path: Path) -> None:
    """A filter bank may be a weight, a table that Gather reads is not."""
    rng = np.random.default_rng(0)
    nodes = [helper.make_node("MatMul", ["x", "bank"], ["a"]), helper.make_node("Gather", ["table", "steps"], ["t"]),
             helper.make_node("Add", ["a", "t"], ["b"]), helper.make_node("ReduceMean", ["b"], ["m"], axes=[1], keepdims=0),
             helper.make_node("MatMul", ["m", "head"], ["logits"])]
    tensors = [numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
               for name, shape in (("bank", (WIDTH, 8)), ("table", (9, 8)), ("head", (8, CLASSES)))]
    tensors.append(numpy_helper.from_array(np.arange(STEPS), "steps"))
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", STEPS, WIDTH])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", CLASSES])], tensors)
    for name, kind in (("bank", "BUFFER"), ("table", "BUFFER"), ("head", "PARAMETER")):
        info = graph.value_info.add(name=name)
        info.metadata_props.add(key="pkg.torch.export.graph_signature.InputSpec.kind", value=kind)
    file = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), file)
    assert frozen_part(report(tmp_path, file)) == [
        "frozen, though 1 tensor may be weights; model.unfreeze: [name, ..] trains them",
        "  bank float32[16, 8]: a buffer of the exported model; goes into the weight of MatMul"]


def test_nothing_trains_but_what_could_is_named(tmp_path: Path) -> None:
    """The report cannot be seen then; the names can be given to model.unfreeze."""
    nodes = [helper.make_node("Mul", ["x", "onnx::Mul_1"], ["a"]), helper.make_node("Sub", ["a", "onnx::Sub_2"], ["logits"])]
    tensors = [numpy_helper.from_array(np.ones(shape, np.float32), name)
               for name, shape in (("onnx::Sub_2", (CLASSES,)), ("onnx::Mul_1", (2, CLASSES)))]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 2, CLASSES])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2, CLASSES])], tensors)
    file = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    data = tmp_path / "data.safetensors"
    write_safetensors(data, {"x": np.zeros((16, 2, CLASSES), np.float32), "y": np.zeros((16, 2), np.int64)})
    for flags in ([], ["--dry-run"]):
        message = error_message(attempt(tmp_path, settings(file, data), *flags), max_lines=2)
        assert_says(message, "model.unfreeze: [globs] names tensors to train, which may be: onnx_Mul_1, onnx_Sub_2;")
    train(tmp_path / "unfrozen", settings(file, data, model={"unfreeze": ["onnx_Mul_1"]}, train={"steps": 2}))


# ---- the tool that wrote the file ------------------------------------------------------------------------------------

ADVICE = {
    "pytorch": "export with dynamic_shapes (dynamic_axes)",
    "tf2onnx": "convert a model without a batch_size, with None for it in input_signature",
    "jax2onnx": 'convert with a name for it: to_onnx(f, [("batch", ..)])',
    "skl2onnx": 'convert with initial_types=[("X", FloatTensorType([None, features]))]',
    "onnx.quantize": "export the model again with a free batch dimension",
    "": "export the model again with a free batch dimension",
}


def fixed_net(path: Path, producer: str, fixed_input: bool = True) -> Path:
    """For batches of 4, without dropout, with a weight that an export computed."""
    tensors = [numpy_helper.from_array(np.ones((4, CLASSES), np.float32), "onnx::MatMul_7"),
               numpy_helper.from_array(np.array([4, CLASSES]), "shape")]
    nodes = [helper.make_node("MatMul", ["x", "onnx::MatMul_7"], ["a"]),
             helper.make_node("Reshape", ["a", "shape"], ["logits"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4 if fixed_input else "n", 4])
    graph = helper.make_graph(nodes, "net", [x],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [4, CLASSES])], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                                producer_name=producer), path)
    return path


@pytest.mark.parametrize("producer", ADVICE)
def test_fixed_batch(producer: str, tmp_path: Path) -> None:
    file = fixed_net(tmp_path / "m.onnx", producer)
    data, _, _ = make_data(tmp_path, (4,))
    refused = error_message(attempt(tmp_path, settings(file, data)), max_lines=2)
    assert_says(refused, "The file was exported for batches of 4, not of 16. Set data.batch_size and "
                "data.eval_batch_size to 4, or " + ADVICE[producer])
    fitting = settings(file, data) | {"data": {"train": {"format": "safetensors", "path": str(data)}, "batch_size": 4}}
    ended = run_alone("--config", write_recipe(tmp_path / "fits", fitting), "--dry-run", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert_says(ended.out, "input 'x' has a first dimension of 4 in the file: where that is the batch, "
                "train at that size, or " + ADVICE[producer])
    if producer == "pytorch":
        assert_says(ended.out, "no Dropout in the file",
                    "do_constant_folding=False (dynamo: optimize=False) keeps the model's own")
    else:
        said = re.sub(r"/\S+", "", refused + ended.out)
        assert not PYTORCH_ONLY.search(said), said


def test_batch_that_is_fixed_inside_the_graph(tmp_path: Path) -> None:
    """As tf2onnx writes a traced batch of 4 whose input alone was made free (--inputs x:0[-1,4])."""
    data, _, _ = make_data(tmp_path, (4,))
    message = error_message(attempt(tmp_path, settings(fixed_net(tmp_path / "m.onnx", "tf2onnx", fixed_input=False), data)))
    assert_says(message, "exported for batches of 4, not of 16", ADVICE["tf2onnx"])


@pytest.mark.parametrize("name", ["keras_dense", "keras_cnn", "keras3_gru", "jax_scan", "sklearn_mlp"])
def test_files_of_other_tools_get_no_advice_on_pytorch(name: str, tmp_path: Path) -> None:
    shapes = {"keras_cnn": (6, 6, 1), "keras3_gru": (5, 3)}
    data, _, _ = make_data(tmp_path, shapes.get(name, (4,)))
    recipe = settings(FIXTURES / f"{name}.onnx", data, model={"output": 1} if name == "sklearn_mlp" else {})
    ended = run_alone("--config", write_recipe(tmp_path, recipe), "--dry-run", "--verbose", cwd=tmp_path)
    assert ended.code == 0, ended.err
    said = ended.out[:ended.out.index("\ndevice")]
    assert not PYTORCH_ONLY.search(said), said
