"""When checkpoints are saved, which are kept, what stands in them, and what --resume does where there is none."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from folders import contents
from program import ROOT, Ended, run_alone, run_each
from runs import (DIGITS_CNN, NO_CHECKPOINTS, Run, assert_same_run, assert_same_weights, assert_says,
                  attempt, error_message, merged, on_each, recipe, train, write_recipe)
from tensors import differing, read_safetensors, write_safetensors


def manifest(run: Run, step: int) -> dict:
    return json.loads((run.checkpoint(step) / "manifest.json").read_text())


# ---- when, and which are kept ---------------------------------------------------------------------------------------

@pytest.mark.parametrize(("checkpoint", "steps"), [
    ({"every_steps": 5}, [5, 10, 12]),  # and after the last update
    ({"every_steps": 5, "keep": 1}, [12]),
    ({"every_steps": 2, "keep": 2}, [10, 12]),
    ({"every_epochs": 1, "keep": 9}, [4, 8, 12]),
    ({"every_epochs": 2, "keep": 9}, [8, 12]),
    ({"every_epochs": 2, "every_steps": 6, "keep": 9}, [6, 8, 12]),
    ({"every_steps": 100}, [12]),
    ({}, []),
], ids=str)
def test_which_are_there(checkpoint: dict, steps: list[int], tmp_path: Path) -> None:
    """4 updates are an epoch."""
    run = train(tmp_path, recipe(data={"batch_size": 180}, checkpoint=checkpoint), workers=2)
    assert run.checkpoints == steps
    assert (run.folder / "checkpoints").exists() == bool(steps)
    left = {path.name for path in (run.folder / "checkpoints").glob("*")} - {run.checkpoint(s).name for s in steps}
    assert left == set()


def test_each_epoch_is_the_default(tmp_path: Path) -> None:
    without = {key: value for key, value in recipe(data={"batch_size": 180}).items() if key != "checkpoint"}
    assert train(tmp_path, {**without, "train": {"epochs": 4}}, workers=2).checkpoints == [8, 12, 16]


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_the_best_is_kept(metric: str, tmp_path: Path) -> None:
    """At a learning rate that ruins the model again; steps that were not evaluated do not count."""
    run = train(tmp_path, recipe(train={"steps": 40}, optimizer={"lr": 0.02},
                                 schedule={"name": "cosine_warmup", "warmup_steps": 39, "warmup_decay": 0.01},
                                 eval={"every_steps": 4},
                                 checkpoint={"every_steps": 2, "keep": 2, "keep_best": metric}))
    choose = min if metric == "loss" else max
    best = choose(line[metric] for line in run.lines("eval"))
    step = [line["step"] for line in run.lines("eval") if line[metric] == best][-1]
    assert run.checkpoints == sorted({38, 40, step})
    assert manifest(run, step)["metrics"][metric] == best


def test_best_by_a_metric_that_is_not_measured(tmp_path: Path) -> None:
    ended = attempt(tmp_path, recipe(checkpoint={"keep_best": "top5"}))
    assert_says(error_message(ended), "checkpoint.keep_best", "top5", "eval.metrics", "loss, accuracy")


# ---- what stands in them --------------------------------------------------------------------------------------------

def test_contents(tmp_path: Path) -> None:
    run = train(tmp_path, recipe(DIGITS_CNN, optimizer={"name": "accum_adamw"}, data={"batch_size": 100},
                                 eval={"every_steps": 4}, checkpoint={"every_steps": 4}), workers=3)
    assert run.checkpoints == [4, 8, 12]
    saved = manifest(run, 8)
    assert {key: saved[key] for key in ("format", "version", "step", "epoch", "consumed", "world_size")} == {
        "format": "decent-train checkpoint", "version": 1, "step": 8, "epoch": 2, "consumed": 0, "world_size": 3}
    evaluation = [line for line in run.lines("eval") if line["step"] == 8][0]
    assert saved["epochs_done"] == evaluation["epoch"] == 2.0
    assert saved["metrics"] == {name: evaluation[name] for name in ("loss", "accuracy")}
    assert saved["recipe"] == (run.folder / "recipe.yaml").read_text()
    names = [entry["name"] for entry in saved["files"]]
    assert names == [f"rank-{rank:04}.safetensors" for rank in range(3)]
    assert {path.name for path in run.checkpoint(8).iterdir()} == {*names, "manifest.json", "data.json"}
    assert (run.checkpoint(8) / "data.json").read_bytes() == (run.folder / "data.json").read_bytes()
    replicas = [read_safetensors(run.checkpoint(8) / name) for name in names]
    kinds = {re.sub(r"^(\w+)\..*?(\.(exp_avg|exp_avg_sq|accum_grad|step))?$", r"\1\2", name) for name in replicas[0]}
    assert kinds == {"model", "buffer", "optimizer.exp_avg", "optimizer.exp_avg_sq", "optimizer.accum_grad",
                     "optimizer.step", "log"}
    assert [replica["optimizer.head.weight.step"] for replica in replicas] == [8, 8, 8]
    parameter = next(name for name in replicas[0] if name.startswith("model."))
    assert not np.array_equal(replicas[0][parameter], replicas[1][parameter])  # each its own


def test_average_of_the_last_replicas_is_the_exported_model(tmp_path: Path) -> None:
    run = train(tmp_path, recipe(checkpoint={"every_steps": 12}), workers=3)
    replicas = [read_safetensors(run.checkpoint(12) / f"rank-{rank:04}.safetensors") for rank in range(3)]
    for name, weight in run.weights.items():
        mean = np.mean([replica["model." + name].astype(np.float64) for replica in replicas], axis=0)
        np.testing.assert_allclose(weight, mean, rtol=3e-7, atol=1e-9)  # summed in float32: two roundings and a division


def test_python_in_ten_lines(tmp_path: Path) -> None:
    """The program in docs/checkpoints.md, as it stands there."""
    page = (ROOT / "docs" / "checkpoints.md").read_text()
    program = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
    run = train(tmp_path, recipe(checkpoint={"every_steps": 12}), workers=2)
    lines = program.splitlines()
    assert len(lines) <= 10
    (tmp_path / "average.py").write_text(program)
    ended = subprocess.run([sys.executable, "average.py", str(run.checkpoint(12))], cwd=tmp_path, capture_output=True,
                           text=True)
    assert ended.returncode == 0, ended.stderr
    assert_says(ended.stdout, "step 12", *run.weights)


# ---- --resume ------------------------------------------------------------------------------------------------------

def test_resume_without_a_run(tmp_path: Path) -> None:
    """So that a restarting launcher can always say --resume auto."""
    whole = recipe(checkpoint={"every_steps": 4})
    fresh = train(tmp_path / "fresh", whole, workers=2)
    auto = train(tmp_path / "auto", whole, "--resume", "auto", workers=2)
    assert_same_run(fresh, auto)
    assert "no checkpoint to resume from: the run starts afresh" in auto.ended[0].out


def test_resume_without_a_checkpoint_starts_afresh(tmp_path: Path) -> None:
    """Nothing of the run before is left in the metrics."""
    whole = recipe(eval={"every_steps": 5, "at_start": True})
    fresh = train(tmp_path / "fresh", whole)
    run = tmp_path / "again" / "run"
    run.mkdir(parents=True)
    (run / "metrics.jsonl").write_text('{"kind":"eval","step":0,"loss":9}\n{"kind":"train","step":1,"loss":9}\n{"ki')
    assert_same_run(fresh, train(tmp_path / "again", whole, "--resume", "auto"))


@pytest.mark.parametrize("checkpoint", [{"every_steps": 4}, NO_CHECKPOINTS], ids=["checkpoints", "none"])
def test_complete_run(checkpoint: dict, tmp_path: Path) -> None:
    whole = recipe(checkpoint=checkpoint)
    run = train(tmp_path, whole, workers=2)
    before = contents(run.folder)
    again = train(tmp_path, whole, "--resume", "auto", workers=2)
    assert again.ended[0].out == f"the run in '{run.folder}' is complete (step 12): nothing is left to do\n"
    assert contents(run.folder) == before


def test_killed_between_the_last_checkpoint_and_the_export(tmp_path: Path) -> None:
    whole = recipe(checkpoint={"every_steps": 4}, eval={"every_steps": 6})
    fresh = train(tmp_path / "fresh", whole, workers=2)
    run = train(tmp_path / "cut", whole, workers=2)
    for name in ("model.pt", "model.safetensors"):
        (run.folder / name).unlink()
    lines = (run.folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run.folder / "metrics.jsonl").write_text("".join(lines[:-1]))
    assert_same_run(fresh, train(tmp_path / "cut", whole, "--resume", "auto", workers=2))


def test_resume_from_an_older_one(tmp_path: Path) -> None:
    """Later ones are set aside, or auto would go back to them; nothing is deleted."""
    whole = recipe(checkpoint={"every_steps": 4, "keep": 9})
    run = train(tmp_path, whole)
    eight, twelve = (contents(run.checkpoint(step)) for step in (8, 12))
    undisturbed = run.weights
    again = train(tmp_path, whole, "--resume", run.checkpoint(4))
    assert again.checkpoints == [4, 8, 12]
    assert contents(run.folder / "checkpoints" / "set-aside" / "step-00000008") == eight
    assert contents(run.folder / "checkpoints" / "set-aside" / "step-00000012") == twelve
    assert again.ended[0].err.count("is set aside") == 2
    assert differing(undisturbed, again.weights) == []
    assert [line["step"] for line in again.lines("train")] == list(range(1, 13))


def test_complete_run_is_tidied_up(tmp_path: Path) -> None:
    """As after a kill between the end of the last save and the removal of what it makes superfluous."""
    run = train(tmp_path, recipe(checkpoint={"every_steps": 4, "keep": 9}))
    (run.folder / "checkpoints" / ".step-00000002.writing").mkdir()
    (run.folder / "checkpoints" / ".step-00000001.removing").mkdir()
    again = train(tmp_path, recipe(checkpoint={"every_steps": 4, "keep": 2}), "--resume", "auto")
    assert "is complete (step 12): nothing is left to do" in again.ended[0].out
    assert {path.name for path in (run.folder / "checkpoints").iterdir()} == {"step-00000008", "step-00000012"}


def test_resume_into_another_past(tmp_path: Path) -> None:
    """A checkpoint of the same step of the same run, but of another past, does not stay where auto would find it."""
    whole = recipe(checkpoint={"every_steps": 4, "keep": 9})
    run = train(tmp_path, whole)
    first = run.weights
    shutil.copytree(run.checkpoint(8), tmp_path / "kept")
    other = train(tmp_path, merged(whole, {"optimizer": {"lr": 0.01}}), "--resume", run.checkpoint(4))
    own = contents(other.checkpoint(8))
    again = train(tmp_path, whole, "--resume", tmp_path / "kept")
    assert contents(again.folder / "checkpoints" / "set-aside" / "step-00000008.2") == own
    assert again.checkpoints == [4, 12]
    assert differing(first, again.weights) == []


def test_killed_when_only_one_machine_had_given_the_name(tmp_path: Path) -> None:
    """The other one has all of its files in the temporary folder: the checkpoint is whole."""
    whole = recipe(checkpoint={"every_steps": 4}, parallel={"topology": "ring"})
    undisturbed = train(tmp_path / "whole", whole, workers=2)
    ended = on_each(tmp_path, merged(whole, {"train": {"steps": 4}}))
    assert [e.code for e in ended] == [0, 0], ended
    b = Run(tmp_path / "b", [])
    (b.checkpoint(4) / "manifest.json").unlink()
    b.checkpoint(4).rename(b.folder / "checkpoints" / ".step-00000004.writing")
    ended = on_each(tmp_path, whole, "--resume", "auto")
    assert [e.code for e in ended] == [0, 0], ended
    assert "after step 4 of 12" in ended[0].out
    assert_same_weights(undisturbed, Run(tmp_path / "a", ended))
    assert b.checkpoints == [4, 8, 12]
    assert (b.checkpoint(4) / "manifest.json").exists() and not list((b.folder / "checkpoints").glob(".*"))


def test_a_manifest_is_damaged_on_one_machine(tmp_path: Path) -> None:
    """The other one has it; the files are good."""
    whole = recipe(checkpoint={"every_steps": 12})
    assert [e.code for e in on_each(tmp_path, whole)] == [0, 0]
    manifest_file = Run(tmp_path / "b", []).checkpoint(12) / "manifest.json"
    manifest_file.write_text(manifest_file.read_text()[:100])
    ended = on_each(tmp_path, merged(whole, {"train": {"steps": 14}}), "--resume", "auto")
    assert [e.code for e in ended] == [0, 0], ended
    assert_says(ended[0].err, manifest_file, "is damaged")


@pytest.mark.parametrize(("flags", "texts"), [
    (([], ["--resume", "auto"]), ["rank 1 was started with --resume auto, rank 0 with no such flag"]),
    ((["--eval-only", "--checkpoint", "none"], ["--eval-only"]), ["--checkpoint auto", "--checkpoint none"]),
    ((["--dry-run"], []), ["--dry-run"]),
], ids=["resume", "checkpoint", "dry run"])
def test_workers_with_other_flags(flags: tuple[list, list], texts: list[str], tmp_path: Path) -> None:
    config = write_recipe(tmp_path, recipe())
    ended = run_each([["--config", config, *own] for own in flags], cwd=tmp_path)
    assert_says(error_message(ended), *texts)
    assert not (tmp_path / "run").exists()


def test_dry_run_checks_a_checkpoint(tmp_path: Path) -> None:
    run = train(tmp_path, recipe(checkpoint={"every_steps": 12}))
    before = contents(tmp_path)
    (tmp_path / "more.yaml").write_text(json.dumps(recipe(train={"steps": 20})))
    flags = ["--config", tmp_path / "more.yaml", "--dry-run", "--resume", run.checkpoint(12), "--set",
             f"output={tmp_path / 'new'}"]
    ended = run_alone(*flags, cwd=tmp_path)
    assert ended.code == 0
    assert_says(ended.out, f"resuming from '{run.checkpoint(12)}', after step 12 of 20", "dry run: all is well")
    assert_says(error_message(run_alone(*flags, "--set", "seed=4", cwd=tmp_path)), "seed was 0, is 4")
    (tmp_path / "more.yaml").unlink()
    assert contents(tmp_path) == before


# ---- what must not be saved, what cannot be saved -------------------------------------------------------------------

def test_no_checkpoint_of_a_model_that_diverged(zoo, tmp_path: Path) -> None:
    """The last update makes weights infinite: no loss sees them any more."""
    import torch

    blob = zoo.make_data("blob")
    write_safetensors(tmp_path / "large.safetensors", {**blob, "x": 1000 * blob["x"]})
    torch.jit.script(torch.nn.Linear(6, 4)).save(str(tmp_path / "net.pt"))
    wild = recipe(tmp_path / "net.pt", tmp_path / "large.safetensors", train={"steps": 1}, optimizer={"name": "sgd", "lr": 1e38},
                  checkpoint={"every_steps": 1})
    message = error_message(attempt(tmp_path, wild, "--quiet", workers=2), 5)
    assert_says(message, "parameter 'weight' is not finite after step 1, so that no checkpoint was saved")
    run = Run(tmp_path / "run", [])
    assert run.checkpoints == [] and not (run.folder / "model.safetensors").exists()


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoints").write_text("a file")
    ended = attempt(tmp_path, merged(recipe(), {"checkpoint": {"every_steps": 4}}), "--resume", "auto", workers=2)
    assert {e.code for e in ended} == {6}, ended
    assert_says("".join(e.err for e in ended), tmp_path / "run" / "checkpoints")
