"""Starts the peers and decent-train as processes on this machine, and cleans up after them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from cases import Case
from data import base_of, data_file
from models import lora_of
from ports import free_port
from tensors import read_safetensors

HERE = Path(__file__).resolve().parent
PROGRAM = Path(os.environ.get("DECENT_TRAIN", HERE.parent.parent / "build" / "bin" / "decent-train")).absolute()
TIMEOUT_S = 240

TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
PLAIN = "plain"  # no launcher, the variables set by hand: starts faster


def _environment(**extra: object) -> dict[str, str]:
    """This process's environment without a launcher's variables; all traffic stays on the loopback interface."""
    launcher = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK", "MASTER_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith((*launcher, "TORCHELASTIC_"))}
    fixed = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "CUDA_VISIBLE_DEVICES": ""}  # all on the CPU
    return {**kept, **fixed, **{k: str(v) for k, v in extra.items()}}


def _run_all(commands: list[list[str]], environments: list[dict[str, str]], log_folder: Path) -> tuple[list[int], str]:
    """Runs the processes side by side and leaves none behind, whatever happens.

    Returns the exit codes (124: out of time) and the output, one process after the other.
    """
    logs = [log_folder / f"process-{i}.log" for i in range(len(commands))]
    processes = []
    try:
        for command, environment, log in zip(commands, environments, logs):
            with log.open("wb") as out:
                processes.append(subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT,
                                                  cwd=log_folder, start_new_session=True))
        deadline = time.monotonic() + TIMEOUT_S
        codes = [_wait(p, deadline) for p in processes]
    finally:
        for p in processes:
            _stop(p)
    return codes, "\n".join(log.read_text(errors="replace") for log in logs)


def _wait(process: subprocess.Popen, deadline: float) -> int:
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return 124


def _stop(process: subprocess.Popen) -> None:
    """Ends a process that outlived its time. SIGTERM first: torchrun's workers are not in its process group, it ends
    them itself, those that do not listen after 30 s.
    """
    if process.poll() is None:
        process.terminate()
        _wait(process, time.monotonic() + 40)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run_script(name: str, workers: int, arguments: list[str], log_folder: Path) -> str:
    """Runs a script of this folder with forked workers and returns what was printed; how it ended is no matter."""
    command = [sys.executable, str(HERE / name), str(workers), str(free_port()), *arguments]
    return _run_all([command], [_environment()], log_folder)[1]


def run_program(command: list[str], workers: int, log_folder: Path) -> None:
    """Runs a program once for each worker, without a launcher; every one must succeed."""
    port = free_port()
    environments = [_environment(RANK=r, WORLD_SIZE=workers, LOCAL_RANK=r, LOCAL_WORLD_SIZE=workers,
                                 MASTER_ADDR="127.0.0.1", MASTER_PORT=port) for r in range(workers)]
    codes, log = _run_all([command] * workers, environments, log_folder)
    assert codes == [0] * workers, f"exit codes {codes}\n{log}"


# ---- the Python peers ----------------------------------------------------------------------------------------------

def peer_result_file(folder: Path, case: Case, peer: str) -> Path:
    return folder / f"{case.name}.{peer}.npz"


def run_peers(cases: list[Case], folder: Path) -> None:
    """All cases (of one world size) in few launches: one takes a minute, at most."""
    for first in range(0, len(cases), 20):
        _launch_peers(cases[first:first + 20], folder)


def _launch_peers(cases: list[Case], folder: Path) -> None:
    """In one launch, and once more what is missing: the peers abort now and then."""
    output = ""
    for _ in range(2):
        missing = [c for c in cases if not all(peer_result_file(folder, c, p).exists() for p in c.peers)]
        if not missing:
            return
        output = run_script("peers.py", cases[0].workers, [str(folder), *(c.name for c in missing)], folder)
    assert all(peer_result_file(folder, c, p).exists() for c in cases for p in c.peers), output


# ---- decent-train --------------------------------------------------------------------------------------------------

def topology(case: Case) -> str | dict:
    if not case.phases:
        return case.topology
    return {"phases": [[{"ranks": ranks, "weight": weight} for ranks, weight in phase] for phase in case.phases]}


def recipe(case: Case, folder: Path, output: Path) -> dict:
    return {
        "name": case.name,
        "output": str(output),
        "model": {"path": str(folder / f"{base_of(case.model)}.{case.format}"), "inputs": ["x"], "target": "y",
                  "loss": case.loss, "freeze": list(case.freeze), "lora": lora_of(case.model, folder), **case.loss_options},
        "data": {
            "train": {"format": "safetensors", "path": str(data_file(folder, case.model, case.samples))},
            "eval": None,
            "batch_size": {"ranks": dict(enumerate(case.batch_sizes))} if case.batch_sizes else case.batch_size,
            "shuffle": False,
        },
        "train": {"steps": case.steps, "grad_accumulation": case.accumulation},
        "optimizer": {**case.optimizer, "param_groups": list(case.param_groups)},
        "schedule": case.schedule,
        "parallel": {
            "topology": topology(case),
            **({"local_world_size": case.local_world_size} if case.local_world_size else {}),
            "bucket_mb": case.bucket_mb,
            "gamma": case.gamma,
            "grad_clip_norm": case.clip,
            "grad_clip_scope": case.clip_scope,
            "update": case.update,
            **({} if case.method == "gossip" else {"method": case.method, "comm_dtype": case.comm_dtype}),
        },
        "amp": {"dtype": "fp16", **case.scaler} if case.scaler else {},
        "eval": {"every_epochs": None},
        "log": {"every_steps": 1},
    }


def run_decent_train(case: Case, folder: Path, output_folder: Path, launcher: str | list[str] = PLAIN) -> dict:
    """Trains the case with the built program; launcher is PLAIN or torchrun's options. Returns the result."""
    assert PROGRAM.exists(), f"{PROGRAM} is not there: build it first, or set DECENT_TRAIN to the program"
    output_folder.mkdir(exist_ok=True)
    output = output_folder / "run"
    config = output_folder / f"{case.name}.yaml"
    config.write_text(json.dumps(recipe(case, folder, output), indent=2))  # JSON is YAML
    program = [str(PROGRAM), "--config", str(config)]
    if launcher == PLAIN:
        run_program(program, case.workers, output_folder)
    else:
        command = [*TORCHRUN, "--nproc-per-node", str(case.workers), *launcher, "--no-python", *program]
        codes, log = _run_all([command], [_environment()], output_folder)
        assert codes == [0], f"exit codes {codes}\n{log}"
    return _read_run(output)


def torchrun_options() -> dict[str, list[str]]:
    """The two ways in which torchrun hands out its store: its own agent's, or one that rank 0 is to host."""
    return {
        "agent-store": ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"],
        "static": ["--master-addr", "127.0.0.1", "--master-port", str(free_port())],
    }


def _read_run(output: Path) -> dict[str, np.ndarray]:
    """What is logged of each step, and every tensor of the averaged model as tensor/<name>. NaN: it was not finite."""
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    train = [line for line in lines if line["kind"] == "train"]
    assert [line["step"] for line in train] == list(range(1, len(train) + 1))
    adapters = output / "adapters.safetensors"  # what trained, where a model has adapters
    tensors = read_safetensors(adapters if adapters.exists() else output / "model.safetensors")
    logged = {"losses": "loss", "norms": "grad_norm", "scales": "loss_scale"}
    return {**{name: np.array([line[key] for line in train if key in line], dtype=np.float64) for name, key in logged.items()},
            **{f"tensor/{name}": t for name, t in tensors.items()}}
