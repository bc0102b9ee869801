#!/usr/bin/env python3
"""Two versions of the program on the same recipes, side by side: whether they train the same bits.

    .venv/bin/python tools/bench/versions.py OLD NEW [--only REGEX] [--tolerance 1e-4]

OLD and NEW are decent-train programs. Each recipe is trained by both, with checkpoints on the way; then NEW resumes from OLD's
checkpoint. Compared are every tensor of every checkpoint and metrics.jsonl without its times. With a tolerance, tensors may
differ by that part of the way that training moved them (L2 norms), for changes that round otherwise.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tests" / "support")]

import program  # noqa: E402
from runs import DIGITS_CNN, Run, merged, recipe, train, with_default_farewell  # noqa: E402
from tensors import differing, read_safetensors  # noqa: E402

STEPS, HALF = 12, 6
# In 16 bits, a different rounding moves a few numbers to a neighbour, by 2^-8 of themselves instead of 2^-24. Relative
# to a step's change, 1e-3 of the weight, one such number in 10,000 is 2^-8 / 1e-3 * sqrt(1e-4) = 4e-2.
LOW_PRECISION, LOW_PRECISION_TOLERANCE = re.compile("bf16|fp16"), 4e-2
ONNX_CNN = ROOT / "models" / "digits_cnn.onnx"
ADAMW = {"optimizer": {"name": "adamw", "lr": 3e-3, "weight_decay": 0.1}}
SCALER = {"dtype": "fp16", "init_scale": 2.0**22, "growth_interval": 3}


def cases() -> list[tuple[str, int, dict]]:
    """(name, workers, changes of the recipe); a model that is not the MLP is among the changes."""
    def optimizer(**options: object) -> dict:
        return {"optimizer": {"lr": 3e-3, **options}}

    def parallel(**options: object) -> dict:
        return merged(ADAMW, {"parallel": options})

    sgd = optimizer(name="sgd", lr=0.05, momentum=0.9)
    cnn, onnx = {"model": {"path": str(DIGITS_CNN)}}, {"model": {"path": str(ONNX_CNN)}}
    return [
        ("sgd", 2, optimizer(name="sgd", lr=0.05)),
        ("sgd momentum", 2, sgd),
        ("sgd nesterov decay", 2, optimizer(name="sgd", lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01)),
        ("adam", 2, optimizer(name="adam")),
        ("adam decay", 2, optimizer(name="adam", weight_decay=0.01)),
        ("adamw", 2, ADAMW),
        ("adamw alone", 1, ADAMW),
        ("accum_adam", 2, optimizer(name="accum_adam", accum_iter=3)),
        ("accum_adamw", 2, optimizer(name="accum_adamw", accum_iter=4, weight_decay=0.1)),
        ("param_groups", 2, optimizer(name="adamw", param_groups=[{"match": "*bias", "lr_scale": 0.5, "weight_decay": 0}])),
        ("ring of 4", 4, parallel(topology="ring")),
        ("one-peer-exp of 4", 4, parallel(topology="one-peer-exp")),
        ("alternating-exp-ring of 4", 4, parallel(topology="alternating-exp-ring", local_world_size=2)),
        ("complete of 3", 3, parallel(topology="complete")),
        ("custom of 3", 3, parallel(topology={"phases": [[{"ranks": [0, 1], "weight": 0.6}, {"ranks": [2], "weight": 1.0}],
                                                         [{"ranks": [0, 1, 2], "weight": 0.5}]]})),
        ("gamma .5", 2, parallel(gamma=0.5)),
        ("small buckets", 2, parallel(bucket_mb=0.01)),
        ("after_backward", 2, parallel(update="after_backward")),
        ("clip global", 2, parallel(grad_clip_norm=0.3)),
        ("clip bucket", 2, parallel(grad_clip_norm=0.3, grad_clip_scope="bucket", bucket_mb=0.01)),
        ("bf16 exchange", 2, parallel(comm_dtype="bf16")),
        ("bf16 exchange of 3", 3, parallel(comm_dtype="bf16", topology="complete")),
        ("bf16 exchange of 5", 5, parallel(comm_dtype="bf16", topology="complete")),
        ("amp bf16", 2, merged(sgd, {"amp": {"dtype": "bf16"}})),
        ("amp fp16", 2, merged(sgd, {"amp": SCALER})),
        ("amp fp16 clip adamw", 2, merged(parallel(grad_clip_norm=0.3), {"amp": SCALER})),
        ("accumulation", 2, merged(ADAMW, {"train": {"grad_accumulation": 3}})),
        ("cosine_warmup", 2, merged(ADAMW, {"schedule": {"name": "cosine_warmup", "warmup_steps": 4}})),
        ("cnn ring of 3", 3, merged(cnn, parallel(topology="ring"))),
        ("cnn channels_last", 2, merged(merged(cnn, sgd), {"model": {"memory_format": "channels_last"}})),
        ("onnx", 2, merged(onnx, ADAMW)),
        ("onnx sgd clip", 2, merged(onnx, merged(sgd, {"parallel": {"grad_clip_norm": 0.5}}))),
    ]


def run(program_file: Path, folder: Path, changes: dict, workers: int, *flags: object) -> Run:
    program.PROGRAM = program_file
    settings = merged(recipe(train={"steps": STEPS}, checkpoint={"every_steps": HALF, "keep": 9},
                             eval={"every_steps": HALF}), changes)
    return train(folder, with_default_farewell(settings), *flags, workers=workers)


def state(ran: Run, step: int) -> dict[str, np.ndarray]:
    return {f"{file.stem} {name}": tensor for file in sorted(ran.checkpoint(step).glob("*.safetensors"))
            for name, tensor in read_safetensors(file).items()}


def distance(a: dict[str, np.ndarray], b: dict[str, np.ndarray], start: dict[str, np.ndarray]) -> float:
    """The largest ||a - b|| of a tensor over the way from `start` to `a`."""
    if a.keys() != b.keys():
        return float("inf")
    norm = lambda x: float(np.linalg.norm(x.astype(np.float64)))  # noqa: E731
    return max(norm(a[n] - b[n]) / max(norm(a[n] - start[n]), 1e-30) if not np.array_equal(a[n], b[n]) else 0.0 for n in a)


def compare(old: Run, new: Run, resumed: Run) -> tuple[list[str], float]:
    """The differences, and the largest distance of a tensor."""
    middle, end = state(old, HALF), state(old, STEPS)
    wrong, far = [], 0.0
    for what, ours, theirs in [(f"step {HALF}", state(new, HALF), middle), (f"step {STEPS}", state(new, STEPS), end),
                               ("resumed", state(resumed, STEPS), end)]:
        names = differing(ours, theirs)
        if names:
            wrong.append(f"{what}: {len(names)} of {len(theirs)} tensors, first {names[0]}")
            far = max(far, distance(theirs, ours, middle if theirs is end else {n: np.zeros_like(t) for n, t in middle.items()}))
    if old.metrics_without_times != new.metrics_without_times:
        wrong.append("metrics.jsonl")
    return wrong, far


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", default="", help="recipes in whose name this regular expression is found")
    parser.add_argument("--tolerance", type=float, default=0.0)
    flags = parser.parse_args()
    failed = 0
    for name, workers, changes in cases():
        if not re.search(flags.only, name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            old = run(flags.old.absolute(), place / "old", changes, workers)
            new = run(flags.new.absolute(), place / "new", changes, workers)
            resumed = run(flags.new.absolute(), place / "resumed", changes, workers, "--resume", old.checkpoint(HALF))
            wrong, far = compare(old, new, resumed)
        tolerance = flags.tolerance
        if tolerance > 0 and LOW_PRECISION.search(name):
            tolerance = max(tolerance, LOW_PRECISION_TOLERANCE)
        bad = bool(wrong) and (far > tolerance or tolerance == 0)
        failed += bad
        print(json.dumps({"recipe": name, "workers": workers, "same_bits": not wrong, "distance": far, "differs": wrong}),
              flush=True)
    print(f"{failed} recipes failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
