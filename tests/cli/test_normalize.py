"""normalize: numbers that a run keeps, targets, and model files that normalize by themselves."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from runs import assert_same_weights, assert_says, attempt, error_message, merged, recipe, refused, train
from tensors import write_safetensors

MEAN, STD = [0.5, 0.25, 2.0], [0.5, 3.0, 0.7]
BY_CHANNEL = {"normalize": {"mean": MEAN, "std": STD}}
ROWS, COLUMNS, TARGETS = 96, 3, 2


class Net(nn.Module):
    """[B, 3] or [B, 3, H, W] to [B, 2]."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(COLUMNS, TARGETS)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x.flatten(2).mean(2) if x.dim() > 2 else x)


class Named(Net):
    """The image is the second argument and goes through twice; several outputs."""

    def forward(self, scale: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
        first = self.fc(image.flatten(2).mean(2))
        return first, first * scale + self.fc(image[:, :, 0, 0])


def write_data(folder: Path, images: bool = False) -> dict:
    random = np.random.default_rng(3)
    shape = (ROWS, COLUMNS, 4, 5) if images else (ROWS, COLUMNS)
    x = (random.normal(size=shape) * 3 + 5).astype(np.float32)
    flat = x.reshape(ROWS, COLUMNS, -1).mean(2)
    y = np.stack([1000 + 40 * flat[:, 0] - flat[:, 1], 0.01 * flat[:, 2]], 1) + 0.001 * random.normal(size=(ROWS, TARGETS))
    arrays = {"x": x, "y": y.astype(np.float32), "one": np.ones((ROWS, 1), np.float32)}
    write_safetensors(folder / "data.safetensors", arrays)
    return arrays


def settings(folder: Path, net: nn.Module | None = None, **changes: object) -> dict:
    folder.mkdir(exist_ok=True)
    torch.manual_seed(1)
    torch.jit.script(net or Net()).save(str(folder / "net.pt"))
    base = recipe(folder / "net.pt", folder / "data.safetensors", model={"loss": "mse"}, optimizer={"name": "adamw", "lr": 0.05},
                  eval={"every_epochs": 1, "metrics": ["mse", "mae", "r2"]})
    return merged(base, changes)


def by_channel(x: np.ndarray, mean: list[float], std: list[float]) -> Tensor:
    shape = [-1] + [1] * (x.ndim - 2)
    mean, std = torch.tensor(mean).reshape(shape), torch.tensor(std).reshape(shape)
    return (torch.from_numpy(x) - mean) / std


# ---- model files ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("images", [False, True])
def test_a_model_file_that_normalizes(tmp_path: Path, images: bool) -> None:
    """Bit for bit what the loader and the model do one after the other; the weights and their names stay."""
    arrays = write_data(tmp_path, images)
    own = settings(tmp_path, data={"transforms": [BY_CHANNEL, {"normalize": {"mean": 0.5, "std": 2}}]})
    plain = train(tmp_path / "plain", own)
    whole = train(tmp_path / "whole", merged(own, {"data": {"export_transforms": True}}))
    assert_same_weights(whole, plain)
    inside = torch.jit.load(str(whole.folder / "model.pt"))
    without = torch.jit.load(str(plain.folder / "model.pt"))
    assert list(inside.state_dict()) == list(without.state_dict())
    normalized = (by_channel(arrays["x"], MEAN, STD) - 0.5) / 2
    assert torch.equal(inside(torch.from_numpy(arrays["x"])), without(normalized))
    half = inside.to(torch.bfloat16)(torch.from_numpy(arrays["x"]).bfloat16())
    assert half.dtype == torch.bfloat16


def test_named_arguments_and_several_outputs(tmp_path: Path) -> None:
    arrays = write_data(tmp_path, images=True)
    own = settings(tmp_path, Named(), model={"inputs": {"image": "x", "scale": "one"}, "output": "1"},
                   data={"transforms": [BY_CHANNEL], "export_transforms": True})
    run = train(tmp_path / "run", own)
    inside = torch.jit.load(str(run.folder / "model.pt"))
    net = Named()
    net.load_state_dict({name: torch.tensor(value) for name, value in run.weights.items()})
    one, x = torch.from_numpy(arrays["one"]), torch.from_numpy(arrays["x"])
    torch.testing.assert_close(inside(one, x), net(one, by_channel(arrays["x"], MEAN, STD)), rtol=1e-5, atol=1e-6)


# ---- targets -------------------------------------------------------------------------------------------------------

def test_metrics_of_a_normalized_target(tmp_path: Path) -> None:
    """The loss is that of the training; metrics and the exported model are in the units of the data."""
    arrays = write_data(tmp_path)
    own = settings(tmp_path, data={"transforms": [{"normalize": "auto"}, {"normalize": {"statistics": "auto", "field": "y"}}],
                                   "export_transforms": True})
    for workers in (1, 2):
        run = train(tmp_path / str(workers), own, workers=workers)
        x, y = (torch.from_numpy(arrays[field]).double() for field in "xy")
        with torch.no_grad():
            out = torch.jit.load(str(run.folder / "model.pt"))(torch.from_numpy(arrays["x"])).double()
        line, spread = run.evaluation, y.std(0, unbiased=False)
        error = out - y
        # The file computes in float32, with values of 1000 in the first column.
        assert line["mse"] == pytest.approx((error**2).mean().item(), rel=1e-4)
        assert line["mae"] == pytest.approx(error.abs().mean().item(), rel=1e-4)
        assert line["r2"] == pytest.approx(1 - ((error**2).sum() / ((y - y.mean()) ** 2).sum()).item(), rel=1e-6)
        assert line["loss"] == pytest.approx(((error / spread) ** 2).mean().item(), rel=1e-4)
        weights = {name: torch.tensor(value).double() for name, value in run.weights.items()}
        by_hand = ((x - x.mean(0)) / x.std(0, unbiased=False)) @ weights["fc.weight"].T + weights["fc.bias"]
        torch.testing.assert_close(out, by_hand * spread + y.mean(0), rtol=1e-6, atol=1e-5)


# ---- numbers that a run keeps --------------------------------------------------------------------------------------

def test_evaluation_and_export_without_the_training_data(tmp_path: Path) -> None:
    write_data(tmp_path)
    shutil.copy(tmp_path / "data.safetensors", tmp_path / "train.safetensors")
    own = settings(tmp_path, data={"train": {"format": "safetensors", "path": str(tmp_path / "train.safetensors")},
                                   "transforms": [{"normalize": "auto"}], "export_transforms": True},
                   checkpoint={"every_steps": 6})
    run = train(tmp_path / "run", own)
    (tmp_path / "train.safetensors").unlink()
    exported = tmp_path / "exported.pt"
    for checkpoint in ("auto", run.checkpoint(12)):
        ended = attempt(tmp_path / "run", own, "--eval-only", "--export", exported, "--checkpoint", checkpoint)
        assert [e.code for e in ended] == [0], ended[0].err
        x = torch.ones(4, COLUMNS)
        assert torch.equal(torch.jit.load(str(exported))(x), torch.jit.load(str(run.folder / "model.pt"))(x))
    message = error_message(attempt(tmp_path / "other", own, "--eval-only", "--checkpoint", "none"))
    assert "train.safetensors" in message  # no run has measured anything


def test_a_model_that_normalizes_is_not_normalized_twice(tmp_path: Path) -> None:
    """Its file says so, also one that was exported from it; weights do not normalize."""
    write_data(tmp_path)
    own = settings(tmp_path, data={"transforms": [{"normalize": "auto"}, {"normalize": {"statistics": "auto", "field": "y"}}],
                                   "export_transforms": True})
    run = train(tmp_path / "run", own)
    again = tmp_path / "again.pt"
    for path in (run.folder / "model.pt", again):
        alone = merged(own, {"model": {"path": str(path)}})
        message = refused(tmp_path / path.stem, alone, "--eval-only", "--checkpoint", "none")
        assert_says(message, f"data.transforms: '{path}' normalizes by itself", "leave normalize and export_transforms out")
        plain = merged(alone, {"data": {"transforms": [], "export_transforms": False}})
        flags = ("--export", again) if path != again else ()
        ended, = attempt(tmp_path / f"plain-{path.stem}", plain, "--eval-only", *flags, "--checkpoint", "none")
        assert ended.code == 0, ended.err
        # The file computes in float32, with values of 1000.
        assert mse_in(ended.out) == pytest.approx(run.evaluation["mse"], rel=1e-4)
    for file in ("model.safetensors", "model.pt"):  # weights alone
        weights = merged(own, {"model": {"weights": str(run.folder / file)}})
        ended, = attempt(tmp_path / "weights", weights, "--eval-only", "--checkpoint", "none")
        assert ended.code == 0, ended.err
        assert mse_in(ended.out) == pytest.approx(run.evaluation["mse"], abs=1e-4)  # as it is printed
    both = merged(own, {"model": {"path": str(run.folder / "model.pt"), "weights": str(run.folder / "model.safetensors")}})
    assert_says(refused(tmp_path / "both", both, "--eval-only", "--checkpoint", "none"), "normalizes by itself")
    assert_says(refused(tmp_path / "tuned", both), "normalizes by itself")
    tuned = train(tmp_path / "on", merged(both, {"data": {"transforms": [], "export_transforms": False}}))
    alone = merged(own, {"model": {"path": str(tuned.folder / "model.pt")}})
    assert_says(refused(tmp_path / "again", alone, "--eval-only", "--checkpoint", "none"), "normalizes by itself")


def mse_in(out: str) -> float:
    return float(re.search(r"mse ([\d.]+)", out)[1])


def test_a_resumed_run_keeps_its_numbers(tmp_path: Path) -> None:
    """Also where the training data has been moved in the meantime by so much that others would be measured."""
    arrays = write_data(tmp_path)
    own = settings(tmp_path, data={"transforms": [{"normalize": "auto"}]}, checkpoint={"every_steps": 6}, schedule={"t_max": 12})
    first = train(tmp_path / "run", own, "--set", "train.steps=6")
    kept = (first.folder / "recipe.yaml").read_text()
    write_safetensors(tmp_path / "data.safetensors", {**arrays, "x": arrays["x"] + 100})
    resumed = train(tmp_path / "run", own, "--resume", "auto")
    numbers = [line for line in kept.splitlines() if "normalize" in line]
    assert len(numbers) == 1 and "null" in numbers[0] and "auto" not in numbers[0]
    assert numbers[0] in (resumed.folder / "recipe.yaml").read_text().splitlines()


# ---- mistakes ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("transforms", "changes", "parts"), [
    ([], {}, ["data.export_transforms", "no normalize"]),
    ([{"normalize": {"mean": 1, "std": 2, "field": "one"}}], {}, ["data.export_transforms", "no normalize"]),
    (["normalize"], {}, ["expected auto, or mean and std"]),
    ([BY_CHANNEL, {"resize": [3, 3]}], {}, ["data.export_transforms", "resize", "in front of normalize"]),
    ([{"normalize": {"mean": 1, "std": 2, "field": "y"}}], {"model": {"output": "1", "inputs": {"image": "x", "scale": "one"}}},
     ["data.export_transforms", "the target is normalized", "Tuple"]),
])
def test_what_cannot_be_exported(tmp_path: Path, transforms: list, changes: dict, parts: list[str]) -> None:
    write_data(tmp_path, images=True)
    net = Named() if changes else None
    own = merged(settings(tmp_path, net, data={"transforms": transforms, "export_transforms": True}), changes)
    assert_says(refused(tmp_path / "run", own), *parts)
    exports = attempt(tmp_path / "run", own, "--checkpoint", "none", "--export", tmp_path / "out.pt")
    assert_says(error_message(exports), *parts)
    assert not (tmp_path / "out.pt").exists()
