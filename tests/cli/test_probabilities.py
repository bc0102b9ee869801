"""TorchScript models that end in the softmax or sigmoid that their loss applies itself: a warning, and none for others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from program import run_alone
from runs import assert_says, recipe, train, write_recipe
from tensors import write_safetensors

SAMPLES, FEATURES, CLASSES = 32, 6, 4


def make_data(folder: Path, loss: str) -> Path:
    rng = np.random.default_rng(0)
    x = rng.random((SAMPLES, FEATURES), dtype=np.float32)
    y = rng.integers(0, CLASSES, SAMPLES) if loss in ("cross_entropy", "nll") else rng.random((SAMPLES, CLASSES), np.float32)
    write_safetensors(folder / "data.safetensors", {"x": x, "y": y})
    return folder / "data.safetensors"


def make_model(folder: Path, *end: object) -> Path:
    """A linear layer whose output lies between 0 and 1, and `end`."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    fc = nn.Linear(FEATURES, CLASSES)
    with torch.no_grad():
        fc.weight.uniform_(0, 0.1)
        fc.bias.uniform_(0.1, 0.3)
    torch.jit.script(nn.Sequential(fc, *end)).save(folder / "model.pt")
    return folder / "model.pt"


def said(folder: Path, loss: str, *end: object, **changes: object) -> tuple[str, str]:
    """What a run and --dry-run say about the model."""
    settings = recipe(make_model(folder, *end), make_data(folder, loss), model={"loss": loss}, train={"steps": 1}, **changes)
    run = train(folder, settings)
    dry = run_alone("--config", write_recipe(folder, settings), "--dry-run", cwd=folder)
    assert dry.code == 0 and dry.err == ""
    return run.ended[0].err, "\n".join(line for line in dry.out.splitlines() if "warning: " in line)


def softmax(*dim: int):
    from torch import nn

    return nn.Softmax(*dim)


@pytest.mark.parametrize("amp", ["off", "bf16"])
def test_softmax(amp: str, tmp_path: Path) -> None:
    for text in said(tmp_path, "cross_entropy", softmax(1), amp={"dtype": amp}):
        assert_says(text, "warning: the output of model", "model.pt", "is probabilities already",
                    "the loss cross_entropy takes the softmax of it once more",
                    "remove the softmax from the model, or use loss nll on log-probabilities")
        assert len(text.splitlines()) == 1


def test_sigmoid(tmp_path: Path) -> None:
    from torch import nn

    for text in said(tmp_path, "bce_with_logits", nn.Sigmoid(), nn.Flatten()):
        assert_says(text, "warning: ", "the loss bce_with_logits takes the sigmoid of it once more",
                    "remove the sigmoid from the model")


@pytest.mark.parametrize(("loss", "end"), [
    ("cross_entropy", []),
    ("cross_entropy", ["LogSoftmax"]),
    ("cross_entropy", ["Sigmoid"]),
    ("nll", ["LogSoftmax"]),
    ("bce_with_logits", []),  # between 0 and 1, but out of no sigmoid
    ("mse", ["Softmax"]),
])
def test_no_warning(loss: str, end: list[str], tmp_path: Path) -> None:
    from torch import nn

    modules = [getattr(nn, name)(*([1] if "Softmax" in name else [])) for name in end]
    assert said(tmp_path, loss, *modules) == ("", "")


def test_softmax_over_another_dimension_than_that_of_the_classes(tmp_path: Path) -> None:
    assert said(tmp_path, "cross_entropy", softmax(0)) == ("", "")
