"""One worker on a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from programs import FILES, GPU_MODELS, HERE, OURS, Model, run_eager, run_ours, run_python
from tables import NotHere, ratios, rounds_of, spread, table, two_digits

EAGER = "PyTorch, eager"
WEIGHTS_ONLY = "weights_only"
# Bytes per parameter in a step of weights_only.py: gradient written, then weight, gradient and two moments read, weight
# and two moments written.
BYTES = 4 + 28
MILLION = 256


def device() -> str:
    """The name of the GPU. Throws NotHere if PyTorch finds none."""
    code = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else '')"
    name = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    if not name:
        raise NotHere("gpu needs a GPU: torch.cuda.is_available() is False here")
    return name


def bench(rounds: int, folder: Path) -> str:
    return f"{_steps(rounds, folder)}\n\n{_update(rounds, folder)}\n\nGPU: {device()}."


def _steps(rounds: int, folder: Path) -> str:
    rows = []
    for model in GPU_MODELS.values():
        changes = {"model": {"path": str(model.file), "device": "cuda"}, "amp": {"dtype": "bf16"}}
        results = rounds_of({OURS: lambda: run_ours(model, 1, folder, changes),
                             EAGER: lambda: run_eager(model, folder)}, rounds, f"{model.name} on a GPU")
        rows.append([f"{model.name}, batch {model.batch_size}", *(spread(values) for values in results.values()),
                     spread(ratios(results, OURS, EAGER), two_digits)])
    return table(["", "decent-train, ms a step", f"{EAGER}, ms", "ratio"], rows)


def _update(rounds: int, folder: Path) -> str:
    file, copied = folder / f"{WEIGHTS_ONLY}.pt", 4_000_000 * MILLION
    subprocess.run([sys.executable, HERE / f"{WEIGHTS_ONLY}.py", file, str(MILLION)], check=True)
    model = Model(WEIGHTS_ONLY, file, FILES / "digits.safetensors", 16, 300, 100, 50)
    changes = {"model": {"path": str(file), "device": "cuda"}}
    results = rounds_of({OURS: lambda: run_ours(model, 1, folder, changes),
                         "copy": lambda: run_python("gpu_copy.py", folder, str(copied), "20")}, rounds, WEIGHTS_ONLY)
    ours = [BYTES * MILLION / ms for ms in results[OURS]]  # GB/s
    copy = [1e-6 * 2 * copied / ms for ms in results["copy"]]
    return table(["", "ms a step", "GB/s", "GB/s of a copy", "ratio"],
                 [[f"AdamW, {MILLION} million parameters", spread(results[OURS]), spread(ours), spread(copy),
                   spread([a / b for a, b in zip(ours, copy)], two_digits)]])
