"""Seeded, learnable data sets for the parity models."""

from pathlib import Path

import numpy as np

CLASSES = 5
TOKENS, LENGTH = 32, 12


def base_of(model: str) -> str:
    """The model without adapters of its own."""
    return model.removeprefix("adapted-")


def make_data(model: str, samples: int) -> dict[str, np.ndarray]:
    """Fields x (float32) and y: a class per sample (int64), or three targets for the regressor (float32), or the token that
    follows each of x (int64).
    """
    rng = np.random.default_rng(7)
    model = base_of(model)
    if model == "gpt":
        return _make_tokens(rng, samples)
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
    if model == "spiked":  # numbers that float16 does not have, one batch of one worker each
        x[[49, 223, 345], 0] = 1e30
    return {"x": x.astype(np.float32), "y": y.astype(np.int64)}


def _make_tokens(rng: np.random.Generator, samples: int) -> dict[str, np.ndarray]:
    """Nine times out of ten a token decides the next one."""
    tokens = np.empty((samples, LENGTH + 1), dtype=np.int64)
    tokens[:, 0] = rng.integers(TOKENS, size=samples)
    for i in range(LENGTH):
        chance = rng.integers(TOKENS, size=samples)
        tokens[:, i + 1] = np.where(rng.random(samples) < 0.9, (5 * tokens[:, i] + 3) % TOKENS, chance)
    return {"x": np.ascontiguousarray(tokens[:, :-1]), "y": np.ascontiguousarray(tokens[:, 1:])}


def data_file(folder: Path, model: str, samples: int) -> Path:
    return folder / f"{model}-{samples}.safetensors"
