"""One network as .pt, .onnx and .pt2 trains to the same weights."""

from __future__ import annotations

import numpy as np
import pytest

from program import ROOT
from runs import recipe, train

FORMATS = ("pt", "onnx", "pt2")
# Of the way that training moved a tensor: ONNX's graph adds up in another order.
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("formats")
    changes = {"train": {"steps": 20}, "optimizer": {"name": "sgd", "lr": 0.05}, "eval": {"every_steps": 20}}
    return {form: train(folder / form, recipe(ROOT / "models" / f"digits_cnn.{form}", **changes)) for form in FORMATS}


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """The weights before training, or as good as that."""
    settings = recipe(ROOT / "models" / "digits_cnn.pt", train={"steps": 1}, optimizer={"name": "sgd", "lr": 1e-20})
    return train(tmp_path_factory.mktemp("start"), settings).weights


@pytest.mark.parametrize("form", ["onnx", "pt2"])
def test_weights_are_the_same(form: str, runs: dict, start: dict[str, np.ndarray]) -> None:
    expected, ours = runs["pt"], runs[form]
    assert expected.losses[-1] < expected.losses[0]
    np.testing.assert_allclose(ours.losses, expected.losses, rtol=1e-5)
    np.testing.assert_allclose(ours.evaluation["loss"], expected.evaluation["loss"], rtol=1e-5)
    trained = {name for name in ours.weights if ours.weights[name].dtype == np.float32}
    assert trained == {name for name in expected.weights if expected.weights[name].dtype == np.float32}
    for name in trained:
        moved = np.linalg.norm(expected.weights[name] - start[name])
        error = np.linalg.norm(ours.weights[name] - expected.weights[name])
        assert error <= TOLERANCE * moved + 1e-9, name


def test_pt2_is_bit_by_bit_as_torchscript(runs: dict) -> None:
    np.testing.assert_array_equal(runs["pt2"].losses, runs["pt"].losses)
    for name, array in runs["pt"].weights.items():
        np.testing.assert_array_equal(runs["pt2"].weights[name], array, err_msg=name)


def test_each_run_leaves_its_own_format(runs: dict) -> None:
    left = {form: {path.name for path in run.folder.glob("model*")} for form, run in runs.items()}
    both = {"model.pt", "model.safetensors"}
    assert left == {"pt": both, "onnx": both | {"model.onnx"}, "pt2": both | {"model.pt2"}}
