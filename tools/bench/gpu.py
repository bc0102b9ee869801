"""One worker on a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from programs import GPU_MODELS, OURS, run_eager, run_ours
from tables import NotHere, ratios, rounds_of, spread, table, two_digits

EAGER = "PyTorch, eager"
CHANGES = {"amp": {"dtype": "bf16"}}


def device() -> str:
    """The name of the GPU. Throws NotHere where PyTorch finds none."""
    code = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else '')"
    name = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    if not name:
        raise NotHere("gpu needs a GPU: torch.cuda.is_available() is False here")
    return name


def bench(rounds: int, folder: Path) -> str:
    rows = []
    for model in GPU_MODELS.values():
        changes = {**CHANGES, "model": {"path": str(model.file), "device": "cuda"}}
        results = rounds_of({OURS: lambda: run_ours(model, 1, folder, changes),
                             EAGER: lambda: run_eager(model, folder)}, rounds, f"{model.name} on a GPU")
        rows.append([f"{model.name}, batch {model.batch_size}", *(spread(values) for values in results.values()),
                     spread(ratios(results, OURS, EAGER), two_digits)])
    text = table(["", "decent-train, ms a step", f"{EAGER}, ms", "ratio"], rows)
    return f"{text}\n\nGPU: {device()}."
