"""What an exported program does in training and in evaluation: switches, buffers, packages with a program for each."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export.pt2_archive._package import package_pt2

from exported import BATCH, evaluate, example, export, load_weights, program_of, settings, train_eagerly
from networks import (BiLstm, Cnn, Gpt, StochasticDepth, drop_as_torchvision, drop_as_transformers, drop_in_place, images,
                      next_words, vectors, words)
from runs import Run, train

STEPS = 6


def run_of(network: nn.Module, data: dict, folder: Path, **changes: object) -> Run:
    return train(folder, settings(export(network, data, folder), data, steps=STEPS, **changes))


NOISY = {
    "dropout": (lambda: Cnn(dropout=0.5), lambda: images(16)),
    "attention": (lambda: Gpt(dropout=0.2), next_words),
    "lstm": (lambda: BiLstm(dropout=0.5), words),
    "depth_torchvision": (lambda: StochasticDepth(drop_as_torchvision), vectors),
    "depth_transformers": (lambda: StochasticDepth(drop_as_transformers), vectors),
    "depth_in_place": (lambda: StochasticDepth(drop_in_place), vectors),
}


@pytest.mark.parametrize("name", NOISY)
def test_noise_is_in_training_alone(name: str, tmp_path: Path) -> None:
    """Evaluation is eager's on the same weights; training depends on the seed."""
    make, data_of = NOISY[name]
    model, data = make().train(), data_of()
    runs = [run_of(model, data, tmp_path / str(seed), seed=seed) for seed in (1, 2)]
    assert (runs[0].losses != runs[1].losses).any()
    for run in runs:
        trained = load_weights(make(), run.weights)
        np.testing.assert_allclose(run.evaluation["loss"], evaluate(trained, data), rtol=1e-6)


@pytest.mark.parametrize("drop", [drop_as_torchvision, drop_as_transformers, drop_in_place])
def test_noise_keeps_the_mean(drop: Callable[[Tensor, float], Tensor], tmp_path: Path) -> None:
    """Over many seeds: what is kept is scaled up by what is dropped."""
    model, data = StochasticDepth(drop).train(), vectors()
    file = export(model, data, tmp_path)
    module = _module_of(file, data, tmp_path)
    x = torch.from_numpy(data["x"])
    with torch.no_grad():
        expected = model.eval()(x)
        torch.testing.assert_close(module.eval()(x), expected)
        module.train()
        hidden = torch.stack([module(x) for _ in range(50)])
    assert (hidden[0] != hidden[1]).any()
    assert hidden.isfinite().all()
    # Means of 50 draws: within four standard errors.
    error = (hidden.mean(0) - expected).abs() / (hidden.std(0) / 50**0.5 + 1e-6)
    assert error.median() < 4


def _module_of(file: Path, data: dict, folder: Path) -> torch.jit.ScriptModule:
    """What the program made of the file."""
    run = train(folder, settings(file, data, lr=1e-12, steps=1))
    return torch.jit.load(str(run.folder / "model.pt"))


def test_a_layer_that_was_in_eval_mode_stays_so(tmp_path: Path) -> None:
    model, data = Cnn().train(), images(16)
    model.norm1.eval()
    run = run_of(model, data, tmp_path)
    reference = train_eagerly(model, data, lr=0.02, steps=STEPS)
    np.testing.assert_allclose(run.losses, reference.losses, rtol=1e-5)
    np.testing.assert_array_equal(run.weights["norm1.running_mean"], np.zeros(8))
    assert run.weights["norm1.num_batches_tracked"] == 0
    assert run.weights["norm2.num_batches_tracked"] == STEPS


def test_an_export_in_eval_mode_trains_all_the_same(tmp_path: Path) -> None:
    """All of it but what it has lost: the counters of batches."""
    model, data = Cnn().eval(), images(16)
    run = run_of(model, data, tmp_path)
    reference = train_eagerly(model.train(), data, lr=0.02, steps=STEPS)
    np.testing.assert_allclose(run.losses, reference.losses, rtol=1e-5)
    np.testing.assert_allclose(run.evaluation["loss"], reference.evaluation, rtol=1e-5)
    np.testing.assert_allclose(run.weights["norm1.running_mean"], model.norm1.running_mean.numpy(), rtol=1e-4, atol=1e-7)
    assert run.weights["norm1.num_batches_tracked"] == 0


def test_two_programs_are_exact_where_one_is_not(tmp_path: Path) -> None:
    """A dropout that is always on is no different from others in one program."""

    class AlwaysOn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.norm, self.last = nn.Linear(8, 64), nn.BatchNorm1d(64), nn.Linear(64, 4)

        def forward(self, x: Tensor) -> Tensor:
            x = self.norm(F.dropout(self.first(x), 0.5, training=True))
            return self.last(x * 2 if self.training else x)

    model, data = AlwaysOn(), vectors()
    programs = {mode: program_of(model.train(mode == "train"), example(data)) for mode in ("train", "eval")}
    package_pt2(tmp_path / "model.pt2", exported_programs=programs)
    run = train(tmp_path, settings(tmp_path / "model.pt2", data, steps=STEPS))
    module = torch.jit.load(str(run.folder / "model.pt")).eval()
    x = torch.from_numpy(data["x"])
    with torch.no_grad():
        assert (module(x) != module(x)).any()  # always on
        torch.manual_seed(5)
        ours = module(x)
        torch.manual_seed(5)
        torch.testing.assert_close(ours, load_weights(model, run.weights).eval()(x))
    assert run.weights["norm.num_batches_tracked"] == STEPS


class Averaging(nn.Module):
    """Buffers that forward writes itself: through a view, and as spectral norm does."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8))
        self.dropout, self.last = nn.Dropout(0.0), nn.Linear(8, 4)
        self.register_buffer("means", torch.zeros(2, 8))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.dropout(self.first(x))
        if self.training:
            self.means[1].mul_(0.9).add_(hidden.detach().mean(0), alpha=0.1)
        return self.last(hidden - self.means[1])


def trained_alike(model: nn.Module, data: dict[str, np.ndarray], folder: Path) -> Run:
    """A run whose losses are those of eager PyTorch, which trains `model` itself."""
    run = run_of(model, data, folder)
    reference = train_eagerly(model, data, lr=0.02, steps=STEPS)
    np.testing.assert_allclose(run.losses, reference.losses, rtol=1e-5)
    np.testing.assert_allclose(run.evaluation["loss"], reference.evaluation, rtol=1e-5)
    return run


def assert_same_state(run: Run, model: nn.Module) -> None:
    for name, tensor in model.state_dict().items():
        np.testing.assert_allclose(run.weights[name], tensor.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)


def test_buffers_that_forward_writes(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model, data = Averaging().train(), vectors()
    run = trained_alike(model, data, tmp_path)
    assert_same_state(run, model)
    assert np.abs(run.weights["means"][1]).max() > 0


class Clipped(nn.Module):
    """What stands under no_grad is written in place: a weight of norm 1 at most, then activations."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.first.weight.div_(self.first.weight.norm(dim=1, keepdim=True).clamp(min=1.0))
        hidden = self.first(x)
        with torch.no_grad():
            scale = hidden.abs().max() + 1
            hidden.mul_(0.5)
        return self.last(hidden * scale)


def test_in_place_without_gradients(tmp_path: Path) -> None:
    """Gradients go on through what was written, as in Python."""
    torch.manual_seed(2)
    model, data = Clipped().train(), vectors()
    with torch.no_grad():
        model.first.weight.mul_(3)
    run = run_of(model, data, tmp_path)
    reference = train_eagerly(model, data, lr=0.02, steps=STEPS)
    np.testing.assert_allclose(run.losses, reference.losses, rtol=1e-5)


class Chunks(nn.Module):
    """Buffers that are written through parts of them."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)
        self.register_buffer("sums", torch.zeros(3, 8))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            first, second = self.sums[:2].chunk(2)
            first.mul_(0.9).add_(x.mean(0), alpha=0.1)
            second.add_(1.0)
            for row in self.sums.unbind():
                row.mul_(0.99)
        return self.layer(x - self.sums.sum(0))


def test_buffers_that_are_written_in_parts(tmp_path: Path) -> None:
    torch.manual_seed(3)
    model, data = Chunks().train(), vectors()
    run = trained_alike(model, data, tmp_path)
    np.testing.assert_allclose(run.weights["sums"], model.sums.numpy(), rtol=1e-5)


def test_names_that_are_no_identifiers(tmp_path: Path) -> None:
    """Those of Python, in every file of the run."""
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleDict({"conv-1": nn.Linear(8, 8), "conv_1": nn.Linear(8, 8), "a b/c": nn.BatchNorm1d(8)})
            self.head = nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.parts["a b/c"](self.parts["conv-1"](x) * self.parts["conv_1"](x)))

    model, data = Odd().train(), vectors()
    torch.manual_seed(4)
    run = run_of(model, data, tmp_path, model={"freeze": ["parts.conv-1.*"]})
    assert set(run.weights) == set(model.state_dict())
    for parameter in model.parts["conv-1"].parameters():
        parameter.requires_grad_(False)
    reference = train_eagerly(model, data, lr=0.02, steps=STEPS)
    np.testing.assert_allclose(run.losses, reference.losses, rtol=1e-5)
    np.testing.assert_allclose(run.evaluation["loss"], reference.evaluation, rtol=1e-5)
    assert torch.jit.load(str(run.folder / "model.pt")).state_dict().keys() == model.state_dict().keys()


class Teacher(nn.Module):
    """Parameters that forward writes: the mean of another layer's, as a mean teacher has it, and that of the inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.dropout, self.last = nn.Linear(8, 8), nn.Dropout(0.0), nn.Linear(8, 4)
        self.teacher = copy.deepcopy(self.layer).requires_grad_(False)
        self.mean = nn.Parameter(torch.zeros(8), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            with torch.no_grad():
                for own, other in zip(self.teacher.parameters(), self.layer.parameters(), strict=True):
                    own.mul_(0.9).add_(other, alpha=0.1)
        x = x - self.mean
        return self.last(self.dropout(self.layer(x)) + self.teacher(x))


def test_parameters_that_forward_writes(tmp_path: Path) -> None:
    """Neither the trial before the first step nor an evaluation writes them."""
    torch.manual_seed(1)
    model, data = Teacher().train(), vectors()
    run = trained_alike(model, data, tmp_path)
    assert_same_state(run, model)


def test_statistics_that_are_not_of_the_state_dict(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model, data = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)).train(), vectors()
    model[1]._non_persistent_buffers_set.update(("running_mean", "running_var", "num_batches_tracked"))
    run = trained_alike(model, data, tmp_path)
    for name in ("running_mean", "running_var"):
        np.testing.assert_allclose(run.weights[f"1.{name}"], getattr(model[1], name).numpy(), rtol=1e-4, atol=1e-6)


class WritesIntoItsInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.mul_(2))


def test_an_input_that_forward_writes(tmp_path: Path) -> None:
    """The check of the written file feeds one batch to two models."""
    model, data = WritesIntoItsInput(), vectors()
    steps = len(data["y"]) // BATCH  # eager PyTorch, too, sees each sample once
    run = train(tmp_path, settings(export(model, data, tmp_path), data, steps=steps))
    copied = {name: array.copy() for name, array in data.items()}
    np.testing.assert_allclose(run.losses, train_eagerly(model, copied, lr=0.02, steps=steps).losses, rtol=1e-5)


def test_frozen_statistics(tmp_path: Path) -> None:
    """model.freeze_statistics, for one of two batch norms."""
    model, data = Cnn().train(), images(16)
    run = run_of(model, data, tmp_path, model={"freeze": ["norm1.*"], "freeze_statistics": True})
    model.norm1.eval().requires_grad_(False)
    reference = train_eagerly(model, data, lr=0.02, steps=STEPS)
    np.testing.assert_allclose(run.losses, reference.losses, rtol=1e-5)
    np.testing.assert_array_equal(run.weights["norm1.running_mean"], np.zeros(8))
    assert run.weights["norm1.num_batches_tracked"] == 0
    assert run.weights["norm2.num_batches_tracked"] == STEPS
