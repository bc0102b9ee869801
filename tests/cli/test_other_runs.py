"""Checkpoints of another run, going back inside one, evaluating on other data: nothing is mixed up or lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import xxhash

from folders import snapshot
from runs import DIGITS, Run, assert_same_run, assert_same_weights, assert_says, attempt, error_message, merged, recipe, train
from tensors import write_safetensors

SETTINGS = recipe(train={"steps": 12}, eval={"every_steps": 4}, checkpoint={"every_steps": 4, "keep": 9})
OTHER = merged(SETTINGS, {"seed": 7})


def manifest_of(run: Run, step: int) -> dict:
    return json.loads((run.checkpoint(step) / "manifest.json").read_text())


def make_older(run: Run) -> None:
    """As a program wrote it that knew no ids of runs."""
    for file in run.folder.glob("checkpoints/step-*/manifest.json"):
        lines = [line for line in file.read_text().splitlines(keepends=True)[1:] if not line.startswith(' "run":')]
        body = "".join(lines)
        file.write_text(f'{{"checksum": "{xxhash.xxh3_128_hexdigest(body.encode())}",\n{body}')
        assert "run" not in json.loads(file.read_text())


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[Run, Run]:
    return train(tmp_path / "a", SETTINGS), train(tmp_path / "b", OTHER)


def test_every_run_has_an_id_of_its_own(two_runs: tuple[Run, Run]) -> None:
    ids = [{manifest_of(run, step)["run"] for step in (4, 8, 12)} for run in two_runs]
    assert len(ids[0]) == len(ids[1]) == 1 and ids[0] != ids[1]
    again = train(two_runs[0].folder.parent, merged(SETTINGS, {"train": {"steps": 16}}), "--resume", "auto")
    assert {manifest_of(again, 16)["run"]} == ids[0]


@pytest.mark.parametrize("older", [False, True], ids=["ids", "older"])
@pytest.mark.parametrize("workers", [1, 2])
def test_checkpoint_of_another_run(older: bool, workers: int, tmp_path: Path) -> None:
    """The other run differs in its learning rate alone, which a run may change: nothing else would tell them apart."""
    settings = [SETTINGS, merged(SETTINGS, {"optimizer": {"lr": 0.01}})]
    a, b = [train(tmp_path / name, own, workers=workers) for name, own in zip("ab", settings)]
    if older:
        make_older(a)
        make_older(b)
    before = snapshot(b.folder)
    message = error_message(attempt(tmp_path / "b", settings[1], "--resume", a.checkpoint(8), workers=workers))
    assert_says(message, a.checkpoint(8), "is of another run than the one in output folder", b.folder,
                "--resume auto", "--set output=DIR")
    assert snapshot(b.folder) == before


@pytest.mark.parametrize("older", [False, True], ids=["ids", "older"])
def test_new_run_from_the_checkpoint_of_another(older: bool, tmp_path: Path) -> None:
    """Into an empty folder: a run of its own, which goes on as the other did."""
    a = train(tmp_path / "a", SETTINGS)
    if older:
        make_older(a)
    branch = train(tmp_path / "branch", SETTINGS, "--resume", a.checkpoint(8))
    assert_same_weights(a, branch)
    assert manifest_of(branch, 12)["run"] != json.loads((a.checkpoint(8) / "manifest.json").read_text()).get("run")
    # Again, as a script would that is started again: now the folder holds a run.
    message = error_message(attempt(tmp_path / "branch", SETTINGS, "--resume", a.checkpoint(8)))
    assert_says(message, "is of another run")
    assert "is complete" in train(tmp_path / "branch", SETTINGS, "--resume", "auto").ended[0].out


def test_checkpoint_that_was_moved_is_still_of_its_run(tmp_path: Path) -> None:
    run = train(tmp_path, SETTINGS)
    undisturbed = run.metrics_without_times
    shutil.move(run.checkpoint(8), tmp_path / "kept")
    again = train(tmp_path, SETTINGS, "--resume", tmp_path / "kept")
    assert again.metrics_without_times == undisturbed


def test_older_run_goes_on(tmp_path: Path) -> None:
    run = train(tmp_path / "a", SETTINGS)
    make_older(run)
    longer = merged(SETTINGS, {"train": {"steps": 16}})
    went_on = train(tmp_path / "a", longer, "--resume", "auto")
    assert_same_run(train(tmp_path / "whole", longer), went_on)
    assert manifest_of(went_on, 16)["run"]


def test_going_back_keeps_what_it_cuts(tmp_path: Path) -> None:
    run = train(tmp_path, SETTINGS)
    names = ("metrics.jsonl", "run.json", "model.pt", "model.safetensors")
    first = {name: (run.folder / name).read_bytes() for name in names}
    other_lr = merged(SETTINGS, {"optimizer": {"lr": 0.01}})
    back = train(tmp_path, other_lr, "--resume", run.checkpoint(4))
    assert_says(back.ended[0].out, "are kept in", run.folder / "set-aside" / "1")
    second = {name: (run.folder / name).read_bytes() for name in names}
    assert second != first
    again = train(tmp_path, SETTINGS, "--resume", run.checkpoint(8))
    for number, kept in (("1", first), ("2", second)):
        place = run.folder / "set-aside" / number
        assert {path.name: path.read_bytes() for path in place.iterdir()} == kept
    # Of each checkpoint that later ones took the place of, too.
    assert {path.name for path in (run.folder / "checkpoints" / "set-aside").iterdir()} == {
        "step-00000008", "step-00000012", "step-00000012.2"}
    assert [line["step"] for line in again.lines("train")] == list(range(1, 13))


def test_a_crash_sets_nothing_aside(tmp_path: Path) -> None:
    """Lines after the newest checkpoint come again, the same."""
    run = train(tmp_path, merged(SETTINGS, {"train": {"steps": 11}}))
    shutil.rmtree(run.checkpoint(11))
    (run.folder / "metrics.jsonl").write_text("".join(
        line for line in (run.folder / "metrics.jsonl").read_text().splitlines(keepends=True) if '"end"' not in line))
    train(tmp_path, SETTINGS, "--resume", "auto")
    assert not (run.folder / "set-aside").exists()


# ---- evaluations of other data -------------------------------------------------------------------------------------

def added_lines(run: Run, settings: dict, *flags: object) -> list[dict]:
    before = len(run.metrics)
    assert attempt(run.folder.parent, settings, "--eval-only", *flags)[0].code == 0
    return run.metrics[before:]


def test_evaluation_of_other_data_names_its_source(two_runs: tuple[Run, Run]) -> None:
    run, other = two_runs
    own = added_lines(run, SETTINGS)
    assert len(own) == 1 and "source" not in own[0] and "checkpoint" not in own[0]
    elsewhere = added_lines(run, merged(SETTINGS, {"data": {"eval": DIGITS["train"]}}))
    assert len(elsewhere) == 1 and "split: train" in elsewhere[0]["source"] and elsewhere[0]["samples"] == 1442
    foreign = added_lines(run, SETTINGS, "--checkpoint", other.checkpoint(8))
    assert foreign[0]["checkpoint"] == str(other.checkpoint(8)) and "source" not in foreign[0]


# ---- other content of the same shape -------------------------------------------------------------------------------

def write_data(path: Path, first: float) -> Path:
    images = np.random.default_rng(0).normal(size=(200, 64)).astype(np.float32)
    images[0, 0] = first
    return write_safetensors(path, {"x": images, "y": np.arange(200, dtype=np.int64) % 10}) or path


def test_resume_says_that_the_data_are_others(tmp_path: Path) -> None:
    settings = recipe(Path("model.pt"), data={"train": {"format": "safetensors", "path": "d.safetensors"}, "eval": None})
    settings["model"] = {"path": str(Path(__file__).parents[2] / "models" / "digits_mlp.pt")}
    settings = merged(settings, {"checkpoint": {"every_steps": 4}})
    write_data(tmp_path / "d.safetensors", 0.0)
    run = train(tmp_path, settings)
    assert "other samples" not in train(tmp_path, merged(settings, {"train": {"steps": 16}}), "--resume", "auto").ended[0].out
    write_data(tmp_path / "d.safetensors", 1.0)
    changed = train(tmp_path, merged(settings, {"train": {"steps": 20}}), "--resume", "auto")
    assert_says(changed.ended[0].out, "changed since: data.train holds other samples, of the same number and shape")
    # A checkpoint of a program that knew no such checksum says nothing.
    file = run.checkpoint(20) / "manifest.json"
    body = "".join(line for line in file.read_text().splitlines(keepends=True)[1:] if "the content of" not in line)
    body = body.replace(",\n }\n}", "\n }\n}")
    file.write_text(f'{{"checksum": "{xxhash.xxh3_128_hexdigest(body.encode())}",\n{body}')
    json.loads(file.read_text())
    silent = train(tmp_path, merged(settings, {"train": {"steps": 24}}), "--resume", "auto")
    assert "samples" not in "".join(line for line in silent.ended[0].out.splitlines() if "changed since" in line)
