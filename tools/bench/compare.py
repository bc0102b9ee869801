#!/usr/bin/env python3
"""All methods side by side: all-reduce, gossip, no exchange, and PyTorch programs, over links of several speeds.

    .venv/bin/python tools/bench/compare.py [losses | bytes | timings | all] [--write] [--workers 4 2] [--only METHOD..]

losses   trains each method to its end, for the loss of the averaged model: with 3 learning rates, and for the length
         that it needs to end where all-reduce ends
bytes    counts what a worker sends in a step (network namespaces: needs root)
timings  measures a step of each method over each link (needs root and a quiet machine)
all      all of it; with none of these it shows what is there

Every result is a file in build/bench/compare and is not measured again: what was stopped goes on. --write puts the
table into docs/performance.md and draws the pictures (matplotlib: requirements.txt beside this). Local SGD needs
torchft.
"""

from __future__ import annotations

import argparse
import sys

import losses
import timings
import comparison_page
from comparison import METHODS, WORKERS
from programs import FILES, make_files, stop_in_order
from tables import NotHere, say

FOLDER = FILES / "compare"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["losses", "bytes", "timings", "all"])
    parser.add_argument("--write", action="store_true", help="put table and pictures into docs")
    parser.add_argument("--workers", nargs="+", type=int, choices=WORKERS, default=list(WORKERS))
    parser.add_argument("--only", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="METHOD")
    parser.add_argument("--links", nargs="+", choices=list(timings.LINK_NAMES), default=list(timings.LINK_NAMES))
    parser.add_argument("--rounds", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    stop_in_order()
    arguments = parse()
    of_losses = losses.Losses(FOLDER, measuring=False)
    of_timings = timings.Timings(FOLDER)
    if arguments.what:
        make_files([losses.MODEL.stem])
    try:
        if arguments.what in ("losses", "all"):
            losses.Losses(FOLDER, measuring=True).measure(arguments.only, arguments.workers)
        if arguments.what in ("bytes", "all"):
            of_timings.count(arguments.only, arguments.workers)
        if arguments.what in ("timings", "all"):
            of_timings.measure(arguments.only, arguments.workers, arguments.links, arguments.rounds)
    except NotHere as reason:
        say(f"not measured: {reason}")
        sys.exit(2)
    workers = tuple(arguments.workers)
    print(comparison_page.text(of_losses, of_timings, workers))
    if arguments.write:
        comparison_page.write(of_losses, of_timings, workers)


if __name__ == "__main__":
    main()
