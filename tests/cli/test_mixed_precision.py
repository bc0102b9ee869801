"""Mixed precision and channels_last against PyTorch: autocast, GradScaler, the same steps skipped."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from runs import DIGITS_CNN, assert_same_run, assert_says, attempt, merged, recipe, refused, train
from tensors import write_safetensors

SGD = {"name": "sgd", "lr": 0.05, "momentum": 0.9}
ADAMW = {"name": "adamw", "lr": 3e-3, "weight_decay": 0.1}
# Far too large at first, and soon again: some steps overflow, most do not.
SCALER = {"init_scale": 2.0**22, "growth_factor": 4.0, "backoff_factor": 0.25, "growth_interval": 3}
STEPS = 24

# The updates are rounded in another order, 1e-7 of a weight. Mostly the low precision hides that, and the losses are the
# same bit for bit; where it takes a weight over the border between two numbers of the low precision, that moves by one
# unit, 2^-8 (bf16) or 2^-11 (fp16) of itself, one weight among hundreds. Without autocast losses differ by 9e-4 and 1e-4.
LOSS_TOLERANCE = {"bf16": 2e-4, "fp16": 2e-5}
# Of the way that training moved a tensor, as in tests/parity.
TENSOR_TOLERANCE = 1e-4


def settings_of(dtype: str, model_file: Path, data_file: Path, optimizer: dict, **changes: object) -> dict:
    amp = {"dtype": dtype, **(SCALER if dtype == "fp16" else {})}
    base = recipe(model_file, data_file, data={"shuffle": False}, optimizer=optimizer, amp=amp, train={"steps": STEPS})
    return merged(base, changes)


@pytest.fixture(scope="session")
def expected(model, zoo):
    """(dtype, model, data, optimizer, workers) -> what PyTorch trains."""
    import torch

    import plain

    def get(dtype: str, name: str, data: str, optimizer: dict, workers: int):
        return plain.train(model(name), zoo.make_data(data), optimizer, steps=STEPS, workers=workers,
                           autocast={"bf16": torch.bfloat16, "fp16": torch.float16}[dtype],
                           scaler=SCALER if dtype == "fp16" else None)

    return get


def assert_trained_alike(run, theirs, start: dict[str, np.ndarray], dtype: str) -> None:
    worst = np.max(np.abs(run.losses - theirs.losses) / np.abs(theirs.losses))
    assert worst <= LOSS_TOLERANCE[dtype]
    for name, tensor in theirs.state.items():
        moved = np.linalg.norm((tensor - start[name]).ravel())
        error = np.linalg.norm((run.weights[name].astype(np.float64) - tensor).ravel())
        assert error <= TENSOR_TOLERANCE * moved, f"{name}: {error / moved:.1e}"


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("name", "samples", "optimizer"), [("mlp", "blob", ADAMW), ("conv", "images", SGD)],
                         ids=["mlp", "conv"])
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_trains_as_pytorch(dtype: str, name: str, samples: str, optimizer: dict, workers: int, model, data, expected,
                           tmp_path: Path) -> None:
    import torch

    run = train(tmp_path, settings_of(dtype, model(name), data(samples), optimizer), workers=workers)
    theirs = expected(dtype, name, samples, optimizer, workers)
    start = {key: tensor.numpy() for key, tensor in torch.jit.load(str(model(name))).state_dict().items()}
    assert_trained_alike(run, theirs, start, dtype)
    scales = [line.get("loss_scale") for line in run.lines("train")]
    if dtype == "bf16":
        assert set(scales) == {None}
    else:
        assert scales == theirs.scales
        falls = sum(b < a for a, b in zip(scales, scales[1:]))
        grows = sum(b > a for a, b in zip(scales, scales[1:]))
        assert falls >= 3 and grows >= 2  # the test sees overflows at the start and later


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_autocast_is_on(dtype: str, model, data, tmp_path: Path) -> None:
    """The same run in float32 differs by more than the tolerance."""
    amp = {"init_scale": 1024, "growth_interval": 100}  # no overflow
    low = train(tmp_path / "low", settings_of(dtype, model("mlp"), data("blob"), ADAMW, amp=amp))
    full = train(tmp_path / "full", settings_of("off", model("mlp"), data("blob"), ADAMW))
    assert np.max(np.abs(low.losses - full.losses) / full.losses) > 2 * LOSS_TOLERANCE[dtype]


def test_resumes_with_its_scale(model, data, tmp_path: Path) -> None:
    settings = settings_of("fp16", model("conv"), data("images"), ADAMW, checkpoint={"every_steps": 10})
    whole = train(tmp_path / "whole", settings, workers=2)
    stopped = {**settings, "train": {"steps": 10}}
    train(tmp_path / "parts", stopped, workers=2)
    resumed = train(tmp_path / "parts", settings, "--resume", "auto", workers=2)
    assert_same_run(whole, resumed)


def test_other_worker_count_takes_the_smallest_scale(model, data, tmp_path: Path) -> None:
    settings = settings_of("fp16", model("mlp"), data("blob"), ADAMW, checkpoint={"every_steps": 7})
    settings["train"]["steps"] = 14
    before = train(tmp_path, {**settings, "train": {"steps": 7}}, workers=2)
    import torch
    from safetensors.torch import load_file

    scales = [load_file(before.checkpoint(7) / f"rank-{rank:04}.safetensors")["scaler.scale"] for rank in range(2)]
    after = train(tmp_path, settings, "--resume", "auto", workers=3)
    assert after.lines("train")[7]["loss_scale"] == float(torch.stack(scales).min())


# ---- what overflows and what diverges --------------------------------------------------------------------------------

def blob_with(value: float, row: int, zoo, path: Path) -> Path:
    arrays = zoo.make_data("blob")
    arrays["x"][row, 0] = value
    write_safetensors(path, arrays)
    return path


def test_loss_that_overflows_skips_the_step(model, zoo, tmp_path: Path) -> None:
    """1e30 is a float32, and none in float16: the second batch has no loss. The others train on."""
    file = blob_with(1e30, 8, zoo, tmp_path / "data.safetensors")
    settings = settings_of("fp16", model("mlp"), file, ADAMW, amp={"init_scale": 64, "growth_interval": 100},
                           data={"eval": None})
    run = train(tmp_path, settings)
    lines = run.lines("train")
    assert [line["step"] for line in lines if line["loss"] is None] == [2]
    assert [line["loss_scale"] for line in lines[:4]] == [64, 64, 16, 16]
    assert all(np.isfinite(tensor).all() for tensor in run.weights.values())


def test_batch_norm_survives_an_overflow(tmp_path: Path) -> None:
    """The forward that overflows has written to the running means."""
    random = np.random.default_rng(2)
    arrays = {"x": random.normal(size=(96, 1, 8, 8)).astype(np.float32), "y": random.integers(10, size=96)}
    arrays["x"][8, 0, 0, 0] = 1e30
    write_safetensors(tmp_path / "data.safetensors", arrays)
    run = train(tmp_path, settings_of("fp16", DIGITS_CNN, tmp_path / "data.safetensors", SGD, train={"steps": 8},
                                      amp={"init_scale": 64}, data={"eval": None}), workers=2)
    assert [line["step"] for line in run.lines("train") if line["loss"] is None] == [1, 7]  # two epochs
    assert any("running_mean" in name for name in run.weights)
    assert all(np.isfinite(tensor).all() for tensor in run.weights.values())


def test_loss_that_is_never_finite_diverges(model, zoo, tmp_path: Path) -> None:
    arrays = zoo.make_data("blob")
    arrays["x"][:, 0] = 1e30
    write_safetensors(tmp_path / "data.safetensors", arrays)
    settings = settings_of("fp16", model("mlp"), tmp_path / "data.safetensors", ADAMW, train={"steps": 80},
                           data={"eval": None})
    ended = attempt(tmp_path, settings)
    assert ended[0].code == 5
    assert_says(ended[0].err, "training diverged: the loss of step")


def test_bf16_has_no_scale_to_blame(model, zoo, tmp_path: Path) -> None:
    file = blob_with(math.inf, 8, zoo, tmp_path / "data.safetensors")
    settings = settings_of("bf16", model("mlp"), file, ADAMW, data={"eval": None})
    ended = attempt(tmp_path, settings)
    assert ended[0].code == 5
    assert_says(ended[0].err, "the loss of step 2", "not finite")


def test_update_in_backward_needs_no_scaler(model, data, tmp_path: Path) -> None:
    settings = settings_of("fp16", model("mlp"), data("blob"), ADAMW, parallel={"update": "in_backward"})
    assert_says(refused(tmp_path / "fp16", settings), "parallel.update", "amp.dtype: fp16", "bf16")
    bf16 = settings_of("bf16", model("mlp"), data("blob"), ADAMW, parallel={"update": "in_backward"})
    train(tmp_path / "bf16", bf16)


# ---- channels_last ---------------------------------------------------------------------------------------------------

def last_model(path: Path) -> Path:
    """Refuses images and weights in another order."""
    import torch
    from torch import Tensor, nn

    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 4, 3)
            self.fc = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            assert x.is_contiguous(memory_format=torch.channels_last)
            assert self.conv.weight.is_contiguous(memory_format=torch.channels_last)
            assert self.fc.weight.is_contiguous()
            return self.fc(self.conv(x).relu().mean([2, 3]))

    torch.manual_seed(1)
    torch.jit.script(Last()).save(str(path))
    return path


def test_channels_last(data, tmp_path: Path) -> None:
    import torch

    file = last_model(tmp_path / "last.pt")
    settings = recipe(file, data("images"), data={"shuffle": False}, optimizer=SGD, eval={"every_epochs": 1},
                      model={"memory_format": "channels_last"}, checkpoint={"every_steps": 6})
    run = train(tmp_path, settings, workers=2)
    model = torch.jit.load(str(run.folder / "model.pt"))
    assert model.conv.weight.is_contiguous(memory_format=torch.channels_last)
    assert run.evaluation["accuracy"] > 0.4  # of three classes
    resumed = train(tmp_path, {**settings, "train": {"steps": 18}}, "--resume", "auto", workers=2)
    assert len(resumed.lines("train")) == 18


def test_memory_format_changes_rounding_alone(tmp_path: Path) -> None:
    runs = [train(tmp_path / order, recipe(DIGITS_CNN, model={"memory_format": order}, optimizer=SGD))
            for order in ("contiguous", "channels_last")]
    np.testing.assert_allclose(runs[0].losses, runs[1].losses, rtol=1e-5)  # 12 steps of float32
