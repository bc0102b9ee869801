#!/usr/bin/env python3
"""How fast the format csv reads numbers, and pandas, numpy and pyarrow where Python has them: MB of the file in a second of
processor time of one thread, the median of rounds that alternate.

    cmake --build --preset release --target bench_csv && tools/bench/csv_reading.py [MB] [ROUNDS]
"""

from __future__ import annotations

import importlib.util
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

PROGRAM = Path(__file__).parents[2] / "build" / "bin" / "bench_csv"
COLUMNS = 32
ROW_BYTES = 9 * COLUMNS  # about


def write_numbers(path: Path, megabytes: int) -> None:
    """Normally distributed numbers of six digits; the last column is the target."""
    rows = np.random.default_rng(1).normal(size=(megabytes * 10**6 // ROW_BYTES, COLUMNS))
    names = ",".join(f"c{i}" for i in range(COLUMNS))
    np.savetxt(path, rows, fmt="%.6g", delimiter=",", header=names, comments="")


def with_pandas(path: Path) -> object:
    import pandas
    return pandas.read_csv(path, dtype=np.float32).to_numpy()


def with_numpy(path: Path) -> object:
    return np.loadtxt(path, dtype=np.float32, delimiter=",", skiprows=1)


def with_pyarrow(path: Path) -> object:
    import pyarrow
    from pyarrow import csv
    types = {f"c{i}": pyarrow.float32() for i in range(COLUMNS)}
    return csv.read_csv(path, read_options=csv.ReadOptions(use_threads=False),
                        convert_options=csv.ConvertOptions(column_types=types))


def seconds(read: Callable[[Path], object], path: Path) -> float:
    begin = time.process_time()
    read(path)
    return time.process_time() - begin


def measure(path: Path) -> dict[str, float]:
    """One round."""
    megabytes = path.stat().st_size / 1e6
    out = subprocess.run([PROGRAM, path], capture_output=True, text=True, check=True).stdout
    speeds = {f"decent-train, {name.strip()}": float(speed) for name, speed in re.findall(r"(.+?) +(\d+) MB/s", out)}
    for name, read in (("pandas", with_pandas), ("numpy", with_numpy), ("pyarrow", with_pyarrow)):
        if importlib.util.find_spec(name):
            speeds[name] = megabytes / seconds(read, path)
    return speeds


def main() -> None:
    megabytes, rounds = [*map(int, sys.argv[1:]), *(100, 5)[len(sys.argv) - 1:]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "numbers.csv"
        write_numbers(path, megabytes)
        measured = [measure(path) for _ in range(rounds)]
    for name in measured[0]:
        speeds = [each[name] for each in measured]
        print(f"{name:32} {statistics.median(speeds):6.0f} MB/s ({min(speeds):.0f} to {max(speeds):.0f})")


if __name__ == "__main__":
    main()
