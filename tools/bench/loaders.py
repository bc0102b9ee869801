#!/usr/bin/env python3
"""Samples a second of each format: this program's loader, and torch.utils.data.DataLoader with the Dataset that one would write.

    .venv/bin/python tools/bench/loaders.py [--formats idx,csv] [--rounds 5] [--seconds 1]

Batches of 64 in random order. This program reads with one and with two threads (data.threads), DataLoader in the process itself
and in two more; all in turn, so that each meets the same machine. Prints the medians over the rounds, in thousands, and their ratios as a table.
What is measured is build/bin/loader_run, which the tests build; needs torchvision, Pillow and safetensors.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

from torch.utils.data import DataLoader

from loader_cases import CASES, Case
from tables import in_turn, number, ratios, say, spread, table, two_digits

ROOT = Path(__file__).resolve().parents[2]
BATCH = 64
THREADS, PROCESSES = (1, 2), (0, 2)
HEAD = ["", "1 thread", "2 threads", "DataLoader", "DataLoader, 2 processes", "1 thread over DataLoader",
        "2 threads over 2 processes"]


def ours(case: Case, threads: int, folder: Path, seconds: float) -> float:
    data = {**case.recipe.get("data", {}), "batch_size": BATCH, "threads": threads, "prefetch": 2 * threads}
    recipe = folder / f"{threads}.yaml"
    recipe.write_text(json.dumps({"model": {"path": "none.pt", **case.recipe.get("model", {})}, "data": data}))
    out = subprocess.run([ROOT / "build" / "bin" / "loader_run", "time", recipe, str(seconds)], check=True, capture_output=True,
                         text=True).stdout
    return float(out)


def theirs(case: Case, processes: int, seconds: float) -> float:
    """Epoch after epoch, without the time until the first batch."""
    loader = DataLoader(case.dataset(), batch_size=BATCH, shuffle=True, num_workers=processes, collate_fn=case.collate,
                        persistent_workers=processes > 0, drop_last=True)
    begin, count = None, 0
    while True:
        for _ in loader:
            now = time.perf_counter()
            if begin is None:
                begin = now
                continue
            count += BATCH
            if now - begin >= seconds:
                return count / (now - begin)


def thousands(value: float) -> str:
    return number(value / 1000)


def row(name: str, results: dict[str, list[float]]) -> list[str]:
    return [name, *(spread(rates, thousands) for rates in results.values()),
            *(spread(ratios(results, f"{threads} threads", f"{processes} processes"), two_digits)
              for threads, processes in zip(THREADS, PROCESSES))]


def measure(name: str, rounds: int, seconds: float, folder: Path) -> list[str]:
    case = CASES[name](folder)
    ways = {f"{threads} threads": lambda threads=threads: ours(case, threads, folder, seconds) for threads in THREADS}
    ways |= {f"{processes} processes": lambda processes=processes: theirs(case, processes, seconds) for processes in PROCESSES}
    results: dict[str, list[float]] = {way: [] for way in ways}
    for number_of_round in range(rounds):
        for way in in_turn(list(ways), number_of_round):
            results[way].append(ways[way]())
            say(f"{name}, round {number_of_round + 1}: {way} {thousands(results[way][-1])} thousand samples a second")
    return row(name, results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formats", default=",".join(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    given = parser.parse_args()
    rows = []
    for name in given.formats.split(","):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(name, given.rounds, given.seconds, Path(folder)))
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
