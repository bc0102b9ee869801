"""IDX files, as those of MNIST."""

from __future__ import annotations

import struct

import numpy as np


def idx(array: np.ndarray) -> bytes:
    """Of unsigned bytes."""
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()
