"""ONNX files as a user of the program meets them: resuming, what run.log tells, and mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from program import ROOT, run_alone
from runs import assert_same_run, assert_says, attempt, error_message, merged, recipe, train, write_recipe

DIGITS_ONNX = ROOT / "models" / "digits_cnn.onnx"


def small_model(path: Path, nodes: list[onnx.NodeProto], weight: str = "fc.weight") -> Path:
    """A graph from digits x to logits, with one matrix."""
    matrix = numpy_helper.from_array(np.random.default_rng(0).random((10, 64), dtype=np.float32) / 8, weight)
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 8, 8])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 10])], [matrix])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), path)
    return path


def dense(output: str, weight: str = "fc.weight") -> list[onnx.NodeProto]:
    return [helper.make_node("Flatten", ["x"], ["flat"], name="flatten"),
            helper.make_node("Gemm", ["flat", weight], [output], transB=1, name="fc")]


def refusal(folder: Path, file: Path, /, *flags: object, **changes: object) -> str:
    return error_message(attempt(folder, recipe(file, **changes), *flags))


@pytest.mark.parametrize("workers", [1, 2])
def test_resumed_is_undisturbed(workers: int, tmp_path: Path) -> None:
    settings = recipe(DIGITS_ONNX, checkpoint={"every_steps": 5}, eval={"every_steps": 6})
    whole = train(tmp_path / "whole", settings, workers=workers)
    train(tmp_path / "parts", merged(settings, {"train": {"steps": 5}}), workers=workers)
    parts = train(tmp_path / "parts", settings, "--resume", "auto", workers=workers)
    assert parts.losses[-1] == whole.losses[-1]
    assert (parts.folder / "model.safetensors").read_bytes() == (whole.folder / "model.safetensors").read_bytes()


def test_same_weights_as_the_twin(tmp_path: Path) -> None:
    """Same operators on the same numbers: what the import adds to TorchScript's graph computes nothing else."""
    imported = train(tmp_path / "onnx", recipe(DIGITS_ONNX))
    scripted = train(tmp_path / "pt", recipe(ROOT / "models" / "digits_cnn.pt"))
    np.testing.assert_allclose(imported.losses, scripted.losses, rtol=1e-6)


def test_log_has_the_report(tmp_path: Path) -> None:
    run = train(tmp_path, recipe(DIGITS_ONNX))
    text = (run.folder / "run.log").read_text()
    for said in ("opset 20", "BatchNormalization 3", "trainable: 11 tensors", "conv1.weight", "norm1.running_mean"):
        assert said in text
    assert "conv1.weight" not in run.ended[0].out  # only the log has it all


def test_dry_run_has_the_report(tmp_path: Path) -> None:
    ended = run_alone("--config", write_recipe(tmp_path, recipe(DIGITS_ONNX)), "--dry-run", cwd=tmp_path)
    assert_says(ended.out, "import", "opset 20", "trainable: 11 tensors", "statistics: 6 tensors")


def test_what_is_not_supported_is_listed_at_once(tmp_path: Path) -> None:
    nodes = [*dense("a"), helper.make_node("Quantise", ["a"], ["b"], name="q"),
             helper.make_node("Reluu", ["b"], ["c"], name="act"), helper.make_node("Reluu", ["c"], ["logits"], name="act2")]
    assert_says(refusal(tmp_path, small_model(tmp_path / "m.onnx", nodes)), "m.onnx", "Quantise", "'q'", "Reluu", "'act'",
                "'act2'", "opset 20", "Relu")


def test_weight_that_no_gradient_reaches(tmp_path: Path) -> None:
    nodes = [*dense("a"), helper.make_node("Round", ["a"], ["logits"], name="rounding")]
    assert_says(refusal(tmp_path, small_model(tmp_path / "m.onnx", nodes)), "fc.weight", "'rounding'", "model.freeze")


def test_nothing_to_train(tmp_path: Path) -> None:
    nodes = [helper.make_node("Flatten", ["x"], ["flat"]), helper.make_node("Slice", ["flat", "a", "b", "c"], ["logits"])]
    path = small_model(tmp_path / "m.onnx", nodes)
    model = onnx.load(path)
    for name, value in (("a", 0), ("b", 10), ("c", 1)):
        model.graph.initializer.append(numpy_helper.from_array(np.array([value]), name))
    onnx.save(model, path)
    assert_says(refusal(tmp_path, path), "m.onnx", "no weight", "model.unfreeze")


def test_batch_of_another_size(tmp_path: Path) -> None:
    nodes = [*dense("a"), helper.make_node("Reshape", ["a", "shape"], ["logits"])]
    path = small_model(tmp_path / "m.onnx", nodes)
    model = onnx.load(path)
    model.graph.initializer.append(numpy_helper.from_array(np.array([4, 10]), "shape"))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
    onnx.save(model, path)
    assert_says(refusal(tmp_path, path), "batches of 4", "not of", "docs/onnx.md", "data.batch_size")
    train(tmp_path / "fits", recipe(path, data={"batch_size": 4, "eval": None}))


def test_unfreeze_that_matches_nothing(tmp_path: Path) -> None:
    assert_says(refusal(tmp_path, DIGITS_ONNX, model={"unfreeze": ["conv9*"]}), "model.unfreeze", "conv9*")


def test_names_of_the_graph_in_the_recipe(tmp_path: Path) -> None:
    path = small_model(tmp_path / "m.onnx", dense("logits"))
    model = onnx.load(path)
    model.graph.input[0].name = model.graph.node[0].input[0] = "input.1"  # no name that TorchScript could have
    onnx.save(model, path)
    named = train(tmp_path / "named", recipe(path, model={"inputs": {"input.1": "x"}, "output": "logits"}))
    plain = train(tmp_path / "plain", recipe(path))
    assert_same_run(named, plain)
    assert_says(refusal(tmp_path / "wrong", path, model={"inputs": {"inputs.1": "x"}}), "inputs.1", "input_1")


def test_torchscript_cannot_become_onnx(tmp_path: Path) -> None:
    message = refusal(tmp_path, ROOT / "models" / "digits_cnn.pt", "--checkpoint", "none", "--export", "x.onnx")
    assert_says(message, "did not come from an .onnx file", ".safetensors")
    assert not (tmp_path / "x.onnx").exists()


def test_graph_whose_types_do_not_fit(tmp_path: Path) -> None:
    """A list of tensors where a tensor belongs: only TorchScript's compiler finds it."""
    nodes = [*dense("a"), helper.make_node("SequenceConstruct", ["a", "a"], ["list"]),
             helper.make_node("Relu", ["list"], ["logits"], name="act")]
    assert_says(refusal(tmp_path, small_model(tmp_path / "m.onnx", nodes)), "m.onnx", "types")


def test_gone_external_data(tmp_path: Path) -> None:
    path = small_model(tmp_path / "m.onnx", dense("logits"))
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    train(tmp_path / "with", recipe(path))
    (tmp_path / "weights.bin").unlink()
    assert_says(refusal(tmp_path / "without", path), "m.onnx", "weights.bin")
