"""Seeded, learnable data sets for the parity models."""

from pathlib import Path

import numpy as np

CLASSES = 5


def make_data(model: str, samples: int) -> dict[str, np.ndarray]:
    """Fields x (float32) and y: a class per sample (int64), or three targets for the regressor (float32)."""
    rng = np.random.default_rng(7)
    shape = (1, 8, 8) if model == "cnn" else (16,)
    if model == "regressor":
        x = rng.normal(size=(samples, *shape))
        y = np.tanh(x @ rng.normal(size=(16, 3)) / 2)
        return {"x": x.astype(np.float32), "y": y.astype(np.float32)}
    if model == "cnn":  # a texture per class: 2x2 pixels, repeated
        centres = np.tile(rng.normal(size=(CLASSES, 1, 2, 2)), (1, 1, 4, 4))
    else:
        centres = rng.normal(size=(CLASSES, *shape))
    y = rng.integers(CLASSES, size=samples)
    x = centres[y] + rng.normal(size=(samples, *shape))
    return {"x": x.astype(np.float32), "y": y.astype(np.int64)}


def data_file(folder: Path, model: str, samples: int) -> Path:
    return folder / f"{model}-{samples}.safetensors"
