"""How far two programs may differ that do the same in another order, and the comparisons that say so."""

from __future__ import annotations

import numpy as np

# Rounding in a different order (fused updates, other sums) moves a loss by 1e-7 to 3e-7 of itself within 20 steps in
# fp32. Mistakes move it far more: another phase by 2e-3, no mixing by 2e-2, gamma 0.61 instead of 0.60 by 1e-4.
LOSS_TOLERANCE = 1e-5

# A tensor may differ by 1e-4 of the way that training moved it. The same rounding is 1e-7 of a gradient, but Adam
# divides by its size: elements with tiny gradients take a visible share of the noise. Seen between the peers and
# the reference: up to 1.0e-5. The mistakes above give 2e-3, 3e-2 and 1e-4 to 5e-4.
TENSOR_TOLERANCE = 1e-4


def compare_losses(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert ours.shape == theirs.shape
    error = np.abs(ours - theirs) / np.abs(theirs)
    worst = int(error.argmax())
    assert error[worst] <= LOSS_TOLERANCE, f"step {worst + 1}: loss {ours[worst]} instead of {theirs[worst]}"


def way_apart(ours: np.ndarray, theirs: np.ndarray, start: np.ndarray) -> float:
    """As a share of the way that training moved the tensor from `start`."""
    distance = np.linalg.norm((ours.astype(np.float64) - theirs).ravel())
    return float(distance / np.linalg.norm((theirs - start).ravel()))


def compare_tensor(name: str, ours: np.ndarray, theirs: np.ndarray, start: np.ndarray,
                   tolerance: float = TENSOR_TOLERANCE) -> None:
    assert ours.shape == theirs.shape, name
    moved = np.linalg.norm((theirs - start).ravel())
    error = np.linalg.norm((ours.astype(np.float64) - theirs).ravel())
    assert error <= tolerance * moved, f"{name} differs by {error / moved:.1e} of the way it was trained"
