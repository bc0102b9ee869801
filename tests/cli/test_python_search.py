"""decent-sweep: halving, pruning, failures, and what is refused."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
from functools import partial
from pathlib import Path

import pytest
import yaml
from optuna.trial import FrozenTrial

import decent_train
from decent_train import TrainingError
from program import ROOT, run_alone
from runs import DIGITS_MLP, Run, assert_same_run
from supervised import wait_until
from sweeps import (completed, figures, has_evaluated, lines_of, processes_in, run_search, searching, surround,
                    trials_in, write_sweep)

STEPS = 1000
LONG = {"train": {"steps": STEPS}}
HALVING = {"trials": 4, "seed": 3, "sampler": {"name": "tpe", "n_startup_trials": 2},
           "halving": {"reduction_factor": 2, "rungs": [40, 400]}}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """For searches in the process of the test."""
    surround(monkeypatch)


@pytest.fixture(scope="module")
def halved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a search with halving that nobody has disturbed."""
    folder = tmp_path_factory.mktemp("halved")
    completed(write_sweep(folder, LONG, **HALVING))
    return folder


def best_in(output: Path) -> FrozenTrial:
    return min((each for each in trials_in(output) if each.state.name == "COMPLETE"), key=lambda each: each.value)


def refusal(sweep: Path, code: int = 2, **overrides: object) -> str:
    """The message of a search that ends with an error."""
    with pytest.raises(TrainingError) as raised:
        decent_train.search(sweep, quiet=True, **overrides)
    assert raised.value.code == code, raised.value
    return str(raised.value)


# ---- halving ------------------------------------------------------------------------------------


def test_halving_keeps_the_best_at_each_rung(halved: Path) -> None:
    trials = trials_in(halved / "out")
    first = {trial.number: trial.intermediate_values[40] for trial in trials}
    second = {trial.number: trial.intermediate_values[400] for trial in trials if 400 in trial.intermediate_values}
    assert len(first) == 4 and list(second) == sorted(sorted(first, key=first.get)[:2])
    last = [trial for trial in trials if STEPS in trial.intermediate_values]
    assert [trial.number for trial in last] == [min(second, key=second.get)]
    assert [trial.state.name for trial in last] == ["COMPLETE"]
    assert {trial.state.name for trial in trials if trial not in last} == {"PRUNED"}


def test_a_trial_with_rungs_is_bit_for_bit_a_run_without(halved: Path, tmp_path: Path) -> None:
    best = best_in(halved / "out")
    folder = halved / "out" / f"trial-{best.number:04d}"
    # Two times or three: on a busy machine it may have come past the second rung before it was stopped at the first.
    assert len(json.loads((folder / "run.json").read_text())["starts"]) >= 2, "it was never stopped"
    ended = run_alone("--config", halved / "recipe.yaml", "--set", f"optimizer.lr={best.params['optimizer.lr']!r}",
                      "--set", f"output={tmp_path / 'run'}")
    assert ended.code == 0, ended
    assert_same_run(Run(folder, []), Run(tmp_path / "run", [ended]))


def test_the_storage_has_the_figures_of_the_runs(halved: Path) -> None:
    for trial in trials_in(halved / "out"):
        folder = halved / "out" / f"trial-{trial.number:04d}"
        lines = {line["step"]: line["loss"] for line in lines_of(folder, "eval")}
        assert trial.intermediate_values and trial.intermediate_values.items() <= lines.items()
        assert trial.value == trial.intermediate_values[max(trial.intermediate_values)]
        assert yaml.safe_load((folder / "recipe.yaml").read_text())["optimizer"]["lr"] == trial.params["optimizer.lr"]


def test_a_search_that_is_done_says_what_it_found(halved: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (halved / "out").glob("trial-*/metrics.jsonl")}
    found = decent_train.search(halved / "sweep.yaml", quiet=True)
    assert {path: path.stat().st_mtime_ns for path in before} == before and len(before) == 4
    best = best_in(halved / "out")
    assert (found.best.number, found.best.metric, found.best.values) == (best.number, best.value, best.params)
    assert found.table[0]["trial"] == best.number and [row["rank"] for row in found.table] == [1, 2, 3, 4]
    assert [row["state"] for row in found.table] == ["completed", "pruned", "pruned", "pruned"]
    assert str(found).splitlines()[0].split() == ["rank", "trial", "optimizer.lr", "step", "loss", "state"]
    assert [figures(trial) for trial in found.study().trials] == [figures(trial) for trial in trials_in(halved / "out")]
    page = found.page.read_text()
    assert all(trial.folder.name in page for trial in found.trials)


def test_a_search_goes_on_with_more_trials(halved: Path, tmp_path: Path) -> None:
    shutil.copytree(halved, tmp_path / "more")
    sweep = write_sweep(tmp_path / "more", LONG, **HALVING)
    before = [figures(trial) for trial in trials_in(halved / "out")]
    # Their folders have moved, which changes paths in the recipe of the trials, but no trial is started again.
    trials = completed(sweep, trials=6)
    assert [figures(trial) for trial in trials[:4]] == before
    assert sorted(trial.state.name for trial in trials[4:]) == ["COMPLETE", "PRUNED"]
    assert max(trials[4].intermediate_values) != max(trials[5].intermediate_values)


# ---- stopped and gone on ------------------------------------------------------------------------


def test_the_trials_are_the_same_after_a_kill(halved: Path, tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path, LONG, **HALVING)
    for trial, evaluations in ((2, 1), (2, 2)):  # in the middle of the first rung, and again wherever it is by then
        with searching(sweep) as process:
            wait_until(partial(has_evaluated, sweep, trial, evaluations))
            process.send_signal(signal.SIGKILL)
            process.wait()
            wait_until(lambda: processes_in(tmp_path) == [], 30)  # its trial saves and ends by itself
    assert any(trial.state.name == "RUNNING" for trial in trials_in(tmp_path / "out"))
    trials = completed(sweep)
    assert [figures(trial) for trial in trials] == [figures(trial) for trial in trials_in(halved / "out")]
    best = [trial.number for trial in trials if trial.state.name == "COMPLETE"][0]
    name = f"trial-{best:04d}"
    assert_same_run(Run(tmp_path / "out" / name, []), Run(halved / "out" / name, []))


# ---- pruning and failures -----------------------------------------------------------------------


def test_pruned_trials_end_early_and_are_not_the_best(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path, {"train": {"steps": 4000}}, space={"optimizer.lr": {"choice": [1e-7, 3e-3]}},
                        sampler="grid", metric="accuracy", pruner={"name": "threshold", "lower": 0.5})
    trials = {trial.params["optimizer.lr"]: trial for trial in completed(sweep)}
    pruned, good = trials[1e-7], trials[3e-3]
    assert (pruned.state.name, good.state.name) == ("PRUNED", "COMPLETE")
    assert list(pruned.intermediate_values) == [20] and pruned.value < 0.5 < good.value
    folder = tmp_path / "out" / f"trial-{pruned.number:04d}"
    end = lines_of(folder, "end")[-1]
    assert end["status"] == "stopped" and end["step"] < 4000
    assert yaml.safe_load((tmp_path / "out" / "best.yaml").read_text())["optimizer"]["lr"] == 3e-3


def test_a_diverging_trial_is_the_worst_and_the_search_goes_on(tmp_path: Path) -> None:
    space = {"optimizer.lr": {"choice": [1e30, 0.02]}}
    sweep = write_sweep(tmp_path, {"optimizer": {"name": "sgd"}}, space=space, sampler="grid", halving={"rungs": [20]},
                        trials=2)
    ended = run_search(sweep)
    assert ended.code == 0 and "failed: " in ended.out, ended
    found = decent_train.search(sweep, quiet=True)
    bad = next(trial for trial in found.trials if trial.values["optimizer.lr"] == 1e30)
    assert bad.state == "failed" and bad.metric is None and "diverged" in bad.message
    assert found.best.values == {"optimizer.lr": 0.02} and found.ranked[-1] is bad
    assert {trial.state.name for trial in trials_in(tmp_path / "out")} == {"FAIL", "COMPLETE"}


def test_a_search_without_a_completed_trial(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path, {"optimizer": {"name": "sgd"}}, space={"optimizer.lr": {"choice": [1e30]}}, trials=1)
    ended = run_search(sweep)
    assert ended.code == 5 and ended.err == "decent-sweep: error: no trial was completed\n", ended
    assert not (tmp_path / "out" / "best.yaml").exists()


def test_a_value_that_the_program_refuses_ends_the_search_with_its_message(tmp_path: Path) -> None:
    # The recipe is right; that the data are too few shows when the trial begins.
    sweep = write_sweep(tmp_path, space={"data.batch_size": {"choice": [5000]}}, trials=2)
    message = refusal(sweep)
    assert message.startswith("trial-0000  data.batch_size=5000: ") and "5000" in message.partition(": ")[2], message
    assert [trial.state.name for trial in trials_in(tmp_path / "out")] == ["RUNNING"]


# ---- what trials are made of ----------------------------------------------------------------------


def test_paths_start_at_the_sweep_file_and_best_yaml_holds_what_was_chosen(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    shutil.copy(DIGITS_MLP, tmp_path / "here" / "a.pt")
    schedules = [{"name": "constant"}, {"name": "linear", "total_iters": None}]
    sweep = write_sweep(tmp_path / "here", sampler="grid",
                        space={"model.path": {"choice": ["a.pt"]}, "schedule": {"choice": schedules}},
                        set={"optimizer": {"name": "adam", "lr": 1e-3}, "amp.dtype": "off"})
    found = decent_train.search(sweep, quiet=True, output=tmp_path / "elsewhere" / "out")
    assert [trial.state for trial in found.trials] == ["completed", "completed"]
    best = yaml.safe_load(found.best_recipe.read_text())
    assert (found.best_recipe.parent / best.pop("extends")).resolve() == tmp_path / "here" / "recipe.yaml"
    assert best == {"optimizer": {"name": "adam", "lr": 1e-3}, "amp": {"dtype": "off"},
                    "model": {"path": str(tmp_path / "here" / "a.pt")}, "schedule": found.best.values["schedule"]}
    ended = run_alone(found.best_recipe, "--set", f"output={tmp_path / 'run'}")
    assert ended.code == 0, ended.err
    assert lines_of(tmp_path / "run", "eval")[-1]["loss"] == found.best.metric


def test_the_example_is_what_the_program_and_the_search_take(tmp_path: Path) -> None:
    ended = run_search(ROOT / "configs" / "sweeps" / "digits_cnn_search.yaml", "--set", f"output={tmp_path / 'out'}",
                       "--set", "trials=1", "--set", "workers=1", "--set", "halving=null",
                       "--set", "set={train.epochs: 1, eval.every_epochs: 1, data.train.limit: 64}")
    assert ended.code == 0 and len(trials_in(tmp_path / "out")) == 1, ended


# ---- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("change", "words"), [
    ({"space": {"optimizer.lr": {"log_uniform": [1e-4, 2e-1]}}}, ["space: was", "high=0.1", "high=0.2"]),
    ({"metric": "accuracy"}, ["metric: was loss, minimize, is accuracy, maximize"]),
    ({"seed": 4}, ["seed: was 3, is 4"]),
    ({"set": {"model.label_smoothing": 0.1}}, ["recipe: was recipe.yaml of SHA-256"]),
    ({"trials": 3}, ["trials: there are 4 already, so it cannot be 3"]),
])
def test_a_sweep_that_was_changed_is_refused(halved: Path, change: dict, words: list[str]) -> None:
    message = refusal(halved / "sweep.yaml", **change)
    assert all(word in message for word in words), message


def test_folders_that_are_not_the_searchs_are_refused(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path, trials=1)
    out = tmp_path / "out"
    (out / "trial-0000").mkdir(parents=True)
    assert "has trials, but not the search.db with their parameters" in refusal(sweep)
    (out / "trial-0000").rmdir()
    (out / "metrics.jsonl").touch()
    assert f"'{out}' is the folder of a run" in refusal(sweep)
    (out / "metrics.jsonl").unlink()
    (out / "search.db").write_text("no data base " * 100)
    assert f"'{out / 'search.db'}' cannot be used as Optuna's storage: " in refusal(sweep, 4)
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "out"
    assert f"cannot write to the folder '{folder}'" in refusal(sweep, 6, output=folder)


def test_mistakes_in_keys_of_the_recipe_show_before_anything_is_written(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path, space={"optimizer.lrr": {"uniform": [0.1, 0.2]}})
    ended = run_search(sweep)
    assert ended.code == 2 and "did you mean 'lr'?" in ended.err, ended
    assert f"{sweep}:4:3: space.optimizer.lrr is written here" in ended.err
    for changes, words in (({"space": {"optimizer.lr": {"choice": [0.1, -1]}}}, ["optimizer.lr"]),
                           ({"set": {"train.stepz": 1}}, ["did you mean 'steps'?", "set.train.stepz is written here"]),
                           ({"recipe": "none.yaml"}, ["none.yaml"]),
                           ({"metric": "f1"}, ["do not measure 'f1'", "valid: loss, consensus_distance, accuracy"]),
                           ({"halving": {"rungs": [30]}}, ["there is no rung at step 30", "multiples of 20"])):
        message = refusal(write_sweep(tmp_path, **changes))
        assert all(word in message for word in words), message
    assert not (tmp_path / "out").exists()


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"a search needs the package optuna: pip install 'decent-train\[search\]'"):
        decent_train.search(tmp_path / "sweep.yaml")
