"""The time and the memory that a run needs until its first step."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import support
from ports import free_port
from programs import BUILD, PROGRAM, Model, environment, recipe

FIRST = re.compile(r"step +1/")


@dataclass(frozen=True)
class FirstStep:
    seconds: float  # from the start of the process to the line of step 1
    peak_kib: int  # of the whole run: two steps and the export
    parameters: int


def _start(model: Model, steps: int, folder: Path, rank: int = 0, workers: int = 1, port: int = 0) -> subprocess.Popen:
    config = folder / f"recipe-{rank}.yaml"
    config.write_text(json.dumps(recipe(model, steps, 1)))  # JSON is YAML
    output = Path(tempfile.mkdtemp(dir=folder)) / "run"
    return subprocess.Popen([PROGRAM, "--config", config, "--set", f"output={output}"],
                            env=environment(rank, workers, port), stdout=subprocess.PIPE, text=True)


def _end(process: subprocess.Popen) -> int:
    """Waits for the end of a run that must succeed. Returns its peak memory in KiB."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"decent-train ended with {process.returncode}")
    return usage.ru_maxrss


def first_step(model: Model, folder: Path) -> FirstStep:
    begin = time.monotonic()
    process = _start(model, 2, folder)
    seconds, parameters = None, None
    for line in process.stdout:
        if FIRST.match(line):
            seconds = time.monotonic() - begin
        if found := re.search(r"(\d+) parameters to train", line):
            parameters = int(found[1])
    return FirstStep(seconds, _end(process), parameters)


def peak_kib(model: Model, workers: int, folder: Path) -> int:
    """The peak memory of any of the workers, in a run of three steps."""
    port = free_port()
    processes = [_start(model, 3, folder, rank, workers, port) for rank in range(workers)]
    return max(_end(process) for process in processes)


def idle_kib() -> int:
    """The resident size of a program right after loading LibTorch."""
    out = subprocess.run([BUILD / "bin" / "bench_idle"], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"VmRSS:\s*(\d+) kB", out)[1])


def cuda_libraries(model: Model, folder: Path) -> list[str]:
    """The names of the CUDA libraries that are mapped after the first step."""
    process = _start(model, 1000, folder)
    mapped = ""
    for line in process.stdout:
        if FIRST.match(line):
            mapped = Path(f"/proc/{process.pid}/maps").read_text()
            break
    process.stdout.close()
    process.kill()
    process.wait()
    libraries = {Path(line.split()[-1]).name for line in mapped.splitlines() if ".so" in line}
    if "libtorch_cpu.so" not in libraries:
        raise RuntimeError("the program's libraries could not be read")
    kinds = r"lib(torch_cuda|c10_cuda|cuda|cu[a-z]+|nv[a-zA-Z]+|nccl)[^a-z]"
    return sorted(name for name in libraries if re.match(kinds, name) and not name.startswith("libcurl"))
