"""Makes models and data of the benchmarks in a folder if they are missing:  prepare.py FOLDER MODEL..

bench.py calls it: a process of its own, as bench.py itself must stay small (a child's peak memory includes what its
parent had when it started it).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import support
from passages import passages
from tensors import write_safetensors

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ROOT / "configs" / "data"


def write_digits(path: Path) -> None:
    """The builtin digits, all 1797 of them."""
    raw = np.fromfile(ROOT / "lib" / "decent" / "data" / "digits.bin", dtype=np.uint8)
    count = len(raw) // 65
    write_safetensors(path, {"x": (raw[: count * 64].reshape(count, 1, 8, 8) / np.float32(16)).astype(np.float32),
                             "y": raw[count * 64 :].astype(np.int64)})


def write_passages(path: Path, length: int) -> None:
    """The text of configs/char_gpt.yaml in passages of any length."""
    write_safetensors(path, passages(TEXTS / "opticks-train.txt", length))


def write_shuffled(path: Path, part: str, count: int | None = None) -> None:
    """The text of configs/char_gpt.yaml, `part` of it, in another order: the same for programs that read in order."""
    fields = passages(TEXTS / f"opticks-{part}.txt", 128)
    rows = np.random.default_rng(0).permutation(len(fields["x"]))[:count]
    write_safetensors(path, {name: array[rows] for name, array in fields.items()})


def write_noise(path: Path) -> None:
    """Meaningless images in 10 classes: their content does not affect the time of a step."""
    random = np.random.default_rng(0)
    write_safetensors(path, {"x": random.standard_normal((256, 3, 64, 64), dtype=np.float32),
                             "y": random.integers(0, 10, 256)})


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    places = (ROOT / "models", folder)
    missing = [name for name in names if not any((place / f"{name}.pt").exists() for place in places)]
    if missing:
        subprocess.run([sys.executable, ROOT / "models" / "export.py", *missing, "--folder", folder], check=True)
    write_digits(folder / "digits.safetensors")
    write_passages(folder / "passages_128.safetensors", 128)
    write_passages(folder / "passages_256.safetensors", 256)
    write_shuffled(folder / "shuffled_train.safetensors", "train")
    write_shuffled(folder / "shuffled_eval.safetensors", "eval", 64)
    write_noise(folder / "noise_64.safetensors")


if __name__ == "__main__":
    main()
