"""Runs tests/support/images_run.cpp, and makes pictures."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
from PIL import Image

from program import ROOT

RUN = os.environ.get("DECENT_IMAGES_RUN", ROOT / "build" / "bin" / "images_run")


def run(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([RUN, *map(str, arguments)], input=stdin, capture_output=True, timeout=60)


def arrays(ended: subprocess.CompletedProcess[bytes], dtype: type) -> list[np.ndarray]:
    """What it wrote: for each a line with its shape, and its bytes."""
    assert ended.returncode == 0, ended.stderr.decode()
    found, left = [], ended.stdout
    while left:
        line, _, left = left.partition(b"\n")
        shape = [int(n) for n in line.decode().strip("[]").split(", ")]
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        found.append(np.frombuffer(left[:size], dtype).reshape(shape))
        left = left[size:]
    return found


def array(ended: subprocess.CompletedProcess[bytes], dtype: type) -> np.ndarray:
    one, = arrays(ended, dtype)
    return one


def photo(height: int = 61, width: int = 83, channels: int = 3, seed: int = 0) -> np.ndarray:
    """Smooth, with an edge and some noise."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    planes = [128 + 90 * np.sin(x / (7 + c)) * np.cos(y / (5 + 2 * c)) + 30 * (x > width // 2) for c in range(channels)]
    noisy = np.stack(planes, -1) + random.normal(0, 6, (height, width, channels))
    return noisy.clip(0, 255).astype(np.uint8).squeeze()


def write_images(folder: Path, pixels: np.ndarray, labels: np.ndarray) -> list[Path]:
    """A folder for each class."""
    files = []
    for number, (image, label) in enumerate(zip(pixels, labels)):
        file = folder / f"digit {label}" / f"{number:04}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(file)
        files.append(file)
    return files
