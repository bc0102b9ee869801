"""A search with successive halving against a full grid: what each finds, and in what time.

    OMP_NUM_THREADS=1 .venv/bin/python tools/bench/search.py

Trains configs/sweeps/digits_cnn_search.yaml one trial at a time: 30 trials drawn by TPE with halving, then all 30 points of a
grid over the same ranges (5 learning rates x 3 weight decays x 2 topologies). Then both best points once for each of 5
other seeds: their spread is the noise that a difference must exceed to mean anything. About 15 minutes on 2 cores.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import decent_train  # noqa: E402
from decent_train.yaml_files import read  # noqa: E402

SWEEP = ROOT / "configs" / "sweeps" / "digits_cnn_search.yaml"
SETTINGS = read(SWEEP).value["set"]
TRIALS = 30
SEEDS = range(1, 6)
GRID = {
    "optimizer.lr": {"log_uniform": [1e-4, 1e-1], "points": 5},
    "optimizer.weight_decay": {"uniform": [0, 2], "points": 3},
    "parallel.topology": {"choice": ["ring", "complete"]},
}


@dataclass(frozen=True)
class Timed:
    """A search and what it took."""

    found: Any  # decent_train.Search
    wall_s: float
    cpu_s: float  # of all processes of its trials: other programs on the machine have less influence on it


def timed(work: Callable[[], Any]) -> Timed:
    begin, before = time.monotonic(), _cpu_s()
    found = work()
    return Timed(found, time.monotonic() - begin, _cpu_s() - before)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def over_seeds(point: dict[str, Any], output: Path) -> list[float]:
    """The losses of one point with other seeds of the recipe."""
    space = {"seed": {"choice": list(SEEDS)}}
    found = decent_train.search(SWEEP, space=space, sampler="grid", trials=len(SEEDS), halving=None, parallel=1,
                                output=output, set={**SETTINGS, **point})
    return [trial.metric for trial in found.trials]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of the search")
    parser.add_argument("--out", type=Path, help="folder of all runs; a search that is done already keeps its trials")
    given = parser.parse_args()
    out = given.out or Path(tempfile.mkdtemp())
    searched = timed(lambda: decent_train.search(SWEEP, trials=TRIALS, seed=given.seed, parallel=1,
                                                 output=out / "search"))
    grid = timed(lambda: decent_train.search(SWEEP, space=GRID, sampler="grid", trials=TRIALS, halving=None, parallel=1,
                                             output=out / "grid"))
    rows = {"search": searched, "grid": grid}
    print(f"\n{TRIALS} trials each, one at a time, in {out}")
    for name, each in rows.items():
        seeds = over_seeds(each.found.best.values, out / f"{name}-seeds")
        print(f"{name:7}  best loss {each.found.best.metric:.5f}  with {len(seeds)} other seeds "
              f"{statistics.mean(seeds):.5f} (standard deviation {statistics.stdev(seeds):.5f})  "
              f"{each.wall_s:.0f} s wall, {each.cpu_s:.0f} s CPU  {each.found.best.values}")
    wall, cpu = searched.wall_s / grid.wall_s, searched.cpu_s / grid.cpu_s
    print(f"time of the search / time of the grid: {wall:.3f} wall, {cpu:.3f} CPU")


if __name__ == "__main__":
    main()
