"""Workers that train by all_reduce, or alone, and are killed, stopped, or lose a number: the others end in time and say why."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from hanging import HANGS_IN_STEP, STALL_S, WORKERS, make_recipe
from methods import ALL, by
from program import Ended
from runs import DIGITS, DIGITS_MLP, assert_says, attempt, train
from started import GRACE_S, TIMEOUT_S, Started, check_names
from tensors import write_safetensors

VICTIMS = [(method, victim, torchrun, backend) for method in ("all_reduce", "none") for victim in (0, 1, 2)
           for torchrun in (False, True) for backend in ("auto", "gloo")]


def flags(method: str, backend: str) -> tuple[str, ...]:
    return "--set", f"parallel.method={method}", "--set", f"parallel.backend={backend}", "--set", "parallel.bucket_mb=0.02"


@pytest.mark.parametrize(("method", "victim", "torchrun", "backend"), VICTIMS if ALL else [
    ("all_reduce", 1, False, "auto"), ("all_reduce", 0, False, "gloo"), ("all_reduce", 2, True, "auto"), ("none", 1, False, "auto")])
def test_killed_worker(method: str, victim: int, torchrun: bool, backend: str, tmp_path: Path) -> None:
    with Started(3, tmp_path, torchrun, *flags(method, backend)) as run:
        run.wait_until_it_trains()
        time.sleep(random.Random(10 * victim + torchrun).uniform(0, 0.5))
        os.kill((run.workers_of_torchrun() if torchrun else [p.pid for p in run.processes])[victim], signal.SIGKILL)
        codes = run.wait(40 if torchrun else TIMEOUT_S + GRACE_S, without=None if torchrun else victim)
        assert codes == ([1] if torchrun else [3, 3]), run.said()
        check_names(run.said(), victim)
        assert run.workers_of_torchrun() == []


@pytest.mark.parametrize(("method", "victim", "backend"), [(m, v, b) for m, v, torchrun, b in VICTIMS if not torchrun] if ALL else [
    ("all_reduce", 1, "auto")])
def test_stopped_process(method: str, victim: int, backend: str, tmp_path: Path) -> None:
    """Silent for timeout_s."""
    with Started(3, tmp_path, False, *flags(method, backend)) as run:
        run.wait_until_it_trains()
        os.kill(run.processes[victim].pid, signal.SIGSTOP)
        assert run.wait(TIMEOUT_S + GRACE_S, without=victim) == [3, 3], run.said()
        check_names(run.said(), victim)
        os.kill(run.processes[victim].pid, signal.SIGCONT)
        assert run.processes[victim].wait(TIMEOUT_S + GRACE_S) == 3, run.said()


@pytest.mark.parametrize(("where", "doing"), [("train", "in forward"), ("eval", "evaluating")] if ALL else [("train", "in forward")])
def test_hanging_worker_is_named(where: str, doing: str, tmp_path: Path) -> None:
    """Not the other one, which waits for its gradients."""
    config = make_recipe(tmp_path, 1, where, STALL_S)
    with Started(WORKERS, tmp_path / "started", False, "--set", "parallel.method=all_reduce", config=config) as run:
        assert run.wait(60) == [3, 3], run.said()
        assert run.said().count("error:") == 1, run.said()
        assert_says(run.said(), f"error: worker 1 on '{os.uname().nodename}' has been {doing} (step {HANGS_IN_STEP}) for ")


# ---- numbers that are lost -----------------------------------------------------------------------------------------

def diverged(ended: list[Ended]) -> str:
    """The one message."""
    said = "".join(e.err for e in ended)
    assert [e.code for e in ended] == [5] * len(ended), said
    assert said.count("error:") == 1 and len(said.splitlines()) <= 5, said
    assert_says(said, "training diverged")
    return said


def digits_with(value: float, row: int, path: Path) -> Path:
    random_numbers = np.random.default_rng(2)
    arrays = {"x": random_numbers.normal(size=(96, 1, 8, 8)).astype(np.float32), "y": random_numbers.integers(10, size=96)}
    arrays["x"][row, 0, 0, 0] = value
    write_safetensors(path, arrays)
    return path


@pytest.mark.parametrize(("method", "way"), [(method, way) for method in ("all_reduce", "none") for way in ("fp32", "bf16", "clip")]
                         if ALL else [("all_reduce", "fp32"), ("none", "fp32")])
def test_loss_that_is_not_finite_on_one_worker(method: str, way: str, tmp_path: Path) -> None:
    """In step 2, on the last of three; the message is one, and says which step."""
    file = digits_with(np.inf, 24 + 2, tmp_path / "data.safetensors")
    options = {"bf16": {"comm_dtype": "bf16"} if method == "all_reduce" else {}, "clip": {"grad_clip_norm": 1.0}, "fp32": {}}[way]
    own = by(method, DIGITS_MLP, file, data={"shuffle": False, "eval": None}, parallel=options, log={"progress": "off"})
    assert_says(diverged(attempt(tmp_path, own, workers=3)), "the loss of step 2")


def test_gradient_that_is_not_finite_on_one_worker(tmp_path: Path) -> None:
    """Its loss is finite: sqrt at 0, of a parameter, and only where x is above 0."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(64, 10)
            self.root = torch.nn.Parameter(torch.zeros(10))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.fc(x.flatten(1))
            if float(x[0, 0, 0, 0]) > 100:
                y = y + (self.root * self.root).sqrt()
            return y

    torch.jit.script(Net()).save(str(tmp_path / "net.pt"))
    file = digits_with(1000.0, 24 + 2, tmp_path / "data.safetensors")  # the first sample of rank 2 in step 2
    own = by("all_reduce", tmp_path / "net.pt", file, data={"shuffle": False, "eval": None}, parallel={"grad_clip_norm": 1.0})
    assert_says(diverged(attempt(tmp_path / "a", own, workers=3)), "'root'", "step 2")


def test_overflow_on_one_worker_is_a_step_that_all_leave_out(tmp_path: Path) -> None:
    """1e30 is a float32, and none in float16. The run goes on, and its copies are one."""
    file = digits_with(1e30, 24 + 2, tmp_path / "data.safetensors")
    own = by("all_reduce", DIGITS_MLP, file, data={"shuffle": False, "eval": DIGITS["test"]}, train={"steps": 4},
             amp={"dtype": "fp16", "init_scale": 64}, eval={"every_steps": 1})
    run = train(tmp_path, own, workers=3)
    lines = run.lines("train")
    assert [line["step"] for line in lines if line["loss"] is None] == [2]
    assert [line["loss_scale"] for line in lines] == [64, 64, 32, 32]
    evaluations = run.lines("eval")
    assert evaluations[0]["loss"] == evaluations[1]["loss"] != evaluations[2]["loss"]  # step 2 moved nothing
    assert {line["consensus_distance"] for line in evaluations} == {0.0}


def test_loss_that_is_never_finite_diverges(tmp_path: Path) -> None:
    """One worker overflows in every step: the scale falls until there is none."""
    random_numbers = np.random.default_rng(2)
    arrays = {"x": random_numbers.normal(size=(96, 1, 8, 8)).astype(np.float32), "y": random_numbers.integers(10, size=96)}
    arrays["x"][1::2, 0, 0, 0] = 1e30  # all of worker 1
    write_safetensors(tmp_path / "data.safetensors", arrays)
    own = by("all_reduce", DIGITS_MLP, tmp_path / "data.safetensors", data={"shuffle": False, "eval": None},
             train={"steps": 90}, log={"progress": "off"}, amp={"dtype": "fp16"})
    assert_says(diverged(attempt(tmp_path, own, workers=2)), "the loss of step")
