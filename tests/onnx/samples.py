"""Seeded, learnable data for the networks. Every set has the fields of its network's inputs and a target y."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from assorted import FEATURES
from language import CLASSES, LENGTH, VOCABULARY

SAMPLES = 160
Fields = dict[str, np.ndarray]
Maker = Callable[[np.random.Generator], Fields]


def _classes(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(CLASSES, size=SAMPLES)


def images(size: int) -> Maker:
    """A texture per class: 8 x 8 pixels in three colours, repeated."""
    def make(rng: np.random.Generator) -> Fields:
        y = _classes(rng)
        textures = np.tile(rng.normal(size=(CLASSES, 3, 8, 8)), (1, 1, size // 8, size // 8))
        x = textures[y] + rng.normal(size=(SAMPLES, 3, size, size))
        return {"x": x.astype(np.float32), "y": y}
    return make


def segments(rng: np.random.Generator) -> Fields:
    """Images 3 x 32 x 32 of four quarters, each of one class, and the class of every pixel."""
    quarters = rng.integers(CLASSES, size=(SAMPLES, 2, 2))
    y = quarters.repeat(16, axis=1).repeat(16, axis=2)
    colours = rng.normal(size=(CLASSES, 3))
    x = colours[y].transpose(0, 3, 1, 2) + rng.normal(size=(SAMPLES, 3, 32, 32))
    return {"x": x.astype(np.float32), "y": y}


def vectors(rng: np.random.Generator) -> Fields:
    y = _classes(rng)
    x = rng.normal(size=(CLASSES, FEATURES))[y] + rng.normal(size=(SAMPLES, FEATURES))
    return {"x": x.astype(np.float32), "y": y}


def regression(rng: np.random.Generator) -> Fields:
    x = rng.normal(size=(SAMPLES, FEATURES))
    return {"x": x.astype(np.float32), "y": np.tanh(x @ rng.normal(size=(FEATURES, 2)) / 2).astype(np.float32)}


def series(rng: np.random.Generator) -> Fields:
    """x [B, LENGTH, 6]: waves, a frequency per class."""
    y = _classes(rng)
    t = np.arange(LENGTH)[None, :, None] + rng.uniform(0, 6, size=(SAMPLES, 1, 6))
    x = np.sin((0.3 + 0.4 * y[:, None, None]) * t) + 0.3 * rng.normal(size=(SAMPLES, LENGTH, 6))
    return {"x": x.astype(np.float32), "y": y}


def _words(rng: np.random.Generator, y: np.ndarray, length: int) -> np.ndarray:
    """Tokens from 1 on; each class prefers a quarter of the vocabulary."""
    own = 1 + y[:, None] * 9 + rng.integers(9, size=(SAMPLES, length))
    other = rng.integers(1, VOCABULARY, size=(SAMPLES, length))
    return np.where(rng.random((SAMPLES, length)) < 0.5, own, other)


def words(length: int) -> Maker:
    def make(rng: np.random.Generator) -> Fields:
        y = _classes(rng)
        return {"x": _words(rng, y, length), "y": y}
    return make


def padded_words(rng: np.random.Generator) -> Fields:
    """Sentences of 5 to LENGTH tokens, padded with token 0."""
    y = _classes(rng)
    mask = (np.arange(LENGTH) < rng.integers(5, LENGTH + 1, size=(SAMPLES, 1))).astype(np.int64)
    return {"tokens": _words(rng, y, LENGTH) * mask, "mask": mask, "y": y}


def next_tokens(rng: np.random.Generator) -> Fields:
    """Each token is the one before plus one of three steps."""
    walk = rng.integers(VOCABULARY, size=(SAMPLES, 1)) + rng.integers(1, 4, size=(SAMPLES, LENGTH + 1)).cumsum(axis=1)
    walk %= VOCABULARY
    return {"x": walk[:, :-1], "y": walk[:, 1:]}


def translations(rng: np.random.Generator) -> Fields:
    """The source backwards; token 0 starts."""
    source = rng.integers(1, VOCABULARY, size=(SAMPLES, LENGTH))
    y = source[:, ::-1]
    previous = np.concatenate([np.zeros((SAMPLES, 1), np.int64), y[:, :-1]], axis=1)
    return {"source": source, "previous": previous, "y": y}


def clicks(rng: np.random.Generator) -> Fields:
    categories = np.stack([rng.integers(size, size=SAMPLES) for size in (10, 20, 30)], axis=1)
    numbers = rng.normal(size=(SAMPLES, 5))
    y = (categories.sum(axis=1) / 20 + numbers.sum(axis=1) > 1.5).astype(np.float32)
    return {"categories": categories, "numbers": numbers.astype(np.float32), "y": y}
