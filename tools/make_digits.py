#!/usr/bin/env python3
"""Writes lib/decent/data/digits.bin, the data set behind `{format: builtin, name: digits}`.

It holds the 1797 scans of handwritten digits, 8x8 pixels each, that scikit-learn ships as load_digits().
They are the test part of "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository,
by E. Alpaydin and C. Kaynak (1998), https://doi.org/10.24432/C50P49, licensed CC BY 4.0
(https://creativecommons.org/licenses/by/4.0/). Changes: stored as bytes, nothing else.

The file, 1797 * 65 = 116805 bytes, in the order of scikit-learn's copy:
    1797 * 64  uint8  pixels, 0 (paper) to 16 (ink), image by image, row by row
    1797       uint8  labels, 0 to 9

The split into train and test is a rule, not stored: of each class, in file order, every fifth scan
(the 5th, the 10th, ...) is test and the others are train. That gives 1442 for training, 355 for testing.

decent-train does not need this script, the file is part of the repository. To make it again:
    pip install scikit-learn && python tools/make_digits.py
"""

from pathlib import Path

import numpy as np

OUTPUT = Path(__file__).resolve().parent.parent / "lib" / "decent" / "data" / "digits.bin"


def is_test(labels: np.ndarray) -> np.ndarray:
    """True if a scan belongs to the test part: every fifth of its class, in file order."""
    test = np.zeros(len(labels), dtype=bool)
    for label in range(10):
        test[np.flatnonzero(labels == label)[4::5]] = True
    return test


def main() -> None:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    assert pixels.shape == (1797, 64) and pixels.min() == 0 and pixels.max() == 16
    OUTPUT.write_bytes(pixels.astype(np.uint8).tobytes() + labels.astype(np.uint8).tobytes())
    test = is_test(labels)
    print(f"{OUTPUT}: {len(labels)} scans, {(~test).sum()} train, {test.sum()} test")


if __name__ == "__main__":
    main()
