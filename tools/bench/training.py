#!/usr/bin/env python3
"""What a training ends with when weights are exchanged in different ways, over several seeds.

    .venv/bin/python tools/bench/training.py FOLDER [--write] [--only NAME..]

Each run stays in FOLDER, and one that completed there is not repeated, so that a measurement that was stopped goes on.
Two workers of one thread on this machine; --write puts the tables into docs/performance.md. It takes about half an
hour, and any other work on the machine only makes it slower.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev

import page
from programs import PROGRAM, ROOT, run_workers
from tables import say, table

FP32, MODULO2 = {}, {"parallel.comm_dtype": "modulo2"}
SLICED = {**MODULO2, "parallel.slices": 4}
SQRT = {"optimizer.lr_scaling": "sqrt"}


@dataclass(frozen=True)
class Setting:
    """A recipe that is trained in each of the ways."""

    name: str
    recipe: Path
    about: str  # for the page
    seeds: range
    changes: dict[str, object] = field(default_factory=dict)
    ways: dict[str, dict[str, object]] = field(default_factory=lambda: {"fp32": FP32, "modulo2": MODULO2})


FIRST_LINE = re.compile(r"(\S+) .* (decent-train .*)")  # of run.log
ONLY_AT_THE_END = {"eval.every_epochs": None, "checkpoint.every_epochs": None, "log.tensorboard": False}
SETTINGS = (
    Setting("char_gpt", ROOT / "configs" / "char_gpt.yaml", "2000 steps", range(3),
            {"train.epochs": None, "train.steps": 2000, "eval.every_steps": 2000}),
    Setting("digits_cnn", ROOT / "configs" / "digits_cnn.yaml", "10 epochs, 450 steps", range(10),
            {"eval.every_epochs": 10}),
    Setting("char_gpt, 600 steps", ROOT / "configs" / "char_gpt.yaml", "other rates, slices", range(3),
            {"train.epochs": None, "train.steps": 600, "eval.every_steps": 600},
            {"fp32": FP32, "fp32, lr_scaling sqrt": SQRT, "modulo2": MODULO2, "modulo2, slices 4": SLICED,
             "modulo2, slices 4, lr_scaling sqrt": {**SLICED, **SQRT}}),
)


def _lines(output: Path) -> list[dict]:
    """Lines of a run's metrics; none if it did not complete."""
    metrics = output / "metrics.jsonl"
    lines = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
    return lines if lines and lines[-1].get("status") == "completed" else []


def _train(setting: Setting, way: str, seed: int, folder: Path) -> dict:
    """The evaluation after the last step; `wrap_share` is the largest logged one, if there are any."""
    output = folder / setting.name / way / f"seed-{seed}"
    if not _lines(output):
        shutil.rmtree(output, ignore_errors=True)
        changes = {**ONLY_AT_THE_END, **setting.changes, **setting.ways[way], "seed": seed, "output": str(output)}
        flags = [part for key, value in changes.items() for part in ("--set", f"{key}={json.dumps(value)}")]
        run_workers([PROGRAM, "--config", setting.recipe, *flags], 2, folder)
    lines = _lines(output)
    last = [line for line in lines if line["kind"] == "eval"][-1]
    wrapped = [line["wrap_share"] for line in lines if "wrap_share" in line]
    say(f"{setting.name}, {way}, seed {seed}: loss {last['loss']:.4f}")
    return {**last, "wrap_share": max(wrapped, default=None)}


def _row(way: str, ends: list[dict], base: list[dict]) -> list[str]:
    """One line of a table: losses over seeds, and their differences, seed by seed, to those of the first way."""
    losses = [end["loss"] for end in ends]
    differences = [end["loss"] - of_base["loss"] for end, of_base in zip(ends, base)]
    wrapped = [end["wrap_share"] for end in ends if end["wrap_share"] is not None]
    return [way, f"{mean(losses):.4f} ({min(losses):.4f} to {max(losses):.4f})", f"{stdev(losses):.4f}",
            "" if ends is base else f"{mean(differences):+.4f} ({min(differences):+.4f} to {max(differences):+.4f})",
            f"{100 * mean(end['accuracy'] for end in ends):.2f} %", f"{max(wrapped):.4f}" if wrapped else ""]


def _made_by(setting: Setting, folder: Path) -> str:
    """The dates and builds of the runs, because existing runs may come from another build."""
    first_lines = [log.read_text().splitlines()[0] for log in sorted((folder / setting.name).glob("*/*/run.log"))]
    dates, programs = ({found[i] for found in map(FIRST_LINE.match, first_lines)} for i in (1, 2))
    return f"*{', '.join(sorted(dates))}: {', '.join(sorted(programs))}; `tools/bench/training.py`.*"


def bench(setting: Setting, folder: Path) -> str:
    ends: dict[str, list[dict]] = {way: [] for way in setting.ways}
    for seed in setting.seeds:
        for way in setting.ways:
            ends[way].append(_train(setting, way, seed, folder))
    base = next(iter(ends.values()))
    rows = table(["", "eval loss at the end", "standard deviation", f"less that of {next(iter(ends))}, same seed",
                  "accuracy", "largest wrap_share"], [_row(way, of_way, base) for way, of_way in ends.items()])
    return f"{setting.name} ({setting.about}), {len(setting.seeds)} seeds:\n\n{rows}\n\n{_made_by(setting, folder)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="also write the tables into docs/performance.md")
    parser.add_argument("--only", nargs="+", choices=[s.name for s in SETTINGS], default=[s.name for s in SETTINGS])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for setting in SETTINGS:
        if setting.name in arguments.only:
            text = bench(setting, arguments.folder.resolve())
            print(text, flush=True)
            if arguments.write:
                page.write(f"training {setting.name}", text)


if __name__ == "__main__":
    main()
