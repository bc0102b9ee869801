#!/usr/bin/env python3
"""Draws docs/images/digits.png from runs that it makes itself:  python tools/plot_digits.py

Left: accuracy of the averaged model over the epochs with 1, 2 and 4 workers (ring). Right: how far 4 workers' models are
apart, by topology. Needs the built program, and matplotlib, which nothing else here needs: pip install matplotlib
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parent.parent


def evaluations(folder: Path, workers: int, topology: str) -> list[dict]:
    """The eval lines of one run of configs/digits.yaml."""
    output = folder / f"{topology}-{workers}"
    subprocess.run(
        [ROOT / ".venv/bin/torchrun", "--nproc-per-node", str(workers), ROOT / "decent-train", "--quiet",
         "--config", ROOT / "configs/digits.yaml", "--set", f"output={output}", "--set", f"parallel.topology={topology}",
         "--set", "eval.every_epochs=1"],
        check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "eval"]


def main() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), constrained_layout=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for workers in (1, 2, 4):
            ring = lines = evaluations(folder, workers, "ring")
            left.plot([line["epoch"] for line in lines], [100 * line["accuracy"] for line in lines],
                      label=f"{workers} worker{'s' if workers > 1 else ''}")
        for topology in ("complete", "one-peer-exp", "ring"):
            lines = ring if topology == "ring" else evaluations(folder, 4, topology)
            right.semilogy([line["epoch"] for line in lines], [line["consensus_distance"] for line in lines],
                           label=topology)
    left.set(title="Averaged model on the digits' test part (ring)", xlabel="epoch", ylabel="accuracy, %", ylim=(90, 100))
    right.set(title="Distance between 4 workers' models", xlabel="epoch", ylabel="consensus distance")
    for axes in (left, right):
        axes.legend()
        axes.grid(alpha=0.3)
    figure.savefig(ROOT / "docs/images/digits.png", dpi=110)


if __name__ == "__main__":
    main()
