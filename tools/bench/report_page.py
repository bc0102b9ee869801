#!/usr/bin/env python3
"""How long report pages of long runs take to write and to open:  python tools/bench/report_page.py [LINES [RUNS]]

Makes runs of so many train lines (100,000) in a temporary folder, lets the built program write the page of one of them and
the page that compares all (10), and opens both in headless Chromium until everything is drawn.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))

from browser import Browser  # noqa: E402

PROGRAM = Path(os.environ.get("DECENT_TRAIN", ROOT / "build" / "bin" / "decent-train"))
RECIPE = """name: long-{number}
data: {{batch_size: 16}}
train: {{grad_accumulation: 1}}
optimizer: {{name: adamw, lr: 0.00{number}}}
parallel: {{topology: one-peer-exp}}
"""


def make_run(folder: Path, lines: int, number: int) -> None:
    folder.mkdir()
    (folder / "recipe.yaml").write_text(RECIPE.format(number=number))
    noise = random.Random(number)
    with (folder / "metrics.jsonl").open("w") as file:
        for step in range(10, 10 * lines + 1, 10):
            loss = 0.3 + 2 * math.exp(-step / (2000 + 500 * number)) + noise.gauss(0, 0.05)
            step_ms = 20 + noise.random()
            file.write(json.dumps({
                "kind": "train", "step": step, "epoch": step / 977, "loss": loss, "loss_mean": loss + noise.gauss(0, 0.01),
                "lr": 1e-3 * math.cos(step / (6 * lines)),
                "samples_per_s": 64000 / step_ms, "step_ms": step_ms, "comm_wait_ms": noise.random(), "data_wait_ms": 0.1 * noise.random(),
            }, separators=(",", ":")) + "\n")
            if step % (100 * 10) == 0:
                file.write(json.dumps({"kind": "eval", "step": step, "epoch": step / 977, "model": "average", "loss": loss + 0.1,
                                       "accuracy": 1 - loss / 3, "samples": 1000, "consensus_distance": 1 / step}) + "\n")
        file.write(json.dumps({"kind": "end", "status": "completed", "step": 10 * lines, "wall_s": 1.0}) + "\n")


def measure(what: str, folders: list[Path], file: Path) -> None:
    begin = time.monotonic()
    subprocess.run([PROGRAM, "--report", *folders, "--out", file, "--quiet"], check=True)
    written = time.monotonic() - begin
    browser = Browser()
    try:
        page = browser.page()
        page.size(1600)
        page.open("about:blank")
        opened = page.open(file.as_uri())
        assert page.console == [], page.console
        switched = page.run("(() => { const begin = performance.now(); decentReport.view.setAxis('time'); return performance.now() - begin; })()")
        zoomed = page.run("(() => { const [a, b] = decentReport.view.all(); const begin = performance.now(); "
                          "decentReport.view.zoom([0.4 * b, 0.6 * b]); return performance.now() - begin; })()")
    finally:
        browser.close()
    print(f"{what}: written in {written:.2f} s, {file.stat().st_size / 1e6:.1f} MB; opened in {opened:.2f} s; "
          f"other axis {switched:.0f} ms, zoom {zoomed:.0f} ms", flush=True)


def main() -> None:
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    with tempfile.TemporaryDirectory() as folder:
        folders = [Path(folder, f"run-{number}") for number in range(runs)]
        for number, run in enumerate(folders):
            make_run(run, lines, number)
        measure(f"one run of {lines} train lines", folders[:1], Path(folder, "one.html"))
        measure(f"{runs} such runs", folders, Path(folder, "all.html"))


if __name__ == "__main__":
    main()
