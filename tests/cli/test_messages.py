"""What a user is told besides errors: warnings that --dry-run and the run have in common, a learning rate that was too
high, and the plurals of what is printed.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from program import Ended, run_alone
from runs import (DIGITS_MLP, assert_says, attempt, error_message, merged, recipe, train,
                  write_recipe)
from tensors import write_safetensors

# ---- --dry-run and the run say the same ----------------------------------------------------------------------------


def softmax_model(folder: Path) -> Path:
    import torch
    from torch import nn

    torch.jit.script(nn.Sequential(nn.Linear(6, 3), nn.Softmax(1))).save(str(folder / "model.pt"))
    return folder / "model.pt"


def traced_dropout(folder: Path) -> Path:
    import torch
    from torch import nn

    module = nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.1))
    torch.jit.trace(module, torch.zeros(2, 6), check_trace=False).save(str(folder / "model.pt"))
    return folder / "model.pt"


APART = {"parallel": {"topology": {"phases": [[{"ranks": [0], "weight": 1}, {"ranks": [1], "weight": 1}]]}}}
LATE_TRACE = {"log": {"trace": [100, 110]}}
# name -> (which model, changes of the recipe, workers, a part of each warning)
WARNED = {
    "nothing": ("mlp", {}, 2, []),
    "apart": ("mlp", APART, 2, ["do not connect all workers"]),
    "softmax": (softmax_model, {}, 1, ["is probabilities already"]),
    "traced": (traced_dropout, {}, 2, ["baked in"]),
    "trace too late": ("mlp", LATE_TRACE, 1, ["no trace will be written"]),
    "unused parameter": ("unused", {}, 2, ["step 1 gave no gradient to 'extra.weight', 'extra.bias'"]),
    "all together": (softmax_model, {**APART, **LATE_TRACE}, 2,
                     ["do not connect all workers", "no trace will be written", "is probabilities already"]),
}


def warnings_in(text: str) -> set[str]:
    return {line.removeprefix("warning: ") for line in text.splitlines() if line.startswith("warning: ")}


@pytest.mark.parametrize("name", WARNED)
def test_dry_run_warns_of_what_the_run_warns_of(name: str, model, data, zoo, tmp_path: Path) -> None:
    which, changes, workers, expected = WARNED[name]
    path = model(which) if isinstance(which, str) else which(tmp_path)
    settings = recipe(path, data("blob"), **merged({"train": {"steps": 2}}, changes))
    dry = attempt(tmp_path, settings, "--dry-run", workers=workers)
    assert [e.code for e in dry] == [0] * workers and "".join(e.err for e in dry) == "", dry
    run = train(tmp_path, settings, workers=workers)
    told = warnings_in(run.ended[0].err)
    assert warnings_in(dry[0].out) == told
    assert len(told) == len(expected) and all(any(part in line for line in told) for part in expected), told
    logged = {line.partition(" W ")[2] for line in (run.folder / "run.log").read_text().splitlines() if " W " in line}
    assert logged == told
    last = dry[0].out.splitlines()[-1]
    number = len(expected)
    assert last == ("dry run: all is well; nothing was written" if number == 0 else
                    f"dry run: this can run, with {number} warning{'s' if number > 1 else ''}; nothing was written")


def with_bad_target(folder: Path, zoo) -> Path:
    """NaN in every target, so that the first batch of any worker has one."""
    arrays = zoo.make_data("blob")
    path = folder / "nan.safetensors"
    write_safetensors(path, {"x": arrays["x"], "y": np.full((len(arrays["x"]), 2), np.nan, np.float32)})
    return path


REFUSED = {
    "batch larger than the data": (lambda model, bad: recipe(data={"batch_size": 2000}), 2, "2000"),
    "metric of another loss": (lambda model, bad: recipe(eval={"metrics": ["mse"]}), 2, "has no mse"),
    "best by what is not measured": (lambda model, bad: recipe(checkpoint={"keep_best": "top5"}), 2, "do not measure top5"),
    "topology of other workers": (lambda model, bad: recipe(parallel={"topology": "alternating-exp-ring"}), 2, "cannot do"),
    "first loss": (lambda model, bad: recipe(model("regressor"), bad, model={"loss": "mse"}), 5,
                   "the loss of step 1 is nan; field 'y' of the batch (model.target)"),
}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", REFUSED)
def test_dry_run_refuses_what_the_run_refuses(name: str, workers: int, model, zoo, tmp_path: Path) -> None:
    make, code, text = REFUSED[name]
    settings = merged(make(model, with_bad_target(tmp_path, zoo)), {"log": {"progress": "off"}})
    dry = attempt(tmp_path, settings, "--dry-run", workers=workers)
    assert [e.code for e in dry] == [code] * workers, dry
    assert not (tmp_path / "run").exists()
    run = attempt(tmp_path, settings, workers=workers)
    assert [e.code for e in run] == [code] * workers, run

    def told(ended: list[Ended]) -> str:
        """Of whichever worker, and its own samples: a run that has begun ends with the first that fails."""
        text = "".join(e.err for e in ended).partition("(failed too: ")[0]
        return re.sub(r"sample \d+", "sample", re.sub(r"rank \d+: ", "", text))

    assert_says(told(dry), text)
    assert told(dry) == told(run)


def test_folder_in_the_way_is_not_well(tmp_path: Path) -> None:
    train(tmp_path, recipe(train={"steps": 1}))
    ended = run_alone("--config", tmp_path / "recipe.yaml", "--dry-run", cwd=tmp_path)
    assert ended.code == 0
    assert_says(ended.out, "note: ", "already holds a run")
    assert ended.out.splitlines()[-1] == "dry run: all but the output folder is well; nothing was written"


# ---- data that is not trained on --------------------------------------------------------------------------------------

def notes_in(text: str) -> list[str]:
    """A run's, and those of --dry-run, which begin with another word."""
    return [line[5:].lstrip() for line in text.splitlines() if line.startswith(("note ", "note: "))]


def sorted_source(folder: Path, **keys: object) -> dict:
    """64 samples of each of the classes 0, 1 and 2, one class after another."""
    random = np.random.default_rng(0)
    write_safetensors(folder / "sorted.safetensors", {"x": random.random((192, 6), np.float32), "y": np.repeat([0, 1, 2], 64)})
    return {"format": "safetensors", "path": str(folder / "sorted.safetensors"), **keys}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("limit", "named"), [(64, True), (65, False), (None, False)])
def test_a_limit_that_leaves_one_class(limit: int | None, named: bool, workers: int, model, tmp_path: Path) -> None:
    """In the data to train on and to evaluate on; the way out of the message is one."""
    source = sorted_source(tmp_path, **({"limit": limit} if limit else {}))
    settings = recipe(model("mlp"), data={"train": source, "eval": source}, train={"steps": 2})
    told = notes_in(train(tmp_path, settings, workers=workers).ended[0].out)
    wanted = [f"data.{which}.limit takes the first 64 samples, and all that were looked at have class 0" for which in ("train", "eval")]
    assert [any(line.startswith(start) for line in told) for start in wanted] == [named] * 2, told
    if named:
        assert all("`holdout: {fraction: 0.1, part: eval}` in place of limit" in line for line in told), told
        way_out = sorted_source(tmp_path, holdout={"fraction": 0.1, "part": "eval"}, limit=None)
        run = train(tmp_path / "out", merged(settings, {"data": {"train": way_out, "eval": None}}))
        assert_says(run.ended[0].out, "19 samples to train on")


@pytest.mark.parametrize(("shuffle", "batch", "left"), [(False, 40, 32), (False, 48, 0), (True, 40, 0)])
def test_an_end_of_the_data_that_is_never_used(shuffle: bool, batch: int, left: int, model, tmp_path: Path) -> None:
    settings = recipe(model("mlp"), data={"train": sorted_source(tmp_path), "eval": None, "batch_size": batch, "shuffle": shuffle},
                      train={"steps": 3})
    run = train(tmp_path, settings)
    dry = attempt(tmp_path, merged(settings, {"output": str(tmp_path / "other")}), "--dry-run")[0]
    for told in (notes_in(run.ended[0].out), notes_in(dry.out)):
        wanted = [f"data.shuffle is false: the last {left} of 192 samples are never trained on, as an epoch is whole updates of "
                  f"{batch} samples; another batch_size, or data.shuffle: true, uses them"] if left else []
        assert [line for line in told if "never trained on" in line] == wanted, told


# ---- what other programs call otherwise ------------------------------------------------------------------------------

EXTENDS = "'extends: FILE' at the top of a recipe's file builds on another recipe; --set KEY=VALUE changes a recipe"
TRACK = "here it is 'log.track', and decent-track sends runs that are there already"


@pytest.mark.parametrize(("setting", "said"), [
    ("extends=base.yaml", EXTENDS), ("base=base.yaml", EXTENDS), ("_base_=[a.yaml]", EXTENDS), ("defaults=[a]", EXTENDS),
    ("log.mlflow=true", TRACK), ("log.wandb={project: x}", TRACK), ("wandb={project: x}", TRACK), ("log.report_to=wandb", TRACK)])
def test_what_other_programs_have(setting: str, said: str, tmp_path: Path) -> None:
    """And what there is in its place."""
    write_recipe(tmp_path, recipe())
    ended = run_alone("--config", tmp_path / "recipe.yaml", "--set", setting, cwd=tmp_path)
    key = setting.partition("=")[0]
    assert_says(error_message(ended), f"--set {setting}: {key}: unknown key; ", said)


# ---- a learning rate that is too high, though every loss is finite ---------------------------------------------------

STEPS = 60


def with_rate(name: str, lr: float, **changes: object) -> dict:
    return recipe(DIGITS_MLP, optimizer={"name": name, "lr": lr}, **merged({"train": {"steps": STEPS}}, changes))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name, lr", [("adamw", 5), ("adam", 50), ("sgd", 5)])
def test_rate_that_is_too_high(name: str, lr: int, workers: int, tmp_path: Path) -> None:
    run = train(tmp_path, with_rate(name, lr), workers=workers)
    told = "".join(e.err for e in run.ended)
    assert told.count("warning: ") == 1 and len(told.splitlines()) == 2, told
    assert_says(told, "the loss rose from 2.", " before training to ", " and ended at ",
                f"optimizer.lr {lr} is probably too high", "a tenth of it")
    assert_says((run.folder / "run.log").read_text(), "the loss rose from")
    assert run.lines("end")[-1]["status"] == "completed"


def test_rate_that_is_too_high_in_a_run_that_was_resumed(tmp_path: Path) -> None:
    """Two steps after the checkpoint; what came before is in metrics.jsonl."""
    checkpoint = {"every_steps": STEPS - 2}
    train(tmp_path, with_rate("adam", 50, checkpoint=checkpoint, train={"steps": STEPS - 2}))
    run = train(tmp_path, with_rate("adam", 50, checkpoint=checkpoint), "--resume", "auto", workers=2)
    assert_says("".join(e.err for e in run.ended), "the loss rose from")


@pytest.mark.parametrize("name, lr, steps", [("adamw", 1e-3, STEPS), ("sgd", 0.05, STEPS), ("adamw", 1e-12, STEPS),
                                             ("adamw", 50, 1), ("adamw", 50, 9)])
def test_no_alarm_about_rates(name: str, lr: float, steps: int, tmp_path: Path) -> None:
    """One that trains, one that does nothing, and runs too short to tell."""
    run = train(tmp_path, with_rate(name, lr, train={"steps": steps}), workers=2)
    assert "".join(e.err for e in run.ended) == ""


# ---- plurals -------------------------------------------------------------------------------------------------------

WRONG_PLURAL = re.compile(r"(?<![\w.])1 (workers|phases|steps|updates|epochs|samples|buffers|buckets|parameters|models|"
                          r"replicas|values|classes|inputs|bytes|mistakes)\b")


def test_one_of_a_thing_has_no_plural(zoo, data, tmp_path: Path) -> None:
    import torch
    from torch import nn

    class One(nn.Module):
        """One parameter of one element, one buffer."""

        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(1))
            self.register_buffer("b", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.w + self.b

    torch.jit.script(One()).save(str(tmp_path / "one.pt"))
    write_safetensors(tmp_path / "one.safetensors", {"x": np.ones((1, 1), np.float32), "y": np.ones((1, 1), np.float32)})
    settings = recipe(tmp_path / "one.pt", tmp_path / "one.safetensors", model={"loss": "mse"}, data={"batch_size": 1},
                      train={"steps": 1}, eval={"every_steps": 1}, checkpoint={"every_steps": 1})
    dry = attempt(tmp_path, settings, "--dry-run")[0]
    run = train(tmp_path, settings)
    more = merged(settings, {"train": {"steps": 2}, "data": {"batch_size": 1}})
    write_recipe(tmp_path, more)
    resumed = attempt(tmp_path, more, "--resume", "auto", "--verbose")[0]
    too_few = attempt(tmp_path, merged(settings, {"data": {"batch_size": 2}, "output": str(tmp_path / "other")}))[0]
    frozen = attempt(tmp_path, merged(settings, {"model": {"freeze": ["w"]}, "output": str(tmp_path / "other")}))[0]
    text = "\n".join(e.out + e.err for e in (dry, run.ended[0], resumed, too_few, frozen))
    assert_says(text, "1 parameter to train", "of 1 worker,", "1 sample to train on", "done: 1 update", "1 worker x")
    assert WRONG_PLURAL.findall(text) == [], text
