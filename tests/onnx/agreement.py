"""How far a run may be from another that does the same with other kernels, and the comparisons that say so."""

from __future__ import annotations

import fnmatch

import numpy as np

from catalogue import EXAMPLES
from eager import Imported, Trained
from matching import Match, Tensors
from runs import Run

# Other kernels and another order of sums move a loss by 1e-7 to 3e-7 of itself in 20 steps of fp32 (tests/parity); a
# mistake in an operator, its gradient, a weight's decay or the running statistics moves it by 1e-4 and more.
LOSS_TOLERANCE = 1e-5

# Of the way that training moved a tensor. Gradients carry the same rounding, which Adam, dividing by their size, shows
# in elements with tiny gradients.
TENSOR_TOLERANCE = 1e-4


def assert_agrees(name: str, run: Run, imported: Imported, found: Match, reference: Trained) -> None:
    """Losses of all steps, the evaluation and the weights after the last."""
    assert reference.losses[-5:].mean() < 0.99 * reference.losses[:5].mean(), "nothing was learned"
    assert len(run.losses) == len(reference.losses)
    np.testing.assert_allclose(run.losses, reference.losses, rtol=LOSS_TOLERANCE)
    np.testing.assert_allclose(run.evaluation["loss"], reference.evaluation, rtol=LOSS_TOLERANCE)
    compare_weights(name, run.weights, imported, found, reference)


def compared_places(name: str, found: Match, start: Tensors) -> np.ndarray:
    """True at the elements of eager whose gradient is not zero in true arithmetic."""
    compared = {key: np.ones(tensor.shape, dtype=bool) for key, tensor in start.items()}
    for glob, part in EXAMPLES[name].zero_gradient.items():
        for key in fnmatch.filter(start, glob):
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
        assert (moved > 0) == (where.any() and is_trained(key, imported)), f"{key} moved by {moved}"
        assert error <= TENSOR_TOLERANCE * moved, f"{key} differs by {error / moved:.1e} of the way it was trained"
        squares += error**2, moved**2
    assert squares[0] <= TENSOR_TOLERANCE**2 * squares[1]


def is_trained(key: str, imported: Imported) -> bool:
    """Tied weights of TorchScript stand under all their names, of which one is a parameter's."""
    tied = any(np.array_equal(imported.tensors[key], imported.tensors[other]) for other in imported.trainable)
    return tied or key.endswith(("running_mean", "running_var"))
