#!/usr/bin/env python3
"""Images a second that one core decodes and resizes: this program's loader, Pillow, torchvision.

    .venv/bin/python tools/bench/images.py [--height 375] [--width 500] [--size 224] [--seconds 3]

A JPEG image of photograph-like content, from its bytes to float32 [3, size, size] in 0..1, in turns so that each meets the
same machine; the median of the turns is printed. What is measured needs build/bin/images_run, which the tests build.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TURNS = 5


def photo(height: int, width: int) -> bytes:
    """Images of noise that is strongest where it is coarsest, as in photographs; quality 90."""
    import numpy as np
    from PIL import Image
    random = np.random.default_rng(0)
    pixels = np.full((height, width, 3), 128.0)
    for fineness in (2, 4, 8, 16, 32, 64, 128, 256):
        noise = random.integers(0, 256, (fineness, fineness, 3), dtype=np.uint8)
        layer = Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)
        pixels += (np.asarray(layer, float) - 128) * 1.5 / fineness**0.6
    file = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
    return file.getvalue()


def rate(once: Callable[[], object], seconds: float) -> float:
    begin, count = time.perf_counter(), 0
    while (taken := time.perf_counter() - begin) < seconds:
        once()
        count += 1
    return count / taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("height", 375), ("width", 500), ("size", 224)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--seconds", type=float, default=3)
    given = parser.parse_args()

    import numpy as np
    import torch
    import torchvision
    from PIL import Image
    from torchvision.transforms.v2 import functional as F
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    content, size = photo(given.height, given.width), given.size

    def pillow() -> np.ndarray:
        image = Image.open(io.BytesIO(content)).convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
        return np.asarray(image).transpose(2, 0, 1).astype(np.float32) / 255

    def pillow_torchvision() -> torch.Tensor:
        """The same as ImageFolder with Resize and ToTensor."""
        image = F.resize(Image.open(io.BytesIO(content)).convert("RGB"), [size, size])
        return F.to_dtype(F.pil_to_tensor(image), torch.float32, scale=True)

    encoded = torch.frombuffer(bytearray(content), dtype=torch.uint8)

    def torchvision_io() -> torch.Tensor:
        image = torchvision.io.decode_jpeg(encoded, torchvision.io.ImageReadMode.RGB)
        return F.to_dtype(F.resize(image, [size, size], antialias=True), torch.float32, scale=True)

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "class" / "image.jpg"
        file.parent.mkdir()
        file.write_bytes(content)

        def ours(seconds: float) -> float:
            command = [ROOT / "build/bin/images_run", "time", folder, str(size), str(seconds)]
            return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

        ways: dict[str, Callable[[float], float]] = {
            "decent-train": ours, "Pillow": lambda seconds: rate(pillow, seconds),
            "Pillow, torchvision": lambda seconds: rate(pillow_torchvision, seconds),
            "torchvision.io": lambda seconds: rate(torchvision_io, seconds)}
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(TURNS):
            for name, way in ways.items():
                rates[name].append(way(given.seconds / TURNS))
    print(f"{given.width} by {given.height}, {len(content)} bytes, to {size} by {size}, images a second of one core:")
    for name, measured in rates.items():
        print(f"  {name:<22}{statistics.median(measured):8.0f}   ({min(measured):.0f} to {max(measured):.0f})")


if __name__ == "__main__":
    main()
