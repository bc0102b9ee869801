"""What --dry-run says of an exported program."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.export.pt2_archive._package import package_pt2

from exported import example, export, program_of, settings
from networks import Cnn, Fields, Gpt, images, next_words, vectors
from program import run_alone
from runs import assert_says, write_recipe


def report(file: Path, data: Fields, *flags: object) -> str:
    config = write_recipe(file.parent, settings(file, data))
    ended = run_alone("--config", config, "--dry-run", *flags, cwd=file.parent)
    assert ended.code == 0, ended.err + ended.out
    assert not (file.parent / "run").exists()
    return ended.out


def test_source_tensors_and_inputs(tmp_path: Path) -> None:
    data = next_words()
    text = report(export(Gpt().train(), data, tmp_path), data)
    version = torch.__version__
    assert_says(text, f"written by PyTorch {version}", "layer_norm 5", "trainable: 29 tensors",
                "tied, and trained as one: 'head.weight' to 'tokens.weight'", "input 'x': int64[", ", 12], exported with [2, 12]")


def test_what_follows_the_mode(tmp_path: Path) -> None:
    model, data = Cnn(dropout=0.1).train(), images(16)
    model.norm1.eval()
    text = report(export(model, data, tmp_path), data)
    assert_says(text, "exported in train mode; these follow the trainer's mode: batch_norm 1, dropout 1",
                "these were in eval mode when the rest was in train mode, and stay so: batch_norm 1 (norm1)",
                "buffers and parameters that forward writes, in training alone: norm2.num_batches_tracked")


def test_what_an_export_in_eval_mode_has_lost(tmp_path: Path) -> None:
    data = images(16)
    text = report(export(Cnn(dropout=0.1).eval(), data, tmp_path), data)
    assert_says(text, "exported in eval mode; these are on in training all the same: batch_norm 2, dropout 1",
                "has lost what runs in training alone", "model.train() before torch.export.export keeps them")


def test_a_program_without_modes(tmp_path: Path) -> None:
    data = vectors()
    text = report(export(nn.Linear(8, 4), data, tmp_path), data)
    assert_says(text, "nothing in the program tells train from eval mode")


def test_noise_that_nothing_switches_off(tmp_path: Path) -> None:
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x + 0.1 * torch.randn_like(x) if self.training else x)

    data = vectors()
    assert_says(report(export(Noisy().train(), data, tmp_path), data),
                "random in evaluation, too: randn_like 1")


def test_parameters_that_forward_writes(tmp_path: Path) -> None:
    class Centred(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.dropout = nn.Linear(8, 4), nn.Dropout(0.1)
            self.mean = nn.Parameter(torch.zeros(8), requires_grad=False)

        def forward(self, x: Tensor) -> Tensor:
            if self.training:
                self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            return self.dropout(self.layer(x - self.mean))

    data = vectors()
    assert_says(report(export(Centred().train(), data, tmp_path), data),
                "buffers and parameters that forward writes, in training alone: mean")


def test_two_programs(tmp_path: Path) -> None:
    model, data = Cnn(), images(16)
    programs = {mode: program_of(model.train(mode == "train"), example(data)) for mode in ("train", "eval")}
    package_pt2(tmp_path / "model.pt2", exported_programs=programs)
    assert_says(report(tmp_path / "model.pt2", data), "two programs: 'train' runs in training and 'eval' in evaluation")


def test_frozen_parameters_and_a_fixed_batch(tmp_path: Path) -> None:
    model, data = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4)), vectors()
    model[0].requires_grad_(False)
    torch.export.save(torch.export.export(model, (torch.from_numpy(data["x"][:8].copy()),)), tmp_path / "model.pt2")
    text = report(tmp_path / "model.pt2", data)
    assert_says(text, "frozen, as requires_grad is False in the file: 2 tensors",
                "has a first dimension of 8 in the file: where that is the batch, train at that size")


@pytest.mark.parametrize("flags", [(), ("--verbose",)])
def test_the_program_as_text(flags: tuple[str, ...], tmp_path: Path) -> None:
    data = vectors()
    text = report(export(nn.Linear(8, 4), data, tmp_path), data, *flags)
    assert ("linear = torch.linear(input, self.weight, self.bias)" in text) == bool(flags)
    assert ("  weight float32[4, 8]" in text) == bool(flags)
