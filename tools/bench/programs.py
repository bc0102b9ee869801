"""The programs that are measured: how each is started and what it reports."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import support
from hosts import Host
from ports import free_port

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build"
FILES = BUILD / "bench"  # models and data, made by prepare.py
PROGRAM = Path(os.environ.get("DECENT_TRAIN", BUILD / "bin" / "decent-train")).absolute()
TIMEOUT_S = 1800


@dataclass(frozen=True)
class Model:
    name: str
    file: Path
    data: Path
    batch_size: int  # per worker
    steps: int
    warm_up: int  # of these steps, left out of the measurement
    window: int  # steps whose mean is one sample; warm_up is a multiple of it


MODELS = {m.name: m for m in (
    Model("digits_cnn", ROOT / "models" / "digits_cnn.pt", FILES / "digits.safetensors", 16, 240, 40, 20),
    Model("char_gpt", ROOT / "models" / "char_gpt.pt", FILES / "passages_128.safetensors", 4, 50, 10, 5),
    Model("resnet18", FILES / "resnet18.pt", FILES / "noise_64.safetensors", 8, 30, 5, 5),
    Model("gpt_11m", FILES / "gpt_11m.pt", FILES / "passages_256.safetensors", 2, 16, 4, 4),
)}
GPU_MODELS = {m.name: m for m in (
    Model("gpt_11m", FILES / "gpt_11m.pt", FILES / "passages_256.safetensors", 32, 300, 100, 50),
    Model("gpt_85m", FILES / "gpt_85m.pt", FILES / "passages_256.safetensors", 32, 300, 100, 50),
)}

# The settings of app/allocator.cpp.
KEEPS_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**31 - 1), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}

OURS = "decent-train"
CONTENDERS = ("decent-dp", "decent-dp fused", "decent-optim-wrapper", "DDP", "no communication")


def version_of_ours() -> str:
    return subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def version_of_others() -> str:
    installed = {d.name: d.version for d in importlib.metadata.distributions()}
    names = ("torch", "decent-dp", "decent-optim-wrapper", "torchft")  # the last one if compare.py finds it
    return ", ".join(f"{name} {installed[name]}" for name in names if name in installed)


def stop_in_order() -> None:
    """From here on a signal ends all started processes and deletes namespaces, and no second signal interrupts that."""
    def stop(number: int, _: object) -> None:
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_IGN)
        sys.exit(128 + number)

    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, stop)


def make_files(models: Sequence[str]) -> None:
    """Models and data."""
    subprocess.run([sys.executable, HERE / "prepare.py", FILES, *models], check=True, stdout=sys.stderr)


def build(targets: list[str]) -> None:
    subprocess.run(["cmake", "--build", BUILD, "--target", *targets], check=True, stdout=sys.stderr)


def environment(rank: int = 0, workers: int = 1, port: int = 0, hosts: Sequence[Host] = ()) -> dict[str, str]:
    """One thread per worker, all on this machine or one on each host; one worker of ours needs no launcher, the others
    meet at the port.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TORCHELASTIC_", "MASTER_", "LOCAL_"))}
    launcher = {"RANK": rank, "WORLD_SIZE": workers, "MASTER_PORT": port}
    if hosts:
        launcher |= {"LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": hosts[0].address,
                     "GLOO_SOCKET_IFNAME": "eth0"}
    else:
        launcher |= {"LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": workers, "MASTER_ADDR": "127.0.0.1",
                     "GLOO_SOCKET_IFNAME": "lo"}
    return {**kept, "OMP_NUM_THREADS": "1", **{k: str(v) for k, v in launcher.items()}}


def run_workers(command: list, workers: int, folder: Path, variables: dict[str, str] | None = None,
                 hosts: Sequence[Host] = ()) -> str:
    """Runs one process a worker, on a host each where there are some; returns what rank 0 printed. None is left behind,
    whatever happens.
    """
    port = free_port()
    processes = []
    try:
        for rank in range(workers):
            with (folder / f"rank-{rank}.out").open("wb") as out:
                own = {**environment(rank, workers, port, hosts), **(variables or {})}
                prefix = hosts[rank].prefix if hosts else []
                processes.append(subprocess.Popen([*prefix, *command], env=own, stdout=out, stderr=subprocess.STDOUT,
                                                  cwd=folder, start_new_session=True))
        codes = [p.wait(TIMEOUT_S) for p in processes]
    finally:
        for p in processes:
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
    texts = [(folder / f"rank-{rank}.out").read_text(errors="replace") for rank in range(workers)]
    if any(codes):
        raise RuntimeError(f"{command[:3]} ended with {codes}:\n" + "\n".join(texts))
    return texts[0]


def recipe(model: Model, steps: int, every: int) -> dict:
    return {
        "model": {"path": str(model.file)},
        "data": {"train": {"format": "safetensors", "path": str(model.data)}, "batch_size": model.batch_size,
                 "shuffle": False},
        "train": {"steps": steps},
        "optimizer": {"name": "adamw", "lr": 1e-3},
        "schedule": {"name": "constant"},
        "parallel": {"topology": "ring"},
        "checkpoint": {"every_steps": None, "every_epochs": None},
        "log": {"every_steps": every},
    }


def alone(workers: int) -> dict:
    """Section `parallel` of a recipe in which each worker trains alone: the same steps without an exchange."""
    return {"topology": {"phases": [[{"ranks": [rank], "weight": 1.0} for rank in range(workers)]]}}


def _windows(milliseconds: list[float], size: int) -> list[float]:
    return [sum(milliseconds[i : i + size]) / size for i in range(0, len(milliseconds) - size + 1, size)]


@dataclass(frozen=True)
class OurRun:
    """Milliseconds a step of each window, what part of them rank 0 waited for its peers, and what carried the exchange,
    in the program's words.
    """

    step_ms: list[float]
    waiting_ms: list[float]
    carrier: str


def measure_ours(model: Model, workers: int, folder: Path, changes: dict | None = None,
                 hosts: Sequence[Host] = ()) -> OurRun:
    """changes: sections of the recipe that replace those of recipe()."""
    config = folder / "recipe.yaml"
    config.write_text(json.dumps({**recipe(model, model.steps, model.window), **(changes or {})}))  # JSON is YAML
    with tempfile.TemporaryDirectory(dir=folder) as parent:  # a run leaves its model twice
        output = Path(parent, "run")
        printed = run_workers([PROGRAM, "--config", config, "--set", f"output={output}"], workers, folder, hosts=hosts)
        lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    measured = [line for line in lines if line["kind"] == "train" and line["step"] > model.warm_up]
    carrier = re.search(r"^device .*\bexchange by (.+)$", printed, re.MULTILINE)
    return OurRun([line["step_ms"] for line in measured], [line["comm_wait_ms"] for line in measured],
                  carrier[1] if carrier else "what the program does not say")


def run_ours(model: Model, workers: int, folder: Path, changes: dict | None = None,
             hosts: Sequence[Host] = ()) -> list[float]:
    """Milliseconds a step of each window."""
    return measure_ours(model, workers, folder, changes, hosts).step_ms


def run_contender(name: str, model: Model, workers: int, folder: Path, optimizing: bool = False,
                  hosts: Sequence[Host] = ()) -> list[float]:
    command = [sys.executable, HERE / "contender.py", name, model.file, model.data, str(model.batch_size),
               str(model.steps), str(model.warm_up), str(int(optimizing))]
    printed = run_workers(command, workers, folder, hosts=hosts)
    return _windows(json.loads(printed.splitlines()[-1]), model.window)


def run_python(script: str, folder: Path, *arguments: str | Path) -> list[float]:
    """The last line that a script of this folder prints: JSON."""
    return json.loads(run_workers([sys.executable, HERE / script, *arguments], 1, folder).splitlines()[-1])


def run_eager(model: Model, folder: Path) -> list[float]:
    """On a GPU."""
    numbers = (model.batch_size, model.steps, model.warm_up, model.window)
    return run_python("eager.py", folder, model.name, model.data, *map(str, numbers))


def parameters(model: Model) -> int:
    """The number of trained parameters, according to the program."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "recipe.yaml")
        config.write_text(json.dumps(recipe(model, 1, 1)))  # JSON is YAML
        printed = run_workers([PROGRAM, "--config", config, "--dry-run"], 1, Path(folder))
    return int(re.search(r"(\d+) parameters to train", printed)[1])


def run_bare(model: Model, folder: Path, keeps_memory: bool = False) -> dict:
    """Milliseconds of each window, and bytes of activations. keeps_memory: with decent-train's settings of malloc."""
    command = [BUILD / "bin" / "bench_bare", model.file, model.data, str(model.batch_size), str(model.steps)]
    result = json.loads(run_workers(command, 1, folder, KEEPS_MEMORY if keeps_memory else {}))
    return {"windows": _windows(result["step_ms"][model.warm_up :], model.window),
            "activation_bytes": result["activation_bytes"]}
