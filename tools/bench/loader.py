#!/usr/bin/env python3
"""What training waits for data, of whole runs: a transformer on token ids, ResNet-18 on JPEG files.

    .venv/bin/python tools/bench/loader.py [--workers 2] [--rounds 3]

For each, data_wait_ms and step_ms of the lines in metrics.jsonl after the first (which has the start in it), the median over lines
and rounds, and their ratio. One thread of each worker reads (data.threads: 1); the JPEG files, of 500 x 375, are decoded, resized
to 72, cropped to 64 at random, flipped and normalized. What is measured is build/bin/decent-train; needs Pillow.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from images import photo

ROOT = Path(__file__).resolve().parents[2]
CLASSES, FILES_OF_A_CLASS = 10, 48


def make_tokens(folder: Path) -> dict:
    """The repository's README repeated, as ids of nanoGPT: 2 MB."""
    text = (ROOT / "README.md").read_bytes()
    text *= 1_000_000 // len(text) + 1
    (folder / "train.bin").write_bytes(b"".join(byte.to_bytes(2, "little") for byte in text))
    return {"model.path": ROOT / "models" / "char_gpt.pt", "train.steps": 60,
            "data.train": f"{{format: tokens, path: {folder}/train.bin, length: 128}}", "data.batch_size": 8}


def make_images(folder: Path) -> dict:
    subprocess.run([sys.executable, ROOT / "models" / "export.py", "resnet18", "--folder", folder], check=True,
                   stdout=subprocess.DEVNULL)
    content = photo(375, 500)
    for number in range(CLASSES * FILES_OF_A_CLASS):
        file = folder / "images" / str(number % CLASSES) / f"{number}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return {"model.path": folder / "resnet18.pt", "train.steps": 15,
            "data.train": f"{{format: images, path: {folder}/images}}", "data.batch_size": 16,
            "data.transforms": "[{resize: 72}, {random_crop: 64}, flip, {normalize: {mean: 0.5, std: 0.25}}]"}


def waits(settings: dict, workers: int, folder: Path) -> list[tuple[float, float]]:
    """(data_wait_ms, step_ms) of each line but the first."""
    (folder / "recipe.yaml").write_text("log: {every_steps: 5, tensorboard: false}\neval: {every_epochs: null}\n"
                                        "checkpoint: {every_epochs: null}\nparallel: {topology: ring}\n")
    flags = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    subprocess.run([ROOT / "build/bin/decent-train", folder / "recipe.yaml", "--workers", str(workers), "--quiet", *flags,
                    "--set", f"output={folder}/run"], check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    return [(line["data_wait_ms"], line["step_ms"]) for line in lines if line["kind"] == "train"][1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = {"char_gpt on tokens": make_tokens(folder), "resnet18 on JPEG": make_images(folder)}
        seen: dict[str, list[tuple[float, float]]] = {case: [] for case in cases}
        for round_ in range(given.rounds):
            for number, (case, settings) in enumerate(cases.items()):
                run = folder / f"{round_}-{number}"
                run.mkdir()
                seen[case] += waits(settings, given.workers, run)
    for case, lines in seen.items():
        wait, step = (statistics.median(column) for column in zip(*lines))
        print(f"{case}, {given.workers} workers: data_wait_ms {wait:.3f}, step_ms {step:.1f}: {100 * wait / step:.2f} %")


if __name__ == "__main__":
    main()
