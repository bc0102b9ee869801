"""Makes the models and data of the benchmarks in build/bench, where they are missing. bench.py calls it: a process of its
own, as bench.py itself must stay small (a child's peak memory includes what its parent had when it started it).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from safetensors_file import read_safetensors, write_safetensors

ROOT = Path(__file__).resolve().parents[2]


def write_digits(path: Path) -> None:
    """The builtin digits, all 1797 of them."""
    raw = np.fromfile(ROOT / "lib" / "decent" / "data" / "digits.bin", dtype=np.uint8)
    count = len(raw) // 65
    write_safetensors(path, {"x": (raw[: count * 64].reshape(count, 1, 8, 8) / np.float32(16)).astype(np.float32),
                             "y": raw[count * 64 :].astype(np.int64)})


def write_passages(path: Path, length: int) -> None:
    """The text of configs/char_gpt.yaml in passages of another length."""
    fields = read_safetensors(ROOT / "configs" / "data" / "opticks-train.safetensors")
    x, y = (fields[name].ravel() for name in "xy")  # passages follow on one another
    count = len(x) // length
    write_safetensors(path, {"x": x[: count * length].reshape(count, length),
                             "y": y[: count * length].reshape(count, length)})


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "gpt_11m.pt").exists():
        subprocess.run([sys.executable, ROOT / "models" / "export.py", "gpt_11m", "--folder", folder], check=True)
    write_digits(folder / "digits.safetensors")
    write_passages(folder / "passages_128.safetensors", 128)
    write_passages(folder / "passages_256.safetensors", 256)


if __name__ == "__main__":
    main()
