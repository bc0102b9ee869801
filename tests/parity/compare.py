"""How far two programs may differ that do the same in another order, and the comparisons that say so."""

from __future__ import annotations

import fnmatch

import numpy as np

from cases import Case

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


def compare_tensors(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], tolerance: float = TENSOR_TOLERANCE) -> None:
    """ours: state_dict name -> averaged tensor; theirs: a result, see reference.result."""
    expected = {}
    for kind, start in (("param/", "start/"), ("buffer/", "start_buffer/")):
        for key in theirs:
            if key.startswith(kind):
                name = key.removeprefix(kind)
                expected[name] = (theirs[key], theirs[start + name])
    # Integer buffers (batch norm's counters) are not averaged and are not compared here.
    assert {n for n, t in ours.items() if t.dtype.kind == "f"} == set(expected)
    for name, (theirs_tensor, start) in expected.items():
        compare_tensor(name, ours[name], theirs_tensor, start, tolerance)


def tensors_of(result: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {key.split("/", 1)[1]: t for key, t in result.items() if key.startswith(("param/", "buffer/"))}


def stays(case: Case, name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in (*case.freeze, *(case.unused or ())))


def check_that_training_moved(case: Case, result: dict[str, np.ndarray]) -> None:
    """Without this, two programs that do nothing would agree."""
    losses = result["losses"]
    assert np.nanmean(losses[-4:]) < 0.9 * np.nanmean(losses[:4])  # NaN: a step that float16 leaves out
    for key in result:
        if key.startswith("param/"):
            moved = np.linalg.norm(result[key] - result[key.replace("param/", "start/")])
            assert (moved == 0) == stays(case, key.removeprefix("param/")), key
