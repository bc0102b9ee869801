"""What --export writes to .onnx: the trained model as onnxruntime runs it; the same file where nothing changed, but for
the places of external data.

Some networks and forms by default, all of them with DECENT_ONNX_ALL=1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import inference
from catalogue import EXAMPLES, make_data
from harness import TrainedRun, cases, export, make_recipe, train_recipe, write_only
from runs import assert_says, merged

FORMS = ("D", "O", "LT", "LN")
CHOSEN = {"D": ["batch_norm_mlp", "gpt"], "O": ["batch_norm_mlp"], "LT": ["resnet18", "vit", "several_outputs"],
          "LN": ["bert", "lstm", "clicks"]}
UNTRAINED = {"D": ["batch_norm_mlp", "unet"], "O": ["batch_norm_mlp"], "LT": ["resnet18", "mobilenet_v3_small"],
             "LN": ["resnet18", "gpt", "lstm"]}


def inputs_of(name: str, rows: int) -> dict[str, np.ndarray]:
    fields = make_data(name)
    return {key: fields[key][:rows] for key in EXAMPLES[name].inputs}


@torch.no_grad()
def torchscript_outputs(name: str, run: TrainedRun, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """In the graph's order; several are a dictionary."""
    model = torch.jit.load(str(run.run.folder / "model.pt"))
    assert not model.training
    outputs = model(*(torch.from_numpy(array) for array in inputs.values()))
    return [outputs[key].numpy() for key in EXAMPLES[name].outputs] if isinstance(outputs, dict) else [outputs.numpy()]


# ---- trained -------------------------------------------------------------------------------------------------------

# onnxruntime 1.31.1 crashes with the file that PyTorch wrote, too.
CRASHES = {("bag_of_words", "O")}


@pytest.mark.parametrize(("name", "form"), [case for case in cases(CHOSEN, FORMS) if case not in CRASHES])
def test_trained_model_runs_in_onnxruntime(name: str, form: str, trained) -> None:
    run = trained(name, form, "adamw")
    path = run.export("trained.onnx")
    onnx.checker.check_model(str(path), full_check=True)
    inputs = inputs_of(name, 7)  # not the batch size that it was exported or trained with
    ours, theirs = torchscript_outputs(name, run, inputs), inference.run(path, inputs)
    assert len(ours) == len(theirs) == len(EXAMPLES[name].outputs)
    for a, b in zip(ours, theirs.values()):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def assert_same_files(one: Path, other: Path) -> None:
    """Of models with the data beside them, if there is any."""
    for suffix in ("", ".data"):
        files = [path.with_name(path.name + suffix) for path in (one, other)]
        assert files[0].exists() == files[1].exists()
        if files[0].exists():
            assert files[0].read_bytes() == files[1].read_bytes(), files[0]


@pytest.mark.parametrize(("name", "form"), [("batch_norm_mlp", "D"), ("resnet18", "LT")])
def test_a_run_leaves_its_model_in_the_file_s_format(name: str, form: str, trained) -> None:
    """The same bytes as those of an export of that name, which is in the file where the data is beside it."""
    run = trained(name, form, "adamw")
    assert_same_files(run.run.folder / "model.onnx", run.export("same/model.onnx"))
    assert not (run.run.folder / "model-best.onnx").exists()


def test_the_best_model_in_the_file_s_format(trained, exported, data, tmp_path: Path) -> None:
    settings = make_recipe("batch_norm_mlp", exported("batch_norm_mlp", "D"), data("batch_norm_mlp"), "adamw")
    settings = merged(settings, {"eval": {"every_steps": 2}, "checkpoint": {"every_steps": 2, "keep_best": "loss"}})
    run = train_recipe(tmp_path, settings, workers=2)
    assert_same_files(run.run.folder / "model-best.onnx", run.export("same/model-best.onnx", "--checkpoint", "best"))
    assert_says(run.run.ended[0].out, "ONNX", "model.onnx", "model-best.pt")
    assert_says((run.run.folder / "run.log").read_text(), "checked: ", "model-best.onnx")


@pytest.mark.parametrize(("name", "form"), cases(CHOSEN, FORMS))
def test_training_changes_elements_alone(name: str, form: str, trained, exported) -> None:
    path, run = exported(name, form), trained(name, form, "adamw")
    again = run.config.parent / "again" / path.name
    export(run.config, again)
    pairs = zip(onnx.load(str(path)).graph.initializer, onnx.load(str(again)).graph.initializer, strict=True)
    changed = {a.name for a, b in pairs if a != b}
    assert changed
    before, after = load(path), load(again)
    assert [each.key for each in after.metadata_props] == [*(each.key for each in before.metadata_props), "decent_train.data.json"]
    del after.metadata_props[-1]
    for tensor in [*before.graph.initializer, *after.graph.initializer]:
        if tensor.name in changed and tensor.raw_data:
            tensor.raw_data = b"trained"
    assert after == inference_form(before)
    assert external_tensors(again) == external_tensors(path)


# ---- untrained -----------------------------------------------------------------------------------------------------

def round_trip(path: Path, settings: dict, folder: Path) -> Path:
    """Exports the model as it is, under its own name into another folder."""
    run = write_only(folder, settings)
    again = folder / "again" / path.name
    export(run.config, again, "--checkpoint", "none")
    return again


@pytest.mark.parametrize(("name", "form"), cases(UNTRAINED, FORMS))
def test_untrained_model_is_the_same_file(name: str, form: str, exported, data, tmp_path: Path) -> None:
    path = exported(name, form)
    again = round_trip(path, make_recipe(name, path, data(name), "sgd"), tmp_path)
    expected = inference_form(load(path))
    assert load(again) == expected
    assert external_tensors(again) == external_tensors(path)
    assert expected == load(path) or form == "LT", "other exporters write the inference form"
    if expected == load(path) and not external_tensors(path):
        assert again.read_bytes() == path.read_bytes()
    written = {again.name, f"{again.name}.data"} if external_tensors(path) else {again.name}
    assert {file.name for file in again.parent.iterdir()} == written


def load(path: Path) -> onnx.ModelProto:
    """With external data as if it were in the file: where it lies is for whoever writes it to choose."""
    return onnx.load(str(path))


def external_tensors(path: Path) -> list[str]:
    graph = onnx.load(str(path), load_external_data=False).graph
    return [tensor.name for tensor in graph.initializer if tensor.data_location == onnx.TensorProto.EXTERNAL]


def inference_form(model: onnx.ModelProto) -> onnx.ModelProto:
    """What --export may change: modes of batch norm and dropout. Everything else stays, in its order."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for node in result.graph.node:
        if node.op_type == "BatchNormalization":
            for attribute in node.attribute:
                if attribute.name == "training_mode":
                    attribute.i = 0
            del node.output[1:]
        if node.op_type == "Dropout" and len(node.input) == 3:
            del node.input[2]
    return result
