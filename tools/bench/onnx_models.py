"""Models from ONNX and torch.export files against the same models from TorchScript, and how long an import takes."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from programs import BUILD, FILES, MODELS, ROOT, Model, run_ours
from tables import ratios, rounds_of, spread, table, two_digits

COMPARED = ("digits_cnn", "char_gpt", "resnet18")
LARGE = "gpt_85m"  # 86M parameters, 343 MB
IMPORTED = {"ONNX": ".onnx", "torch.export": ".pt2"}


def make_files(names: list[str]) -> None:
    files = [f"{name}{extension}" for name in names for extension in IMPORTED.values()]
    missing = [file for file in files if not (FILES / file).exists()]
    if missing:
        subprocess.run([sys.executable, ROOT / "models" / "export.py", *missing, "--folder", FILES], check=True,
                       stdout=sys.stderr)


def steps_table(rounds: int, models: list[Model], folder: Path) -> str:
    rows = []
    for model in models:
        files = {"TorchScript": model, **{kind: replace(model, file=FILES / f"{model.name}{extension}")
                                          for kind, extension in IMPORTED.items()}}
        results = rounds_of({kind: partial(run_ours, each, 1, folder) for kind, each in files.items()}, rounds, model.name)
        rows.append([model.name, *(spread(values) for values in results.values()),
                     *(spread(ratios(results, kind, "TorchScript"), two_digits) for kind in IMPORTED)])
    return table(["", *(f"{kind}, ms a step" for kind in files), *(f"{kind}, ratio" for kind in IMPORTED)], rows)


def read_s(path: Path) -> float:
    """The time to read all bytes of a file that is in memory."""
    begin = time.monotonic()
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
    return time.monotonic() - begin


def import_s(path: Path) -> float:
    out = subprocess.run([BUILD / "bin" / "bench_import", path], check=True, capture_output=True, text=True).stdout
    return float(json.loads(out)["seconds"])


def import_table(rounds: int, names: list[str]) -> str:
    rows = []
    for path in (FILES / f"{name}{extension}" for name in names for extension in IMPORTED.values()):
        results = rounds_of({"reading": lambda path=path: [1e3 * read_s(path)], "import": lambda path=path: [1e3 * import_s(path)]},
                            2 * rounds + 1, path.name)
        rows.append([path.name, f"{path.stat().st_size / 1e6:.0f}", *(spread(values) for values in results.values())])
    return table(["", "MB", "reading all bytes, ms", "import, reading included, ms"], rows)


def bench(arguments: argparse.Namespace, folder: Path) -> str:
    models = [MODELS[name] for name in COMPARED if name in arguments.models]
    names = [model.name for model in models]
    make_files([*names, LARGE])
    return steps_table(arguments.rounds, models, folder) + "\n\n" + import_table(arguments.rounds, [*names, LARGE])
