#!/usr/bin/env python3
"""Measures decent-train against PyTorch programs, a bare LibTorch loop, and its goals for start-up and memory.

    .venv/bin/python tools/bench/bench.py KIND [--write]

step    whole training steps of four models with 1, 2 and 4 workers: decent-train, its Python peers, DDP, nothing sent
bare    one worker against the same model in the smallest loop that LibTorch allows (bare.cpp)
start   seconds from the start of the process to the end of the first step, and peak memory
save    what a checkpoint adds to a step, and how fast it is written, beside dd with an fsync
update  mixing and updating 64M parameters, beside the peers' operations and STREAM's triad
coding  what mixing with codes of 2 and 4 bits adds to the update of 11M parameters
shared  steps of 2 and 4 workers of one machine, through shared memory and gloo (--workers takes any other number, too)
slow    step over links of 1 Gbit/s and 200 Mbit/s between two hosts (network namespaces: needs root)
slow-modulo  the same at 200 and 50 Mbit/s with two bits a weight, whole weights and slices, and DDP
onnx    steps of models from ONNX and .pt2 files against the same from TorchScript, and the time of an import
gpu     steps in bf16 on a GPU, against PyTorch; exit code 2 where there is none
picture draws docs/performance.png from the tables in docs/performance.md (matplotlib: requirements.txt beside this)
all     all of them, but for those that this machine cannot measure; picture with --write only

All programs take the same TorchScript files, data, batches, AdamW and float32, one thread a worker, and alternate: each
round runs every one of them once. A round's result is the median of its samples, which are means over windows of some
steps (for shared and slow-modulo it is their mean); the tables show medians over rounds with the least and the
greatest, and ratios of the same round. --write puts the tables into docs/performance.md. Needs what tools/setup --tests
installs, and a build (tools/build).
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import coding
import gpu
import onnx_models
import page
import saving
import shared
import slow
import slow_modulo
import starting
from programs import (BUILD, CONTENDERS, GPU_MODELS, HERE, MODELS, OURS, Model, build, environment, make_files,
                      run_bare, run_contender, run_ours, stop_in_order, version_of_others, version_of_ours)
from tables import NotHere, number, ratios, rounds_of, say, spread, table, two_digits

RING_NEEDS_TWO = ("decent-dp", "decent-dp fused", "decent-optim-wrapper")  # their ring needs an even number of workers


# ---- step ----------------------------------------------------------------------------------------------------------

def step_programs(model: Model, workers: int, folder: Path) -> dict[str, Callable[[], list[float]]]:
    programs: dict[str, Callable[[], list[float]]] = {OURS: lambda: run_ours(model, workers, folder)}
    for name in CONTENDERS:
        if workers > 1 or name not in RING_NEEDS_TWO:
            programs[name] = lambda name=name: run_contender(name, model, workers, folder)
    if workers == 1:
        # Shows whether TorchScript's optimizing executor, which decent-train does not use, would help the others.
        programs["no communication, optimizing"] = (
            lambda: run_contender("no communication", model, workers, folder, optimizing=True))
    return programs


def bench_step(model: Model, arguments: argparse.Namespace, folder: Path) -> str:
    parts = []
    for workers in arguments.workers:
        title = f"{model.name}, {workers} worker{'s' * (workers > 1)}"
        results = rounds_of(step_programs(model, workers, folder), arguments.rounds, title)
        parts.append(step_table(title, model, results))
    return "\n\n".join(parts)


def step_table(title: str, model: Model, results: dict[str, list[float]]) -> str:
    rows = [[name, spread(values), spread(ratios(results, name, OURS), two_digits)]
            for name, values in results.items()]
    return f"{title}, batch {model.batch_size} a worker:\n\n" + table(["", "ms a step", "times decent-train's"], rows)


# ---- bare ----------------------------------------------------------------------------------------------------------

def bench_bare(arguments: argparse.Namespace, folder: Path) -> str:
    rows = []
    for model in (MODELS[name] for name in arguments.models):
        results = rounds_of({OURS: lambda: run_ours(model, 1, folder),
                             "bare": lambda: run_bare(model, folder)["windows"],
                             "keeping": lambda: run_bare(model, folder, keeps_memory=True)["windows"]},
                            2 * arguments.rounds, model.name)
        rows.append([model.name, *(spread(values) for values in results.values()),
                     *(spread(ratios(results, OURS, base), "{:.3f}".format) for base in ("bare", "keeping"))])
    return table(["", "decent-train, ms a step", "bare loop", "bare loop, memory kept", "ratio to bare",
                  "ratio to memory kept"], rows)


# ---- start ---------------------------------------------------------------------------------------------------------

def bench_start(arguments: argparse.Namespace, folder: Path) -> str:
    starting.first_step(MODELS["digits_cnn"], folder)  # from here on all files are in memory
    idle = starting.idle_kib()
    rows = []
    for model in (MODELS[name] for name in arguments.models):
        runs = [starting.first_step(model, folder) for _ in range(2 * arguments.rounds + 1)]
        activations = run_bare(model, folder)["activation_bytes"]
        peak = max(*(run.peak_kib for run in runs), starting.peak_kib(model, 2, folder))
        allowed = runs[0].parameters * 20 + activations + 400e6
        rows.append([model.name, spread([run.seconds for run in runs], two_digits), f"{peak / 1024:.0f}",
                     f"{(peak - idle) / 1024:.0f}", f"{allowed / 2**20:.0f}", f"{activations / 2**20:.1f}"])
    libraries = starting.cuda_libraries(MODELS["digits_cnn"], folder)
    text = table(["", "s to the end of step 1", "peak MiB", "above LibTorch alone", "allowed", "activations"], rows)
    return (f"{text}\n\nLibTorch alone (a program that links it and does nothing): {idle / 1024:.0f} MiB. "
            f"CUDA libraries that the program maps: {', '.join(libraries) or 'none'}.")


# ---- save ----------------------------------------------------------------------------------------------------------

SAVED_MB = (10, 130, 500)  # about the state of char_gpt, of gpt_11m, and of 40M parameters


def bench_save(arguments: argparse.Namespace, folder: Path) -> str:
    rows = []
    for model in (MODELS[name] for name in arguments.models):
        results = rounds_of({"without": lambda: [saving.step_ms(model, folder, None)],
                             "background": lambda: [saving.step_ms(model, folder, 10)],
                             "foreground": lambda: [saving.step_ms(model, folder, 10, background=False)]},
                            arguments.rounds, model.name)
        rows.append([model.name, *(spread(values) for values in results.values()),
                     *(spread(ratios(results, kind, "without"), "{:.3f}".format)
                       for kind in ("background", "foreground"))])
    steps = table(["", "no checkpoints, ms a step", "every 10 steps, background", "every 10 steps, foreground",
                   "ratio, background", "ratio, foreground"], rows)
    rows = []
    for size in SAVED_MB:
        results = rounds_of({"save": lambda: [1e3 * saving.save_s(size, folder)],
                             "dd": lambda: [1e3 * saving.dd_s(size, folder)]}, 2 * arguments.rounds + 1, f"{size} MB")
        rows.append([f"{size} MB", *(spread(values) for values in results.values()),
                     spread(ratios(results, "dd", "save"), two_digits)])
    return steps + "\n\n" + table(["", "a checkpoint, ms", "dd conv=fsync, ms", "its speed over dd's"], rows)


# ---- update --------------------------------------------------------------------------------------------------------

TRIAD, PEERS = "triad", ("decent-dp adamw", "decent-dp fused adamw")


def update_results(threads: int, rounds: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """By contender: nanoseconds an element of each round; bytes an element."""
    out = subprocess.run([BUILD / "bin" / "bench_update", "64", str(rounds)], check=True, capture_output=True,
                         text=True, env={**environment(), "OMP_NUM_THREADS": str(threads)}).stdout
    times: dict[str, list[float]] = {}
    size: dict[str, float] = {}
    for line in out.splitlines():
        name, ns, moved = line.split("\t")
        times.setdefault(name, []).append(float(ns))
        size[name] = float(moved)
    return times, size


def bench_update(arguments: argparse.Namespace, folder: Path) -> str:
    parts = []
    for threads in sorted({1, os.cpu_count() or 1}):
        times, size = update_results(threads, 2 * arguments.rounds + 1)
        # A bandwidth over triad's, of the same round: bytes / time over bytes / time.
        rows = [[name, spread(values, "{:.3f}".format), f"{size[name]:.0f}", number(size[name] / median(values)),
                 spread([size[name] / size[TRIAD] / r for r in ratios(times, name, TRIAD)], two_digits),
                 *("" if name in (TRIAD, peer) else spread(ratios(times, peer, name), two_digits)
                   for peer in PEERS)]
                for name, values in times.items()]
        parts.append(f"{threads} thread{'s' * (threads > 1)}:\n\n" + table(
            ["", "ns a parameter", "bytes at least", "GB/s", "bandwidth over triad's",
             *(f"times faster than {peer}" for peer in PEERS)], rows))
    return "\n\n".join(parts)


# ---- all -----------------------------------------------------------------------------------------------------------

# The models of each measurement unless --models chooses fewer; the other measurements have no models.
CHOICES = {"step": list(MODELS), "bare": list(MODELS), "start": list(MODELS), "save": ["char_gpt"],
           "shared": ["gpt_11m"], "slow": ["char_gpt", "gpt_11m"], "slow-modulo": ["gpt_11m"],
           "onnx": list(onnx_models.COMPARED)}
BENCHMARKS = ("step", "bare", "start", "save", "update", "coding", "shared", "slow", "slow-modulo", "onnx", "gpu",
              "picture")
SETTINGS = [setting.name for setting in slow_modulo.SETTINGS]
TARGETS = {"bare": "bench_bare", "start": "bench_idle", "save": "bench_save", "update": "bench_update",
           "coding": "bench_coding", "onnx": "bench_import"}


def draw() -> None:
    """In a process of its own, so that bench.py stays small."""
    if subprocess.run([sys.executable, HERE / "picture.py"]).returncode != 0:
        raise NotHere("no picture")
    page.write("picture", "![ms a step of gpt_11m on one machine and over slow links](performance.png)")


def sections(kind: str, arguments: argparse.Namespace, folder: Path) -> Iterator[tuple[str, str]]:
    """Parts of the page, each as soon as it is measured, under the name of its place in the page."""
    if kind == "step":
        for name in arguments.models:
            yield f"step {name}", bench_step(MODELS[name], arguments, folder)
    elif kind == "shared":
        yield from shared.sections(arguments.settings, arguments.workers, arguments.rounds, folder)
    elif kind == "slow":
        for name in arguments.models:
            yield f"slow {name}", slow.bench(MODELS[name], arguments.rounds, folder)
    elif kind == "slow-modulo":
        for setting in (s for s in slow_modulo.SETTINGS if s.name in arguments.settings):
            yield f"{kind} {setting.name}", slow_modulo.bench(setting, arguments.rounds, folder)
    elif kind == "coding":
        yield kind, coding.bench(arguments.rounds)
    elif kind == "onnx":
        yield kind, onnx_models.bench(arguments, folder)
    elif kind == "gpu":
        yield kind, gpu.bench(arguments.rounds, folder)
    else:
        yield kind, {"bare": bench_bare, "start": bench_start, "save": bench_save, "update": bench_update}[kind](
            arguments, folder)


def circumstances(kind: str, arguments: argparse.Namespace) -> str:
    cpu = next(line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
               if line.startswith("model name"))
    cores = subprocess.run(["nproc"], capture_output=True, text=True, check=True).stdout.strip()
    load = Path("/proc/loadavg").read_text().split()[0]
    return (f"*{datetime.date.today()}: {cpu}, {cores} cores, {platform.system()} {platform.release().split('-')[0]}, "
            f"load before the run {load}. {version_of_ours()}; {version_of_others()}. "
            f"{arguments.rounds} round{'s' * (arguments.rounds > 1)}: `tools/bench/bench.py {kind}`.*")


def measure(kind: str, arguments: argparse.Namespace) -> None:
    """Throws NotHere, before anything is run, if this machine cannot."""
    if kind in ("slow", "slow-modulo", "gpu"):
        (gpu.device if kind == "gpu" else slow.check)()
    make_files(list(GPU_MODELS) if kind == "gpu" else arguments.models)
    if not arguments.no_build:
        build(["decent-train", "bench_bare", *([TARGETS[kind]] if kind in TARGETS else [])])
    about = circumstances(kind, arguments)
    with tempfile.TemporaryDirectory() as folder:
        for place, measured in sections(kind, arguments, Path(folder)):
            text = f"{measured}\n\n{about}"
            print(text, flush=True)
            if arguments.write:
                page.write(place, text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=[*BENCHMARKS, "all"])
    parser.add_argument("--write", action="store_true", help="also write the tables into docs/performance.md")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4], help="of step and shared")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=SETTINGS, help="of shared and slow-modulo")
    parser.add_argument("--no-build", action="store_true", help="measure the programs in build/bin as they are")
    arguments = parser.parse_args()
    if arguments.kind in CHOICES and not set(CHOICES[arguments.kind]) & set(arguments.models):
        parser.error(f"{arguments.kind} measures {', '.join(CHOICES[arguments.kind])}")
    others = set(arguments.workers) - {1, *shared.ON_THE_PAGE}
    if arguments.kind == "shared" and max(arguments.workers) < 2:
        parser.error("shared measures 2 workers and more")
    if arguments.kind in ("shared", "all") and arguments.write and others:
        parser.error(f"docs/performance.md has no place for {min(others)} workers of one machine")
    return arguments


def run(kind: str, arguments: argparse.Namespace) -> None:
    if kind == "picture":
        draw()
        return
    chosen = [name for name in CHOICES.get(kind, []) if name in arguments.models]
    measure(kind, argparse.Namespace(**{**vars(arguments), "models": chosen}))


def main() -> None:
    stop_in_order()
    arguments = parse()
    kinds = [arguments.kind]
    if arguments.kind == "all":
        kinds = BENCHMARKS if arguments.write else [kind for kind in BENCHMARKS if kind != "picture"]
    for kind in kinds:
        try:
            run(kind, arguments)
        except NotHere as reason:
            say(f"not measured: {reason}")
            if arguments.kind != "all":
                sys.exit(2)


if __name__ == "__main__":
    main()
