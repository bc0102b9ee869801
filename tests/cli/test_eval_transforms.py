"""data.eval_transforms: evaluation and prediction have a list of their own, which a run keeps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from predictions import outputs_of, predicted
from runs import Run, assert_same_run, assert_says, attempt, merged, recipe, refused, train
from tensors import read_safetensors, write_safetensors

ROWS, CLASSES, SIDE = 60, 3, 12
AUTO = {"normalize": "auto"}
# Training sees 6 of 12 pixels, evaluation 8 of them.
LISTS = {"transforms": ["flip", {"random_crop": 6}, AUTO], "eval_transforms": [{"center_crop": 8}, AUTO]}


class Net(nn.Module):
    """Images of any size to scores, by mean and spread of the channels."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        pixels = x.flatten(2)
        return self.fc(torch.cat([pixels.mean(2), (pixels**2).mean(2)], 1))


def settings(folder: Path, **changes: object) -> dict:
    random = np.random.default_rng(5)
    for name, seed in {"train": 0, "new": 3}.items():
        x = 4 + seed + random.normal(size=(ROWS, 2, SIDE, SIDE)) * np.linspace(1, 2, SIDE)
        write_safetensors(folder / f"{name}.safetensors", {"x": x.astype(np.float32), "y": random.integers(0, CLASSES, ROWS)})
    torch.manual_seed(1)
    torch.jit.script(Net()).save(str(folder / "net.pt"))
    source = {"format": "safetensors", "path": str(folder / "train.safetensors")}
    new = {**source, "path": str(folder / "new.safetensors")}
    base = recipe(folder / "net.pt", data={"train": source, "eval": new, "predict": new, "batch_size": 5, **LISTS},
                  optimizer={"lr": 0.05}, eval={"every_steps": 6}, checkpoint={"every_steps": 6, "keep": 5})
    return merged(base, changes)


def middle(folder: Path, name: str, size: int) -> np.ndarray:
    edge = (SIDE - size) // 2
    return arrays(folder, name)["x"][:, :, edge:SIDE - edge, edge:SIDE - edge]


def arrays(folder: Path, name: str) -> dict[str, np.ndarray]:
    return read_safetensors(folder / f"{name}.safetensors")


def numbers(folder: Path) -> dict[str, np.ndarray]:
    """What `auto` is: of the training data, after training's own crop."""
    x = middle(folder, "train", 6).astype(np.float64)
    return {"mean": x.mean((0, 2, 3)), "std": x.std((0, 2, 3))}


def evaluated_inputs(folder: Path) -> np.ndarray:
    by_channel = {key: value.astype(np.float32)[:, None, None] for key, value in numbers(folder).items()}
    return (middle(folder, "new", 8) - by_channel["mean"]) / by_channel["std"]


def loss_of(folder: Path, outputs: np.ndarray) -> float:
    y = torch.from_numpy(arrays(folder, "new")["y"])
    return nn.functional.cross_entropy(torch.from_numpy(outputs).double(), y).item()


@pytest.fixture
def own(tmp_path: Path) -> dict:
    return settings(tmp_path)


def test_evaluation_and_prediction_follow_their_list(own: dict, tmp_path: Path) -> None:
    """In training, from a checkpoint and from an exported file, without the training data, too."""
    run = train(tmp_path / "a", own)
    outputs = outputs_of(run.folder / "model.pt", evaluated_inputs(tmp_path))
    wanted = loss_of(tmp_path, outputs)
    # Sums of float32 over 60 samples, and 4 digits where it is printed.
    assert run.evaluation["loss"] == pytest.approx(wanted, rel=1e-5)
    (tmp_path / "train.safetensors").unlink()
    for model, flags in ((own["model"]["path"], ()), (str(run.folder / "model.pt"), ("--checkpoint", "none"))):
        kept = merged(own, {"output": str(run.folder), "model": {"path": model}})
        ended, = attempt(tmp_path / "e", kept, "--eval-only", *flags)
        assert ended.code == 0, ended.err
        assert_says(ended.out, f"loss {wanted:.4f}")
        found = predicted(tmp_path / "p", kept, "out.npz", *flags)
        # The same products; a batch that lies elsewhere in memory may sum them in another order.
        np.testing.assert_allclose(found["output"], outputs, rtol=1e-5, atol=1e-5)


def test_the_list_stays_with_the_run(own: dict, tmp_path: Path) -> None:
    run = train(tmp_path, own)
    learned = json.loads((run.folder / "data.json").read_text())
    crop, normalize = learned["eval_transforms"]
    assert (crop["name"], crop["keys"]["size"]) == ("center_crop", [8])
    for key, value in numbers(tmp_path).items():
        assert normalize["keys"][key] == pytest.approx(value, rel=1e-9)  # sums in double
        assert normalize["keys"][key] == learned["train"]["transforms"][2]["keys"][key]


def test_without_a_list_data_json_is_as_before(own: dict, tmp_path: Path) -> None:
    run = train(tmp_path, merged(own, {"data": {"eval_transforms": None, "transforms": [AUTO]}}))
    assert "eval_transforms" not in json.loads((run.folder / "data.json").read_text())


def test_an_empty_list_is_no_transform_at_all(own: dict, tmp_path: Path) -> None:
    run = train(tmp_path, merged(own, {"data": {"eval_transforms": [], "transforms": [{"random_crop": 6}]}}))
    outputs = outputs_of(run.folder / "model.pt", arrays(tmp_path, "new")["x"])
    assert run.evaluation["loss"] == pytest.approx(loss_of(tmp_path, outputs), rel=1e-5)


def test_an_exported_model_normalizes_as_evaluation(own: dict, tmp_path: Path) -> None:
    run = train(tmp_path, merged(own, {"data": {"export_transforms": True}}))
    outputs = outputs_of(run.folder / "model.pt", middle(tmp_path, "new", 8))
    assert run.evaluation["loss"] == pytest.approx(loss_of(tmp_path, outputs), rel=1e-5)


def lines_of(run: Run) -> list[dict]:
    return [line for line in run.metrics_without_times if line["kind"] == "eval"]


def test_a_resumed_run_evaluates_by_the_same_list(own: dict, tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", own, workers=2)
    train(tmp_path / "parts", own, "--set", "train.steps=6", workers=2)
    parts = train(tmp_path / "parts", merged(own, {"data": {"threads": 3}}), "--resume", "auto", workers=2)
    assert "eval_transforms" not in parts.ended[0].out
    assert lines_of(parts) == lines_of(whole)
    again = train(tmp_path / "again", merged(own, {"data": {"threads": 2}}), workers=2)
    assert_same_run(again, whole)


def test_another_list_is_said_aloud(own: dict, tmp_path: Path) -> None:
    train(tmp_path, own, "--set", "train.steps=6")
    other = merged(own, {"data": {"eval_transforms": [{"center_crop": 10}, AUTO]}})
    assert_says(train(tmp_path, other, "--resume", "auto").ended[0].out, "data.eval_transforms")


@pytest.mark.parametrize(("data", "parts"), [
    ({"eval_transforms": [{"random_crop": 8}]}, ["data.eval_transforms: random_crop is random", "center_crop"]),
    ({"eval_transforms": ["flip"]}, ["data.eval_transforms: flip is random", "leave it out"]),
    ({"eval_transforms": [{"mixup": 1}]}, ["data.eval_transforms: mixup is random"]),
    ({"eval_transforms": ["crop"]}, ["data.eval_transforms: expected one of resize, center_crop", "crop"]),
    ({"eval_transforms": ["to_float"]}, ["data.eval: transform to_float: field 'x' is float32; expected uint8"]),
    ({"transforms": [], "eval_transforms": [AUTO]}, ["data.eval_transforms: normalize: auto", "no normalize of field 'x'"]),
    ({"eval_transforms": [AUTO, AUTO]}, ["data.eval_transforms: normalize: auto", "no further normalize of field 'x'"]),
    ({"eval_transforms": [{"normalize": {"mean": 1, "std": 2, "field": "y"}}]},
     ["data.eval_transforms: it does not normalize the target 'y' as data.transforms does"]),
    ({"eval_transforms": [AUTO, {"center_crop": 8}], "export_transforms": True},
     ["data.export_transforms: center_crop stands behind normalize in data.eval_transforms"]),
    ({"eval_transforms": [{"center_crop": 8}], "export_transforms": True},
     ["data.export_transforms: data.eval_transforms has no normalize"]),
], ids=["random_crop", "flip", "mixup", "unknown", "does not fit", "auto of nothing", "auto of no second one", "target", "order",
        "no normalize"])
def test_mistakes(own: dict, tmp_path: Path, data: dict, parts: list[str]) -> None:
    assert_says(refused(tmp_path / "run", merged(own, {"data": data})), *parts)


def test_a_model_that_normalizes_is_not_normalized_twice(own: dict, tmp_path: Path) -> None:
    run = train(tmp_path, merged(own, {"data": {"export_transforms": True}}))
    alone = merged(own, {"model": {"path": str(run.folder / "model.pt")},
                         "data": {"transforms": [], "eval_transforms": [{"normalize": {"mean": 0, "std": 1}}]}})
    assert_says(refused(tmp_path / "again", alone, "--eval-only", "--checkpoint", "none"), "data.eval_transforms:", "normalizes by itself")


def test_a_forgotten_normalize_is_a_warning(own: dict, tmp_path: Path) -> None:
    run = train(tmp_path, merged(own, {"data": {"eval_transforms": [{"center_crop": 8}]}}))
    assert_says(run.ended[0].err, "data.eval_transforms does not normalize 'x' as data.transforms does")
