"""Training an exported network follows eager PyTorch, loss by loss and weight by weight.

Some networks and forms by default, all of them in both optimizers with DECENT_ONNX_ALL=1 (many minutes).
"""

from __future__ import annotations

import pytest

import eager
from agreement import assert_agrees
from harness import EVERYTHING, OPTIMIZERS, SCHEDULES, TrainedRun, cases, optimizer_of

FORMS = ("pt", "D", "O", "LT", "LN")
# Exports by dynamo take 2 to 13 s each, so that only some are here.
CHOSEN: dict[str, list[str]] = {
    "pt": ["batch_norm_mlp"],
    "D": ["batch_norm_mlp", "unet", "gpt", "juggler", "clicks"],
    "O": ["batch_norm_mlp", "vit", "bert", "regressor"],
    "LT": ["resnet18", "mobilenet_v3_small", "convnext", "t5", "lstm", "stylist", "several_outputs"],
    "LN": ["efficientnet_b0", "gpt", "lstm_states", "gru", "rnn", "bag_of_words", "batch_norm_mlp"],
}


def with_optimizers(pairs: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """By turns, or with DECENT_ONNX_ALL=1 both."""
    names = list(OPTIMIZERS)
    return [(*pair, name) for i, pair in enumerate(pairs) for name in (names if EVERYTHING else [names[i % 2]])]


def check(name: str, form: str, optimizer: str, ours: TrainedRun) -> None:
    imported = ours.imported()
    model = eager.as_exported(name, form)
    found = eager.follow(name, form, model, imported)
    reference = eager.train(name, model, found, optimizer_of(name, optimizer), SCHEDULES[optimizer])
    assert_agrees(name, ours.run, imported, found, reference)


@pytest.mark.parametrize(("name", "form", "optimizer"), with_optimizers(cases(CHOSEN, FORMS)))
def test_training_follows_eager(name: str, form: str, optimizer: str, trained) -> None:
    check(name, form, optimizer, trained(name, form, optimizer))
