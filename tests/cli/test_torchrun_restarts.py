"""torchrun --max-restarts: a worker that is killed at any moment, before the workers have met, too, costs one restart. Each
agent counts its own restarts, and the store in which workers meet outlives them.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ports import free_port
from program import PROGRAM, TORCHRUN, environment
from runs import Run, assert_same_run, merged, recipe, train, with_default_farewell, write_recipe
from supervised import parent_of
from tensors import write_safetensors

# Without a farewell the run goes on from a checkpoint of all workers, and ends with the same weights.
SETTINGS = recipe(train={"steps": 1500}, parallel={"topology": "ring", "timeout_s": 20, "farewell_s": 0},
                  checkpoint={"every_steps": 20, "keep": 2}, log={"every_steps": 100})
VARIABLE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"


@dataclass(frozen=True)
class Worker:
    """A process of the program, as /proc shows it."""

    pid: int
    variables: dict[str, str]


def workers_of(config: Path) -> dict[int, Worker]:
    """By rank."""
    found = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, KeyError):  # KeyError: a process that is ending has no environment any more
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            if arguments[0].endswith(b"decent-train") and str(config).encode() in arguments:
                texts = (entry / "environ").read_bytes().decode().split("\0")
                variables = dict(text.split("=", 1) for text in texts if "=" in text)
                found[int(variables["RANK"])] = Worker(int(entry.name), variables)
    return found


class Agents:
    """torchrun, once for each machine. Nothing is left of it."""

    def __init__(self, config: Path, machines: list[list[object]], program: Path = PROGRAM, **variables: object) -> None:
        self.config = config
        self.said_in = config.parent / "said"
        self.processes = []
        with self.said_in.open("w") as said:
            for flags in machines:
                parts = [TORCHRUN, *flags, "--no-python", program, "--config", config, "--resume", "auto"]
                self.processes.append(subprocess.Popen([str(part) for part in parts], stdin=subprocess.DEVNULL,
                                                       stdout=said, stderr=said, cwd=config.parent,
                                                       env=environment(**variables)))

    def said(self) -> str:
        return self.said_in.read_text(errors="replace")

    def wait_for(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline and all(p.poll() is None for p in self.processes), self.said()
            time.sleep(0.005)

    def new_worker(self, rank: int, old: set[int]) -> Worker:
        """One that is not among the old processes."""
        found: dict[int, Worker] = {}

        def is_there() -> bool:
            found.update(workers_of(self.config))
            return rank in found and found[rank].pid not in old

        self.wait_for(is_there)
        return found[rank]

    def codes(self) -> list[int]:
        deadline = time.monotonic() + 100
        return [process.wait(max(1, deadline - time.monotonic())) for process in self.processes]

    def kill_with_workers(self, number: int) -> None:
        """One agent, as when its machine loses power."""
        agent = self.processes[number].pid
        own = [worker.pid for worker in workers_of(self.config).values() if parent_of(worker.pid) == agent]
        for pid in (agent, *own):
            os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for worker in workers_of(self.config).values():
            with suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)


@contextmanager
def agents(config: Path, machines: list[list[object]], program: Path = PROGRAM, **variables: object) -> Iterator[Agents]:
    started = Agents(config, machines, program, **variables)
    try:
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("undisturbed"), SETTINGS, workers=2)


@pytest.mark.parametrize("moment", ["loading", "meeting", "training"])
def test_a_worker_is_killed_each_time(moment: str, undisturbed: Run, tmp_path: Path) -> None:
    """Three restarts on one machine, whose agent keeps one store."""
    config = write_recipe(tmp_path, SETTINGS)
    run = Run(tmp_path / "run", [])
    chance = random.Random(43)
    old: set[int] = set()
    with agents(config, [["--standalone", "--nproc-per-node", 2, "--max-restarts", 3]]) as torchrun:
        for victim in (1, 0, 1):
            newest = max(run.checkpoints, default=0)
            worker = torchrun.new_worker(victim, old)
            if moment == "meeting":
                time.sleep(chance.uniform(0.1, 1))
            if moment == "training":
                torchrun.wait_for(lambda: max(run.checkpoints, default=0) > newest)
            old |= {each.pid for each in workers_of(config).values()}
            os.kill(worker.pid, signal.SIGKILL)
        assert torchrun.codes() == [0], torchrun.said()
        assert "has not shown up" not in torchrun.said()
    assert_same_run(undisturbed, run)


def machines_of(port: int, kind: str) -> list[list[object]]:
    """Two on this machine, with a worker each, which torchrun may start again."""
    common = ["--nnodes", 2, "--nproc-per-node", 1, "--max-restarts", 3]
    if kind == "static":
        return [[*common, "--node-rank", rank, "--master-addr", "127.0.0.1", "--master-port", port] for rank in range(2)]
    return [[*common, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "digits",
             "--local-addr", "127.0.0.1"]] * 2


def test_agents_that_restart_their_workers_differently_often(tmp_path: Path) -> None:
    """Worker 1 is killed twice while it loads. Worker 0 waits for it, and its agent restarts nothing."""
    config = write_recipe(tmp_path, merged(SETTINGS, {"train": {"steps": 200}}))
    old: set[int] = set()
    with agents(config, machines_of(free_port(), "static")) as torchrun:
        for _ in range(2):
            worker = torchrun.new_worker(1, old)
            old.add(worker.pid)
            os.kill(worker.pid, signal.SIGKILL)
        torchrun.wait_for((tmp_path / "run" / "metrics.jsonl").exists)
        workers = workers_of(config)
        if workers.keys() == {0, 1}:  # else they are done
            assert [workers[rank].variables["TORCHELASTIC_RESTART_COUNT"] for rank in range(2)] == ["0", "2"]
        assert torchrun.codes() == [0, 0], torchrun.said()
    assert Run(tmp_path / "run", []).lines("end")[0]["step"] == 200


@pytest.mark.parametrize(("kind", "disabled", "warnings"), [("c10d", False, 1), ("c10d", True, 0), ("static", False, 0)])
def test_warning_of_a_store_that_is_kept(kind: str, disabled: bool, warnings: int, tmp_path: Path) -> None:
    """Machines come and go only with the rendezvous c10d, and with the variable each round has a store of its own."""
    config = write_recipe(tmp_path, merged(SETTINGS, {"train": {"steps": 3}}))
    with agents(config, machines_of(free_port(), kind), **{VARIABLE: int(disabled)}) as torchrun:
        assert torchrun.codes() == [0, 0], torchrun.said()
        assert torchrun.said().count(f"{VARIABLE}=1") == warnings, torchrun.said()
        assert "done: 3 updates" in torchrun.said()


# ---- the samples of an epoch ----------------------------------------------------------------------------------------

SAMPLES, BATCH, EPOCHS = 6400, 4, 2
# The program, whose output goes to a file for each worker of each start.
TELLS = """#!/bin/sh
exec stdbuf -oL '{program}' "$@" >'{folder}'/seen.$(date +%s%N).$RANK
"""


def write_model_that_tells(path: Path) -> None:
    """It prints the numbers of the samples that it trains on."""
    import torch
    from torch import Tensor, nn

    class Tells(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(1, 2)

        def forward(self, x: Tensor) -> Tensor:
            if self.training:
                numbers: List[int] = x.view(-1).long().tolist()  # noqa: F821
                print("SEEN", numbers)
            return self.fc(x / 6400)

    torch.jit.script(Tells()).save(str(path))


def seen_by(starts: list[Path], rank: int) -> list[list[list[int]]]:
    """For each start that had this worker, the samples of each of its batches."""
    files = sorted(path for path in starts if path.suffix == f".{rank}")
    return [[json.loads(line.removeprefix("SEEN ")) for line in path.read_text().splitlines() if line.startswith("SEEN ")]
            for path in files]


def test_samples_of_an_epoch_when_a_machine_is_lost(tmp_path: Path) -> None:
    """Each at most once, and none is missing but those of steps that the lost workers had not begun."""
    write_model_that_tells(tmp_path / "net.pt")
    write_safetensors(tmp_path / "data.safetensors", {"x": np.arange(SAMPLES, dtype=np.float32)[:, None],
                                                      "y": np.arange(SAMPLES) % 2})
    own = recipe(tmp_path / "net.pt", tmp_path / "data.safetensors", train={"epochs": EPOCHS, "steps": None}, data={"batch_size": BATCH},
                 parallel={"timeout_s": 20}, eval={"every_steps": None, "every_epochs": None}, log={"every_steps": 10})
    config = write_recipe(tmp_path, with_default_farewell(own))
    program = tmp_path / "tells"
    program.write_text(TELLS.format(program=PROGRAM, folder=tmp_path))
    program.chmod(0o755)
    elastic = ["--nnodes", "1:2", "--nproc-per-node", 2, "--max-restarts", 3, "--rdzv-backend", "c10d", "--rdzv-endpoint",
               f"127.0.0.1:{free_port()}", "--rdzv-id", "digits", "--local-addr", "127.0.0.1",
               "--rdzv-conf", "keep_alive_interval=1,keep_alive_max_attempt=3,last_call_timeout=2"]
    machines = [[*elastic[:-1], f"{elastic[-1]},is_host={host}"] for host in (1, 0)]  # the store's outlives the loss
    run = Run(tmp_path / "run", [])
    with agents(config, machines, program, **{VARIABLE: 1}) as torchrun:
        metrics = tmp_path / "run" / "metrics.jsonl"
        torchrun.wait_for(lambda: metrics.exists() and '"step":100,' in metrics.read_text())
        workers = workers_of(config)
        lost = sorted(rank for rank, worker in workers.items() if parent_of(worker.pid) == torchrun.processes[1].pid)
        torchrun.kill_with_workers(1)
        code = torchrun.processes[0].wait(100)
    assert code == 0 and len(lost) == 2, torchrun.said()
    (resume,) = run.lines("resume")
    last, total = resume["step"], run.lines("end")[0]["step"]
    starts = list(tmp_path.glob("seen.*"))
    assert len(starts) == 6, starts
    check_epochs({rank: seen_by(starts, rank) for rank in range(4)}, set(lost), last, total)


def check_epochs(seen: dict[int, list[list[list[int]]]], lost: set[int], last: int, total: int) -> None:
    """`last`: the step of the loss; two workers go on then, to step `total`."""
    looks = {len(seen[rank][1]) - (total - last) for rank in (0, 1)}  # how often the model is tried before the first step
    (look,) = looks
    assert 0 <= look <= 3
    before = [number for rank in range(4) for batch in seen[rank][0][look:look + last] for number in batch]
    after = [batch for rank in (0, 1) for batch in seen[rank][1][look:]]
    cut = (SAMPLES - 4 * BATCH * last) // (2 * BATCH)  # steps of the first epoch after the loss
    first, second = ([number for rank in (0, 1) for batch in seen[rank][1][look:][part] for number in batch]
                     for part in (slice(0, cut), slice(cut, None)))
    assert len(after) == 2 * (total - last) and sorted(second) == list(range(SAMPLES))
    missing = set(range(SAMPLES)) - set(before + first)
    assert len(before + first) == len(set(before + first)) == SAMPLES - len(missing)
    # A step begins before the neighbour's weights of the step before are there, so the lost workers may be some steps behind.
    behind = {rank: look + last - len(seen[rank][0]) for rank in range(4) if len(seen[rank][0]) < look + last}
    print(f"lost {lost}, behind {behind}")
    assert behind.keys() <= lost and max(behind.values(), default=0) <= 3 and len(missing) == BATCH * sum(behind.values()), behind
