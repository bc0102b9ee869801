"""Checkpoints: what they add to a step, and how fast they are written."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from datetime import datetime
from pathlib import Path

from programs import BUILD, PROGRAM, Model, environment, recipe

STEPS = 210
WARM_UP = 10


def step_ms(model: Model, folder: Path, every: int | None, background: bool = True) -> float:
    """Wall time of a step, everything included, of one worker that saves after `every` steps."""
    config = folder / "recipe.yaml"
    saving = {"checkpoint": {"every_steps": every, "every_epochs": None, "background": background},
              "log": {"every_steps": WARM_UP, "progress": "plain"}}
    config.write_text(json.dumps({**recipe(model, STEPS, WARM_UP), **saving}))  # JSON is YAML
    output = Path(tempfile.mkdtemp(dir=folder)) / "run"
    subprocess.run([PROGRAM, "--config", config, "--set", f"output={output}"], env=environment(), check=True,
                   stdout=subprocess.DEVNULL)
    times = [datetime.fromisoformat(line[:23]) for line in (output / "run.log").read_text().splitlines()
             if " I step " in line]
    return 1e3 * (times[-1] - times[0]).total_seconds() / (STEPS - WARM_UP)


def settle() -> None:
    """Waits until the disk has finished the work of an earlier measurement."""
    os.sync()
    time.sleep(1)


def save_s(megabytes: int, folder: Path) -> float:
    """Writing one checkpoint of one worker, from memory to durable."""
    settle()
    out = subprocess.run([BUILD / "bin" / "bench_save", folder / "checkpoints", str(megabytes), "1"], check=True,
                         capture_output=True, text=True).stdout
    return float(out)


def dd_s(megabytes: int, folder: Path) -> float:
    """dd of as many bytes, with an fsync at the end, from a file in memory; random bytes, like weights."""
    source, target = Path("/dev/shm") / f"decent-bench-{os.getpid()}", folder / "dd"
    source.write_bytes(os.urandom(megabytes * 1_000_000))
    try:
        settle()
        begin = time.monotonic()
        subprocess.run(["dd", f"if={source}", f"of={target}", "bs=1M", "conv=fsync"], check=True, capture_output=True)
        return time.monotonic() - begin
    finally:
        source.unlink()
        target.unlink(missing_ok=True)
