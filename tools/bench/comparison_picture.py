"""Draws the loss of the averaged model over time, from trainings and the milliseconds of a step over a link."""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import matplotlib
except ModuleNotFoundError:
    sys.exit("pictures need matplotlib: .venv/bin/pip install -r tools/bench/requirements.txt")

from comparison import DECENT_DP, METHODS
from comparison_rows import Row

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import ScalarFormatter

LEFT_OUT = {DECENT_DP}  # its line would lie on that of gossip fp32
COLOURS = {"none": "0.6", "all_reduce": "tab:blue", "gossip": "tab:red", "DDP": "black", "local": "tab:green"}
LINES = ("-", "--", ":", "-.")  # of methods of one colour, in their order
ROOM = 0.2  # of loss, above the lowest: higher losses tell nothing


def _kind(name: str) -> str:
    return next(kind for kind in COLOURS if name.startswith(kind))


def _style(name: str) -> dict:
    alike = [other for other in METHODS if other not in LEFT_OUT and _kind(other) == _kind(name)]
    return {"color": COLOURS[_kind(name)], "linestyle": LINES[alike.index(name)], "linewidth": 1.6}


def draw(rows: list[Row], target: float | None, mbit: int, workers: int, path: Path) -> None:
    """Each method with the training that reaches all_reduce's loss, or the longest that was tried."""
    figure, axes = plt.subplots(figsize=(9, 4.6), constrained_layout=True)
    lowest = float("inf")
    for row in rows:
        ms = row.ms(mbit)
        if row.method.name in LEFT_OUT or row.trained is None or ms is None:
            continue
        curve = row.trained.curves[row.trained.length or max(row.trained.curves)]
        axes.plot([1e-3 * ms * step for step, _ in curve], [loss for _, loss in curve], marker="o", markersize=3,
                  label=row.method.name, **_style(row.method.name))
        lowest = min(lowest, curve[-1][1])
    if target is not None:
        axes.axhline(target, color="0.8", linewidth=1, zorder=0)  # where all should end
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.set_ylim(lowest - 0.02, lowest + ROOM)
    axes.set_xlabel("seconds of training (steps times the time of a step)")
    axes.set_ylabel("loss on held-out text")
    axes.set_title(f"gpt_11m, {workers} workers, {mbit} Mbit/s between them: the averaged model")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
