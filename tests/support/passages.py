"""A text in passages, as the format `text` gives them."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def passages(path: Path, length: int) -> dict[str, np.ndarray]:
    """x: the text without overlap, y: the same one byte later; uint8 [n, length]."""
    text = np.frombuffer(path.read_bytes(), np.uint8)
    count = (len(text) - 1) // length
    return {name: text[shift : shift + count * length].reshape(count, length) for name, shift in (("x", 0), ("y", 1))}
