#!/usr/bin/env python3
"""How long a run stands still when a worker or a machine is lost, or comes, and how many steps are repeated.

    sudo .venv/bin/python tools/bench/recovery.py cluster torchrun workers quiet accuracy [--rounds 10] [--mbit 100] [--timeout-s 5]
    sudo .venv/bin/python tools/bench/recovery.py quiet --memory-mb 640

cluster: tools/cluster; torchrun: an agent on each machine with the command of docs/deploy.md, and its store on a machine that does
not train; both for three machines, which are network namespaces with folders of their own. workers: --workers 4 --max-restarts.
Times are from the loss to the next line of metrics.jsonl, which is written every 20 steps of about 2 ms.

accuracy: the loss at the end of runs of 4 workers that lose one in the middle and go on with 3, beside runs that are stopped there and
go on with 3, for three seeds.

quiet: eight workers beside four compilers, while one worker or another is stopped for 2 s (SIGSTOP): nobody must be taken for lost.
With --memory-mb they share so much memory.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tests" / "support")]

import hosts  # noqa: E402
from machines import Machine, Machines  # noqa: E402
from program import PROGRAM, TORCHRUN, environment, run_workers  # noqa: E402
from runs import DIGITS_CNN, Run, merged, recipe, write_recipe  # noqa: E402
from started import Started  # noqa: E402

STORE = ("from torch.distributed import TCPStore; import time; store = TCPStore('{}', 29400, is_master=True, wait_for_workers=False); "
         "time.sleep(1e6)")
PATIENCE_S = 150


def settings(timeout_s: float) -> list[str]:
    return ["--set", "checkpoint.every_steps=2000", "--set", "eval.every_epochs=null", "--set", "log.every_steps=20", "--set",
            "train.epochs=null", "--set", "train.steps=100000000", "--set", f"parallel.timeout_s={timeout_s}"]


def lines_in(folder: Path) -> list[dict]:
    """The last lines of a run's metrics."""
    with suppress(OSError), (folder / "metrics.jsonl").open("rb") as file:
        begin = max(0, file.seek(0, os.SEEK_END) - 20000)
        file.seek(begin)
        texts = file.read().split(b"\n")[1 if begin else 0:-1]
        return [json.loads(text) for text in texts]
    return []


class Watch:
    """What all folders of a run say together."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders = folders

    def last_step(self) -> int:
        return max((line["step"] for folder in self.folders for line in lines_in(folder) if line["kind"] == "train"), default=0)

    def start_after(self, seen: int) -> int | None:
        """The step after which a start that came later than step `seen` has gone on, once it trains."""
        for folder in self.folders:
            lines = lines_in(folder)
            resumes = [at for at, line in enumerate(lines) if line["kind"] == "resume"]
            if resumes and any(line["kind"] == "train" for line in lines[resumes[-1]:]) and lines[resumes[-1]]["step"] >= seen:
                return lines[resumes[-1]]["step"]
        return None


def wait_for(condition, what: str, folder: Path) -> None:
    begin = time.monotonic()
    while not condition():
        if time.monotonic() > begin + PATIENCE_S:
            raise SystemExit(f"{what}: nothing after {PATIENCE_S} s; see {folder}")
        time.sleep(0.02)


class Starter:
    """Three machines and what starts workers on them."""

    def __init__(self, made: list[hosts.Host], folder: Path, timeout_s: float) -> None:
        self.machines = Machines(made, folder)
        self.each = self.machines.machines
        self.settings = settings(timeout_s)
        self.watch = Watch([machine.output for machine in self.each])
        self.folder = folder

    def worker(self, machine: Machine) -> int | None:
        for process in machine.processes():
            with suppress(OSError):
                environ = Path(f"/proc/{process}/environ").read_bytes()
                if Path(f"/proc/{process}/exe").resolve() == PROGRAM.resolve() and b"\0RANK=" in b"\0" + environ:
                    return process
        return None

    def rank(self, machine: Machine) -> int:
        environ = Path(f"/proc/{self.worker(machine)}/environ").read_bytes().split(b"\0")
        return int(next(text[5:] for text in environ if text.startswith(b"RANK=")))

    def by_rank(self) -> list[Machine]:
        return sorted(self.each, key=self.rank)

    def wait(self, condition, what: str) -> None:
        wait_for(condition, what, self.folder)

    def kill_agent(self, machine: Machine) -> None:
        """And all that it has started."""
        for process in machine.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.agent(machine).wait()

    def until_all_train(self) -> None:
        self.wait(lambda: all(self.worker(machine) for machine in self.each), "all have a worker")
        step = self.watch.last_step()
        self.wait(lambda: self.watch.last_step() > step + 400, "training")
        self.wait(lambda: all(list(machine.output.glob("checkpoints/step-*/manifest.json")) for machine in self.each), "a checkpoint")


class Cluster(Starter):
    """tools/cluster on the fourth machine."""

    def begin(self) -> None:
        (self.folder / "hosts").write_text("".join(f"{machine.address}\n" for machine in self.each))
        self.machines.start(ROOT / "tools" / "cluster", "hosts", "--folder", "train", "--program", PROGRAM, "--", "recipe.yaml",
                            *self.settings)

    def agent(self, machine: Machine) -> subprocess.Popen:
        """The daemon of ssh."""
        return machine.server

    def come(self, machine: Machine) -> None:
        machine.boot()

    def end(self) -> None:
        self.machines.end()


class Torchrun(Starter):
    """An agent on each machine, and the store on the fourth one."""

    def begin(self) -> None:
        own = self.machines.own
        self.store = subprocess.Popen([*own.prefix, sys.executable, "-c", STORE.format(own.address)], env=environment(),
                                      start_new_session=True)
        time.sleep(3)
        self.agents = {}
        for machine in self.each:
            self.begin_agent(machine)

    def begin_agent(self, machine: Machine) -> None:
        train = machine.folder / "train"
        said = (machine.folder / "agent").open("a")
        self.agents[machine.address] = subprocess.Popen(
            [*machine.host.prefix, str(TORCHRUN), "--nnodes", "1:3", "--nproc-per-node", "1", "--max-restarts", "1000", "--local-addr",
             machine.address, "--rdzv-id", "digits", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{self.machines.own.address}:29400",
             "--rdzv-conf", "is_host=0,keep_alive_interval=1,keep_alive_max_attempt=3,last_call_timeout=2", "--no-python", str(PROGRAM),
             "--config", "recipe.yaml", "--resume", "auto", *self.settings],
            cwd=train, env=environment(TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            start_new_session=True)

    def agent(self, machine: Machine) -> subprocess.Popen:
        return self.agents[machine.address]

    def come(self, machine: Machine) -> None:
        machine.boot()
        self.begin_agent(machine)

    def end(self) -> None:
        self.machines.end()
        for process in [*self.agents.values(), self.store]:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def report(name: str, seconds: list[float], repeated: list[int]) -> None:
    print(f"| {name} | {len(seconds)} | {statistics.median(seconds):.1f} | {max(seconds):.1f} | {max(repeated)} |", flush=True)


def lose(starter: Starter, machine: Machine, how) -> tuple[float, int]:
    """The time from the loss to the next line, and how many steps were done again."""
    seen = starter.watch.last_step()
    begin = time.monotonic()
    how(machine)
    last = starter.watch.last_step()
    starter.wait(lambda: starter.watch.start_after(seen) is not None, "going on after a loss")
    return time.monotonic() - begin, max(0, last - starter.watch.start_after(seen))


def come(starter: Starter, machine: Machine) -> float:
    """How long the others stand still for a machine that comes."""
    starter.come(machine)
    seen = step = starter.watch.last_step()
    gap, since = 0.0, time.monotonic()
    while starter.worker(machine) is None or starter.watch.start_after(seen) is None:
        time.sleep(0.02)
        if (now := starter.watch.last_step()) > step:
            step, since = now, time.monotonic()
        gap = max(gap, time.monotonic() - since)
        if gap > PATIENCE_S:
            raise SystemExit(f"nothing {PATIENCE_S} s after a machine came; see {starter.folder}")
    return gap


def measure(name: str, make, rounds: int, arguments: argparse.Namespace) -> None:
    for kind in arguments.kinds:
        folder = Path(tempfile.mkdtemp(prefix=f"decent-recovery-{name}-"))
        with hosts.hosts(4) as made:
            for host in made:
                subprocess.run([*host.prefix, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{arguments.mbit}mbit",
                                "burst", "64kb", "latency", "100ms"], check=True)
            starter = make(made, folder, arguments.timeout_s)
            try:
                starter.begin()
                losses, newcomers, repeated = [], [], []
                for number in range(rounds):
                    starter.until_all_train()
                    order = starter.by_rank()
                    victim = order[0] if kind.startswith("first") else order[1 + number % 2]
                    how = {"worker": lambda machine: os.kill(starter.worker(machine), signal.SIGKILL), "agent": starter.kill_agent,
                           "machine": Machine.die}[kind.rpartition(" ")[2]]
                    seconds, again = lose(starter, victim, how)
                    losses.append(seconds)
                    repeated.append(again)
                    if not kind.endswith("worker"):
                        time.sleep(5 if kind.endswith("agent") else 1)
                        newcomers.append(come(starter, victim))
                report(f"{name}, {kind}", losses, repeated)
                if newcomers:
                    report(f"{name}, {kind} comes back", newcomers, [0])
            finally:
                starter.end()
        shutil.rmtree(folder)


def child_of(parent: int, rank: int) -> int:
    """The worker of that rank."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent and f"RANK={rank}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                return int(entry.name)
    raise SystemExit(f"no worker {rank}")


def start_workers(folder: Path, arguments: argparse.Namespace, *flags: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen:
    """Of one machine."""
    return subprocess.Popen([*prefix, str(PROGRAM), str(ROOT / "configs/digits.yaml"), *flags, "--set", f"output={folder / 'run'}",
                             *settings(arguments.timeout_s)], env=environment(), stdout=(folder / "out").open("w"),
                            stderr=subprocess.STDOUT, start_new_session=True)


def measure_workers(rounds: int, arguments: argparse.Namespace) -> None:
    """--workers 4 --max-restarts on one machine."""
    folder = Path(tempfile.mkdtemp(prefix="decent-recovery-"))
    process = start_workers(folder, arguments, "--workers", "4", "--max-restarts", "1000")
    watch = Watch([folder / "run"])

    try:
        losses, repeated = [], []
        for number in range(rounds):
            step = watch.last_step()
            wait_for(lambda: watch.last_step() > step + 400, "training", folder)
            seen = watch.last_step()
            begin = time.monotonic()
            os.kill(child_of(process.pid, number % 4), signal.SIGKILL)
            last = watch.last_step()
            wait_for(lambda: watch.start_after(seen) is not None, "going on after a loss", folder)
            losses.append(time.monotonic() - begin)
            repeated.append(max(0, last - watch.start_after(seen)))
        report("--workers 4, worker", losses, repeated)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
    shutil.rmtree(folder)


COMPILER = ["bash", "-c", "while g++ -std=c++20 -fsyntax-only -x c++ -include torch/torch.h -I$0 -I$0/torch/csrc/api/include /dev/null; "
            "do :; done"]


class MemoryLimit:
    """A control group (version 1) for processes that begin with `prefix`. The pages of the program's files count, too."""

    def __init__(self, mb: int) -> None:
        self.group = Path(f"/sys/fs/cgroup/memory/decent-recovery-{os.getpid()}")
        self.group.mkdir()
        (self.group / "memory.limit_in_bytes").write_text(f"{mb}M")
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("1")  # else these pages are already counted elsewhere
        self.prefix = ("bash", "-c", 'echo $$ > "$0" && exec "$@"', str(self.group / "cgroup.procs"))

    def end(self) -> int:
        """How often pages had to go to make room."""
        count = int((self.group / "memory.failcnt").read_text())
        self.group.rmdir()
        return count


def measure_quiet(rounds: int, arguments: argparse.Namespace) -> None:
    """A run that is not disturbed says nothing of a lost worker."""
    import torch

    folder = Path(tempfile.mkdtemp(prefix="decent-recovery-"))
    limit = MemoryLimit(arguments.memory_mb) if arguments.memory_mb else None
    process = start_workers(folder, arguments, "--workers", "8", prefix=limit.prefix if limit else ())
    headers = str(Path(torch.__file__).parent / "include")
    compilers = [subprocess.Popen([*COMPILER, headers], start_new_session=True) for _ in range(4)]
    watch = Watch([folder / "run"])
    try:
        wait_for(lambda: watch.last_step() >= 20, "training", folder)
        begin, first = time.monotonic(), watch.last_step()
        for number in range(rounds):
            time.sleep(8)
            worker = child_of(process.pid, number % 8)
            os.kill(worker, signal.SIGSTOP)
            time.sleep(2)
            os.kill(worker, signal.SIGCONT)
        time.sleep(arguments.timeout_s + 5)
        ended = process.poll()
        assert all(each.poll() is None for each in compilers), "a compiler failed"
        print(f"quiet: {watch.last_step() - first} steps in {time.monotonic() - begin:.0f} s, {rounds} times a worker was stopped for 2 s: "
              + ("nobody was taken for lost" if ended is None else f"ended with {ended}; see {folder}"), flush=True)
    finally:
        for each in compilers:
            os.killpg(each.pid, signal.SIGKILL)
            each.wait()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        if limit:
            print(f"under a limit of {arguments.memory_mb} MiB, which was reached {limit.end()} times", flush=True)
    if ended is None:
        shutil.rmtree(folder)


CNN = {"model": {"path": str(DIGITS_CNN)}, "data": {"batch_size": 16}, "optimizer": {"name": "adamw", "lr": 1e-3}}
TEXTS = {part: {"format": "text", "path": str(ROOT / "configs" / "data" / f"opticks-{part}.txt"), "length": 128}
         for part in ("train", "eval")}
GPT = {"model": {"path": str(ROOT / "models" / "char_gpt.pt"), "inputs": ["x"], "target": "y"}, "data": {**TEXTS, "batch_size": 4},
       "optimizer": {"name": "adamw", "lr": 1e-3}}
# (name, steps, changes of the recipe)
TASKS = [("digits_cnn", 600, CNN), ("char_gpt", 240, GPT)]


def loss_after_a_change(steps: int, changes: dict, seed: int, ends_worker) -> float:
    """Of a run that `ends_worker`, which is given its processes, ends in the middle; three workers go on with it."""
    folder = Path(tempfile.mkdtemp(prefix="decent-recovery-"))
    own = merged(recipe(train={"steps": steps}, schedule={"name": "constant"}, seed=seed, eval={"every_steps": steps}), changes)
    config = write_recipe(folder, own)
    with Started(4, folder, False, "--set", f"train.steps={steps}", "--set", "log.every_steps=1", "--set", "parallel.farewell_s=20",
                 config=config) as run:
        watch = Watch([folder / "run"])
        while watch.last_step() < steps // 2:
            assert all(process.poll() is None for process in run.processes), run.said()
            time.sleep(0.005)
        ends_worker(run.processes)
        for process in run.processes:
            process.wait(60)
    ended = run_workers(3, "--config", config, "--set", f"output={folder / 'run'}", "--resume", "auto", cwd=folder)
    assert [each.code for each in ended] == [0, 0, 0], ended
    loss = Run(folder / "run", ended).evaluation["loss"]
    shutil.rmtree(folder)
    return loss


def measure_accuracy(_: int, __: argparse.Namespace) -> None:
    ways = {"lost": lambda processes: processes[2].kill(), "planned": lambda processes: processes[0].terminate()}
    for name, steps, changes in TASKS:
        for way, ends_worker in ways.items():
            losses = [loss_after_a_change(steps, changes, seed, ends_worker) for seed in (1, 2, 3)]
            print(f"| {name}, {way} | {' | '.join(f'{loss:.4f}' for loss in losses)} | {statistics.mean(losses):.4f} |", flush=True)


ON_ONE_MACHINE = {"workers": measure_workers, "quiet": measure_quiet, "accuracy": measure_accuracy}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("starters", nargs="+", choices=["cluster", "torchrun", "workers", "quiet", "accuracy"])
    parser.add_argument("--kinds", nargs="+", default=["worker", "first worker", "agent", "first agent", "machine", "first machine"])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--mbit", type=int, default=100)
    parser.add_argument("--memory-mb", type=int, help="of quiet")
    parser.add_argument("--timeout-s", type=float, default=5)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # nothing is left behind
    print("| loss | times | median s | worst s | steps repeated |\n|---|---|---|---|---|", flush=True)
    for name in arguments.starters:
        if name in ON_ONE_MACHINE:
            ON_ONE_MACHINE[name](arguments.rounds, arguments)
        else:
            measure(name, {"cluster": Cluster, "torchrun": Torchrun}[name], arguments.rounds, arguments)


if __name__ == "__main__":
    main()
