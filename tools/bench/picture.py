"""Draws docs/performance.png from the tables of docs/performance.md:  picture.py"""

from __future__ import annotations

import sys

try:
    import matplotlib
except ModuleNotFoundError:
    sys.exit("picture needs matplotlib: .venv/bin/pip install -r tools/bench/requirements.txt")

import page
from programs import ROOT

matplotlib.use("Agg")
import matplotlib.pyplot as plt

MODEL = "gpt_11m"
# Label of a group of bars -> the place of its table on the page, the line above the table.
GROUPS = {
    "one machine": (f"step {MODEL}", f"{MODEL}, 2 workers"),
    "1 Gbit/s between two": (f"slow {MODEL}", f"{MODEL}, 1 Gbit/s"),
    "200 Mbit/s between two": (f"slow {MODEL}", f"{MODEL}, 200 Mbit/s"),
}
BARS = {"decent-train": "0.15", "decent-dp fused": "0.6", "DDP": "1.0"}  # and their greys
WIDTH = 0.27


def main() -> None:
    try:
        groups = {label: page.first_column(*place) for label, place in GROUPS.items()}
    except KeyError as error:
        sys.exit(f"picture: {error.args[0]}; bench.py step and slow, with --write, make what it needs")
    figure, axes = plt.subplots(figsize=(8, 3.8), constrained_layout=True)
    for i, (name, grey) in enumerate(BARS.items()):
        places = [group + (i - 1) * WIDTH for group in range(len(groups))]
        bars = axes.bar(places, [values[name] for values in groups.values()], WIDTH, label=name, color=grey,
                        edgecolor="black", hatch="" if i < 2 else "///")
        axes.bar_label(bars, fmt="%.0f", padding=2)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.set_ylabel("ms a step")
    axes.set_title(f"{MODEL}, 2 workers of one thread, float32, AdamW: less is better")
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(ROOT / "docs" / "performance.png", dpi=120)


if __name__ == "__main__":
    main()
