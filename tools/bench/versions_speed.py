#!/usr/bin/env python3
"""Two versions of the program on the same recipes, in turn: what a step and a start cost.

    .venv/bin/python tools/bench/versions_speed.py OLD NEW [--rounds 7]

A round runs both programs on every recipe once, the one that goes first changing from round to round. Printed are medians over
rounds, and the median of the rounds' ratios of NEW to OLD.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tests" / "support")]

import program  # noqa: E402
from runs import DIGITS_CNN, merged, recipe, train, with_default_farewell  # noqa: E402

WARM_UP = 5
ADAMW = {"optimizer": {"name": "adamw", "lr": 1e-3}, "log": {"every_steps": 1}}
GPT = {"model": {"path": str(ROOT / "models" / "char_gpt.pt"), "inputs": ["x"], "target": "y"},
       "data": {**{part: {"format": "text", "path": str(ROOT / "configs" / "data" / f"opticks-{part}.txt"), "length": 128}
                   for part in ("train", "eval")}, "batch_size": 4}}
# (name, workers, steps, changes of the recipe)
RECIPES = [("char_gpt, 1 worker", 1, 30, GPT), ("char_gpt, 2 workers", 2, 30, GPT),
           ("digits_cnn, 1 worker", 1, 200, {"model": {"path": str(DIGITS_CNN)}, "data": {"batch_size": 16}}),
           ("digits_mlp, 2 workers", 2, 200, {})]


def measure(program_file: Path, workers: int, steps: int, changes: dict) -> float:
    """Milliseconds a step, the median after a warm-up."""
    program.PROGRAM = program_file
    with tempfile.TemporaryDirectory() as folder:
        run = train(Path(folder), with_default_farewell(merged(recipe(train={"steps": steps}), merged(ADAMW, changes))), workers=workers)
        return median(line["step_ms"] for line in run.lines("train") if line["step"] > WARM_UP)


def start(program_file: Path, workers: int) -> float:
    """Milliseconds from the start of the processes to the end of the last, for one step."""
    program.PROGRAM = program_file
    with tempfile.TemporaryDirectory() as folder:
        run = train(Path(folder), with_default_farewell(recipe(train={"steps": 1})), workers=workers)
        return 1000 * max(ended.seconds for ended in run.ended)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    flags = parser.parse_args()
    programs = [flags.old.absolute(), flags.new.absolute()]
    tasks = {name: lambda p, w=workers, s=steps, c=changes: measure(p, w, s, c) for name, workers, steps, changes in RECIPES}
    tasks |= {f"start and end, {workers} workers": lambda p, w=workers: start(p, w) for workers in (1, 2)}
    for name, task in tasks.items():
        rounds = []
        for number in range(flags.rounds):
            order = programs if number % 2 == 0 else programs[::-1]
            taken = {file: task(file) for file in order}
            rounds.append([taken[file] for file in programs])
        print(json.dumps({"task": name, "old_ms": round(median(old for old, _ in rounds), 2),
                          "new_ms": round(median(new for _, new in rounds), 2),
                          "new_over_old": round(median(new / old for old, new in rounds), 3)}), flush=True)


if __name__ == "__main__":
    main()
