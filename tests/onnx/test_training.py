"""Training an exported network follows eager PyTorch, loss by loss and weight by weight.

Some networks and forms by default, all of them in both optimizers with DECENT_ONNX_ALL=1 (many minutes).
"""

from __future__ import annotations

import fnmatch

import numpy as np
import pytest

import eager
from catalogue import EXAMPLES, STEPS
from eager import Imported, Trained
from harness import EVERYTHING, OPTIMIZERS, SCHEDULES, TrainedRun, cases
from matching import Match, Tensors

# Other kernels and another order of sums move a loss by 1e-7 to 3e-7 of itself in 20 steps of fp32 (tests/parity); a
# mistake in an operator, its gradient, a weight's decay or the running statistics moves it by 1e-4 and more.
LOSS_TOLERANCE = 1e-5

# Of the way that training moved a tensor. Gradients carry the same rounding, which Adam, dividing by their size, shows
# in elements with tiny gradients.
TENSOR_TOLERANCE = 1e-4

FORMS = ("pt", "D", "O", "LT", "LN")
# Exports by dynamo take 2 to 13 s each, so that only some are here.
CHOSEN: dict[str, list[str]] = {
    "pt": list(EXAMPLES),
    "D": ["batch_norm_mlp", "unet", "gpt", "juggler", "clicks"],
    "O": ["batch_norm_mlp", "vit", "bert", "regressor"],
    "LT": ["resnet18", "mobilenet_v3_small", "convnext", "t5", "lstm", "stylist", "several_outputs"],
    "LN": ["efficientnet_b0", "gpt", "lstm_states", "gru", "rnn", "bag_of_words", "batch_norm_mlp"],
}


def with_optimizers(pairs: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """By turns, or with DECENT_ONNX_ALL=1 both."""
    names = list(OPTIMIZERS)
    return [(*pair, name) for i, pair in enumerate(pairs) for name in (names if EVERYTHING else [names[i % 2]])]


def compared_places(name: str, found: Match, start: Tensors) -> np.ndarray:
    """True at the elements of eager whose gradient is not zero in true arithmetic."""
    compared = {key: np.ones(tensor.shape, dtype=bool) for key, tensor in start.items()}
    for glob, (_, part) in EXAMPLES[name].zero_gradient.items():
        keys = fnmatch.filter(start, glob)
        assert keys, f"no parameter of {name} is {glob}"
        for key in keys:
            compared[key][part] = False
    return np.concatenate([compared[key].ravel() for key in found.offsets])


def compare_weights(name: str, ours: Tensors, imported: Imported, found: Match, reference: Trained) -> None:
    compared = compared_places(name, found, reference.start)
    squares = np.zeros(2)  # of the error and of the distance moved, over all tensors
    for key, places in found.places.items():
        theirs, start = found.gather(key, reference.state).astype(np.float64), imported.tensors[key]
        where = compared[places]
        error = np.linalg.norm((ours[key] - theirs)[where])
        moved = np.linalg.norm((theirs - start)[where])
        assert (moved > 0) == (where.any() and found_moves(key, imported)), f"{key} moved by {moved}"
        assert error <= TENSOR_TOLERANCE * moved, f"{key} differs by {error / moved:.1e} of the way it was trained"
        squares += error**2, moved**2
    assert squares[0] <= TENSOR_TOLERANCE**2 * squares[1]


def found_moves(key: str, imported: Imported) -> bool:
    return key in imported.trainable or key.endswith(("running_mean", "running_var"))


def check(name: str, form: str, optimizer: str, ours: TrainedRun) -> None:
    imported = ours.imported()
    model = eager.as_exported(name, form)
    found = eager.follow(model, imported, keeps_statistics=form != "LT")
    reference = eager.train(name, model, found, OPTIMIZERS[optimizer], SCHEDULES[optimizer])
    assert reference.losses[-5:].mean() < 0.98 * reference.losses[:5].mean(), "nothing was learned"
    assert len(ours.run.losses) == STEPS
    np.testing.assert_allclose(ours.run.losses, reference.losses, rtol=LOSS_TOLERANCE)
    np.testing.assert_allclose(ours.run.evaluation["loss"], reference.evaluation, rtol=LOSS_TOLERANCE)
    compare_weights(name, ours.run.weights, imported, found, reference)


@pytest.mark.parametrize(("name", "form", "optimizer"), with_optimizers(cases(CHOSEN, FORMS)))
def test_training_follows_eager(name: str, form: str, optimizer: str, trained) -> None:
    check(name, form, optimizer, trained(name, form, optimizer))
