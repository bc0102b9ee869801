"""Small networks of many kinds, each as TorchScript, ONNX in two forms and .pt2, trained for five steps:

    sweep.py make FOLDER             # files, data and recipes, and the losses on the CPU; DECENT_SWEEP="NAME NAME..": of some
    sweep.py run FOLDER [KEY=VALUE..] # the same on the GPU, where nothing can be exported; names what differs
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / room) for room in ("support", "cli", "onnx")]

FORMS = ("pt", "D", "LT", "PT")  # of tests/onnx/exports.py
SAMPLES, STEPS, PARALLEL = 16, 5, 4
PROGRAM = Path(os.environ.get("DECENT_TRAIN", TESTS.parent / "build/bin/decent-train")).absolute()


def write_network(name: str, form: str, folder: Path) -> None:
    import exports
    import harness
    from catalogue import make_data
    from tensors import write_safetensors

    data = folder / f"{name}.safetensors"
    write_safetensors(data, {field: values[:SAMPLES] for field, values in make_data(name).items()})
    model = exports.script(name, folder) if form == "pt" else exports.export(name, form, folder)
    settings = harness.make_recipe(name, Path(model.name), Path(data.name), "sgd")
    settings["data"]["batch_size"] = min(8, settings["data"]["batch_size"])
    settings |= {"train": {"steps": STEPS}, "eval": {"every_steps": STEPS}, "checkpoint": {"every_steps": STEPS}}
    (folder / f"{name}.{form}.json").write_text(json.dumps(settings))


def losses_of(recipe: Path, device: str, changes: list[str]) -> list[float] | str:
    """Of every step and of the evaluation, or what went wrong."""
    with tempfile.TemporaryDirectory() as out:
        flags = [f"model.device={device}", f"output={out}/run", *changes]
        ended = subprocess.run([PROGRAM, recipe.name, "--quiet", *(part for flag in flags for part in ("--set", flag))],
                               capture_output=True, text=True, cwd=recipe.parent, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if ended.returncode != 0:
            return f"exit {ended.returncode}: {' '.join(ended.stderr.split())[:300]}"
        lines = [json.loads(line) for line in Path(out, "run/metrics.jsonl").read_text().splitlines()]
        return [line["loss"] for line in lines if line["kind"] in ("train", "eval")]


def losses_of_all(folder: Path, device: str, changes: list[str]) -> dict[str, list[float] | str]:
    recipes = sorted(folder.glob("*.*.json"))
    with ThreadPoolExecutor(PARALLEL) as pool:
        return dict(zip((recipe.stem for recipe in recipes), pool.map(lambda each: losses_of(each, device, changes), recipes)))


def make(folder: Path) -> None:
    import exports
    from catalogue import EXAMPLES

    folder.mkdir(parents=True, exist_ok=True)
    for name in os.environ.get("DECENT_SWEEP", "").split() or EXAMPLES:
        for form in FORMS:
            if (name, form) not in exports.IMPOSSIBLE:
                write_network(name, form, folder)
    (folder / "cpu.json").write_text(json.dumps(losses_of_all(folder, "cpu", [])))


def run(folder: Path, changes: list[str]) -> None:
    """The largest difference of a loss, over the loss or over 0.001 where that is more."""
    cpu, distances = json.loads((folder / "cpu.json").read_text()), {}
    for name, losses in losses_of_all(folder, "cuda", changes).items():
        if isinstance(losses, str) or isinstance(cpu[name], str):
            if losses != cpu[name]:
                print(f"{name}: {losses}; on the CPU: {cpu[name]}")
        else:
            distances[name] = max(abs(ours - theirs) / max(abs(theirs), 1e-3) for ours, theirs in zip(losses, cpu[name], strict=True))
    worst = sorted(distances, key=distances.get)[-5:]
    print(f"== {len(distances)} of {len(cpu)} networks; farthest from the CPU: {', '.join(f'{n} {distances[n]:.0e}' for n in worst)}")


if __name__ == "__main__":
    make(Path(sys.argv[2])) if sys.argv[1] == "make" else run(Path(sys.argv[2]), sys.argv[3:])
