"""Losses that the host reads one step late, and norms that stay on the GPU: a run on a GPU made of host memory says and
does what the same run on the CPU does, also where a loss or a gradient is not finite, and does not wait for the GPU.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from gpu_inputs import save_net, write_a_bad_sample
from gpus import FAKE_WHY_NOT, fake_gpus
from runs import Run, assert_same_run, assert_says, attempt, merged, recipe, train
from tensors import write_safetensors

pytestmark = pytest.mark.skipif(FAKE_WHY_NOT is not None, reason=str(FAKE_WHY_NOT))

LATE = {"none": {"method": "none"}, "gossip": {}, "bf16": {"comm_dtype": "bf16"},
        "clip": {"grad_clip_norm": 0.5}, "clip_bucket": {"grad_clip_norm": 0.5, "grad_clip_scope": "bucket", "bucket_mb": 0.001}}
AT_ONCE = {"all_reduce": {"method": "all_reduce"}, "modulo2": {"comm_dtype": "modulo2"}}
BATCH, ACCUMULATION = 4, 2


def on(device: str, settings: dict) -> dict:
    return merged(settings, {"model": {"device": device}, "parallel": {"backend": "gloo"}})


def dropout(folder: Path, bad: int | None = None, **changes: object) -> dict:
    """Two micro-batches a step, of a model with dropout; the sample `bad` holds a NaN."""
    save_net("dropout", folder / "net.pt")
    write_a_bad_sample(folder / "data.safetensors", bad or 0, pixel=0.0 if bad is None else np.nan)
    return recipe(folder / "net.pt", folder / "data.safetensors",
                  **{"train": {"steps": 24, "grad_accumulation": ACCUMULATION},
                     "data": {"shuffle": False, "batch_size": BATCH, "eval": None},
                     "optimizer": {"name": "adamw", "lr": 0.003}, "eval": {"every_steps": None}, **changes})


def diverged(folder: Path, settings: dict, workers: int) -> tuple[str, list[dict]]:
    """What the run says, and its metrics without what time decides."""
    ended = attempt(folder, settings, workers=workers, **fake_gpus())
    assert [e.code for e in ended] == [5] * workers, ended
    errors = [e.err for e in ended if "error:" in e.err]
    assert len(errors) == 1
    lines = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    kept = ("kind", "step", "status", "loss", "error")
    return errors[0][errors[0].index("error:") :], [{key: line[key] for key in kept if key in line} for line in lines]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", [*LATE, *AT_ONCE])
@pytest.mark.parametrize("every", [1, 100])
def test_a_loss_that_is_not_finite(every: int, kind: str, workers: int, tmp_path: Path) -> None:
    """In the second micro-batch of a step, behind random numbers of the first one."""
    step = 5
    bad = (step - 1) * ACCUMULATION * BATCH * workers + BATCH * workers + 1
    settings = dropout(tmp_path, bad, parallel=(LATE | AT_ONCE)[kind], log={"every_steps": every})
    cpu, gpu = (diverged(tmp_path / device, on(device, settings), workers) for device in ("cpu", "cuda"))
    assert_says(cpu[0], f"the loss of step {step} is nan", "field 'x' of the batch", f"sample {bad} ")
    assert gpu[0] == cpu[0]
    if workers > 1:
        return  # what is written until the other worker hears of it is a matter of time
    assert [line["kind"] for line in gpu[1]] == [line["kind"] for line in cpu[1]]
    assert gpu[1][-1]["step"] == cpu[1][-1]["step"] == step - 1
    for ours, theirs in zip(gpu[1], cpu[1]):  # norms are added up in another order there
        assert ("loss" in ours) == ("loss" in theirs)
        assert ours.get("loss", 0) == pytest.approx(theirs.get("loss", 0), rel=1e-5)


def test_a_parameter_that_is_not_finite(tmp_path: Path) -> None:
    """It became so in the update before, whose loss was finite: of two samples alike but for their class, one at least is
    taken for another class, whatever the weights are, and its large pixel makes a gradient above 1 of it.
    """
    save_net("constant", tmp_path / "net.pt")
    random = np.random.default_rng(1)
    x, y = random.random((200, 1, 8, 8), np.float32), random.integers(0, 10, 200)
    x[:2], y[:2] = x[0], [0, 1]
    x[:2, 0, 0, 0] = 1e4
    write_safetensors(tmp_path / "data.safetensors", {"x": x, "y": y})
    settings = recipe(tmp_path / "net.pt", tmp_path / "data.safetensors", optimizer={"name": "sgd", "lr": 3e38},
                      data={"shuffle": False, "eval": None}, eval={"every_steps": None})
    cpu, gpu = (diverged(tmp_path / device, on(device, settings), 1)[0] for device in ("cpu", "cuda"))
    assert_says(cpu, "parameter 'fc.weight' is the first that is not finite", "optimizer.lr")
    assert gpu == cpu


@pytest.mark.parametrize("method", ["gossip", "all_reduce"])
@pytest.mark.parametrize("scope", ["global", "bucket"])
def test_a_gradient_that_is_not_finite(scope: str, method: str, tmp_path: Path) -> None:
    """The loss is finite, its gradient is not, from the first step on."""
    save_net("root", tmp_path / "net.pt")
    settings = recipe(tmp_path / "net.pt", parallel={
        "grad_clip_norm": 1.0, "grad_clip_scope": scope, **({"method": method} if method == "all_reduce" else {})})
    cpu, gpu = (diverged(tmp_path / device, on(device, settings), 2)[0] for device in ("cpu", "cuda"))
    assert_says(cpu, "gradient of parameter 'root' in step 1 is not finite")
    assert gpu.replace("rank 1", "rank 0") == cpu.replace("rank 1", "rank 0")  # either may be the first


@pytest.mark.parametrize("kind", ["gossip", "clip", "clip_bucket"])
def test_evaluations_saves_and_lines_see_all_losses(kind: str, model, data, tmp_path: Path) -> None:
    """Where the host looks early, because something is due, is no part of the result; nor is a stop in between."""
    settings = on("cuda", dropout(tmp_path, parallel=LATE[kind], checkpoint={"every_steps": 5}, log={"every_steps": 3}))
    settings["data"]["eval"] = settings["data"]["train"]
    settings["eval"] = {"every_steps": 4}
    whole = train(tmp_path / "whole", settings, workers=2, **fake_gpus())
    plain = train(tmp_path / "plain", merged(settings, {"eval": {"every_steps": 24}, "checkpoint": {"every_steps": 24}}),
                  workers=2, **fake_gpus())
    assert [line["loss"] for line in whole.lines("train")] == [line["loss"] for line in plain.lines("train")]
    shutil.copytree(whole.folder, tmp_path / "parts" / "run")
    resumed = train(tmp_path / "parts", settings, "--resume", Run(tmp_path / "parts" / "run", []).checkpoint(15), workers=2, **fake_gpus())
    assert_same_run(whole, resumed)


def waits(folder: Path, settings: dict, steps: int) -> list[str]:
    counted = folder / f"waits-{steps}"
    train(folder / str(steps), on("cuda", merged(settings, {"train": {"steps": steps}})),
          **fake_gpus(), DECENT_FAKE_GPU_WAITS=counted)
    return counted.read_text().splitlines()


@pytest.mark.parametrize(("kind", "each_step"), [("none", 0), ("clip", 1), ("clip_bucket", 0), ("all_reduce", ACCUMULATION)])
def test_a_step_waits_for_the_gpu(kind: str, each_step: int, tmp_path: Path) -> None:
    """As often as docs/design/step.md says: reads of numbers, of which 10 more steps have so many more."""
    settings = dropout(tmp_path, parallel=(LATE | AT_ONCE)[kind], log={"every_steps": 1000})
    few, many = (waits(tmp_path, settings, steps) for steps in (10, 20))
    assert len(many) - len(few) == 10 * each_step, sorted(set(many))
