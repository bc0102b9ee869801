"""A run that was stopped and goes on is the run that was never stopped: weights and metrics, bit for bit."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from damaged import MANIFEST, fields_of, with_fields
from runs import (DIGITS_CNN, DIGITS_MLP, OPTIMIZERS, Run, assert_same_run, assert_same_weights, attempt, error_message, merged,
                  recipe, train)
from started import stop_on_the_way
from tensors import read_safetensors

CUSTOM = {"phases": [[{"ranks": [0, 1, 2], "weight": 0.5}, {"ranks": [3], "weight": 1.0}],
                     [{"ranks": [0, 3], "weight": 0.7}, {"ranks": [1, 2], "weight": 0.4}]]}
TOPOLOGIES = [("ring", 2), ("complete", 2), ("ring", 4), ("complete", 4), ("one-peer-exp", 4),
              ("alternating-exp-ring", 4), (CUSTOM, 4)]
# Every optimizer with every topology takes minutes: on demand. A checkpoint is the same whatever it was saved for, so else
# every topology is stopped by a signal and every optimizer gets more steps.
ALL = "DECENT_ALL_COMBINATIONS" in os.environ
COMBINATIONS = [(optimizer, topology, workers) for optimizer in OPTIMIZERS for topology, workers in TOPOLOGIES]


def combined(chosen: list[tuple[str, object, int]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("optimizer", "topology", "workers"), COMBINATIONS if ALL else chosen,
                                   ids=lambda value: "custom" if isinstance(value, dict) else str(value))


EVERY_TOPOLOGY = combined([("accum_adamw", topology, workers) for topology, workers in TOPOLOGIES])
EVERY_OPTIMIZER = combined([(optimizer, "ring", 2) for optimizer in OPTIMIZERS])


def of(optimizer: str, topology: object, **changes: object) -> dict:
    """Small buckets, so that there are several; two micro-batches; evaluations; no checkpoints but those asked for."""
    base = recipe(DIGITS_MLP, optimizer=OPTIMIZERS[optimizer], train={"grad_accumulation": 2},
                  parallel={"topology": topology, "bucket_mb": 0.02, "gamma": 0.9}, eval={"every_steps": 40},
                  data={"batch_size": 4})
    return merged(base, changes)


@EVERY_TOPOLOGY
def test_stopped_by_a_signal(optimizer: str, topology: object, workers: int, tmp_path: Path) -> None:
    whole = of(optimizer, topology, train={"steps": 200}, log={"every_steps": 7},
               schedule={"name": "cosine_warmup", "warmup_steps": 20})
    local = 2 if workers == 4 else workers
    undisturbed = train(tmp_path / "whole", whole, workers=workers, local=local)
    step = stop_on_the_way(tmp_path / "stopped", whole, workers, local, rank=workers - 1)
    assert 0 < step < 200
    resumed = train(tmp_path / "stopped", whole, "--resume", "auto", workers=workers, local=local)
    assert_same_run(undisturbed, resumed)
    assert f"resuming from '{resumed.checkpoint(step)}', after step {step} of 200" in resumed.ended[0].out


@EVERY_OPTIMIZER
def test_more_steps(optimizer: str, topology: object, workers: int, tmp_path: Path) -> None:
    """N steps, then 2N; N is in the middle of accum_iter."""
    local = 2 if workers == 4 else workers
    half, double = ({"train": {"steps": steps}, "checkpoint": {"every_steps": 13}, "eval": {"every_steps": 13}}
                    for steps in (13, 26))
    undisturbed = train(tmp_path / "double", of(optimizer, topology, **double), workers=workers, local=local)
    train(tmp_path / "half", of(optimizer, topology, **half), workers=workers, local=local)
    resumed = train(tmp_path / "half", of(optimizer, topology, **double), "--resume", "auto", workers=workers,
                    local=local)
    assert_same_run(undisturbed, resumed)
    assert "changed since: train.steps was 13, is 26" in resumed.ended[0].out


def test_from_a_version_without_a_key(tmp_path: Path) -> None:
    """optimizer.alpha came after the first checkpoints: no word of it, and the same run."""
    five, ten = (of("adamw", "ring", train={"steps": steps}, checkpoint={"every_steps": 5}, eval={"every_steps": 5})
                 for steps in (5, 10))
    undisturbed = train(tmp_path / "whole", ten)
    manifest = train(tmp_path / "old", five).checkpoint(5) / MANIFEST
    fields = fields_of(manifest.read_bytes())
    assert fields["facts"].pop("optimizer.alpha") == "0.99"
    lines = fields["recipe"].splitlines(keepends=True)
    older = "".join(line for line in lines if line.strip() != "alpha: 0.99")
    assert older != fields["recipe"]
    manifest.write_bytes(with_fields(manifest.read_bytes(), facts=fields["facts"], recipe=older))
    resumed = train(tmp_path / "old", ten, "--resume", "auto")
    assert_same_run(undisturbed, resumed)
    assert "changed since: train.steps was 5, is 10" in resumed.ended[0].out
    assert "alpha" not in resumed.ended[0].out + resumed.ended[0].err


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_batch_norm_and_epochs(workers: int, tmp_path: Path) -> None:
    """Running statistics, epochs and a schedule over all of them; every checkpoint of the run is gone on from."""
    whole = recipe(DIGITS_CNN, train={"steps": None, "epochs": 2}, data={"batch_size": 60}, checkpoint={"every_steps": 3, "keep": 99},
                   eval={"every_epochs": 1}, schedule={"name": "cosine_warmup", "warmup_steps": 3})
    undisturbed = train(tmp_path / "whole", whole, workers=workers)
    per_epoch = 1442 // (60 * workers)
    assert undisturbed.checkpoints == sorted({*range(3, 2 * per_epoch + 1, 3), 2 * per_epoch})
    for step in undisturbed.checkpoints[-3::-2]:
        resumed = train(tmp_path / "whole", whole, "--resume", undisturbed.checkpoint(step), "--set",
                        f"output={tmp_path / str(step)}", workers=workers)
        again = Run(tmp_path / str(step), resumed.ended)
        assert_same_weights(undisturbed, again)
        later = [line for line in undisturbed.metrics_without_times if line["step"] > step or line["kind"] == "end"]
        assert again.metrics_without_times == later


def test_dropout(model, data, tmp_path: Path) -> None:
    random = recipe(model("dropout_norm"), data("blob"), train={"steps": 20}, checkpoint={"every_steps": 9})
    undisturbed = train(tmp_path / "whole", random, workers=2)
    train(tmp_path / "half", merged(random, {"train": {"steps": 9}}), workers=2)
    assert_same_weights(undisturbed, train(tmp_path / "half", random, "--resume", "auto", workers=2))


@pytest.mark.parametrize("name", ["unused", "alternating64", "replaced_buffers", "frozen_layer", "tied"])
def test_unusual_models(name: str, model, data, tmp_path: Path) -> None:
    """Parameters with fewer updates than others, buffers that the model replaces, frozen and tied parameters."""
    kind = "signs64" if name.endswith("64") else "blob"
    whole = recipe(model(name), data(kind), train={"steps": 20}, checkpoint={"every_steps": 9},
                   parallel={"bucket_mb": 0.001})
    undisturbed = train(tmp_path / "whole", whole, workers=2)
    train(tmp_path / "half", merged(whole, {"train": {"steps": 9}}), workers=2)
    assert_same_weights(undisturbed, train(tmp_path / "half", whole, "--resume", "auto", workers=2))


@pytest.mark.parametrize("background", [True, False])
def test_saving_changes_nothing(background: bool, tmp_path: Path) -> None:
    without = recipe(train={"steps": 30}, parallel={"topology": "ring"})
    with_ = merged(without, {"checkpoint": {"every_steps": 1, "background": background}})
    assert_same_run(train(tmp_path / "without", without, workers=2), train(tmp_path / "with", with_, workers=2))


# ---- another number of workers --------------------------------------------------------------------------------------

def test_other_numbers_of_workers(tmp_path: Path) -> None:
    """4 -> 2 -> 3 -> 4 workers: each goes on exactly where the last one came in the data, and learns on."""
    def until(steps: int) -> dict:
        return recipe(train={"steps": steps}, data={"batch_size": 10}, checkpoint={"every_steps": 1000},
                      eval={"every_steps": 1000}, parallel={"topology": "ring"})

    run = train(tmp_path, until(30), workers=4)
    consumed, evaluations = 30 * 40, [run.evaluation]
    assert run.evaluation["epoch"] == 30 / 36
    for steps, workers, before in ((50, 2, 4), (70, 3, 2), (100, 4, 3)):
        run = train(tmp_path, until(steps), "--resume", "auto", workers=workers)
        assert (f"the checkpoint is of {before} workers, this run has {workers}: all of them start from the average"
                in run.ended[0].out)
        evaluations.append(run.evaluation)
        manifest = json.loads((run.checkpoint(steps) / "manifest.json").read_text())
        for _ in range(manifest["step"] - evaluations[-2]["step"]):
            if 1442 % 10000 - consumed % 10000 < 10 * workers:  # the rest of an epoch is dropped
                consumed += 10000 - consumed % 10000
            consumed += 10 * workers
        rest = 1442 - consumed % 10000
        assert [manifest["epoch"], manifest["consumed"]] == ([consumed // 10000, consumed % 10000]
                                                             if rest >= 10 * workers else [consumed // 10000 + 1, 0])
        assert manifest["world_size"] == workers
    assert [line["step"] for line in run.lines("train")] == list(range(1, 101))
    losses = [evaluation["loss"] for evaluation in evaluations]
    assert losses[-1] < 0.7 * losses[0]


def test_all_start_from_the_average(tmp_path: Path) -> None:
    """The first evaluation of three workers that go on, at a vanishing learning rate, is that of the two before."""
    run = train(tmp_path, recipe(train={"steps": 20}, checkpoint={"every_steps": 20}, eval={"every_steps": 20}), workers=2)
    before = run.evaluation
    still = recipe(train={"steps": 21}, optimizer={"lr": 1e-30}, checkpoint={"every_steps": 21}, eval={"every_steps": 21})
    after = train(tmp_path, still, "--resume", "auto", workers=3).evaluation
    assert after["loss"] == pytest.approx(before["loss"], rel=1e-6)  # one rounding of each weight
    assert before["consensus_distance"] > 1e-4 and after["consensus_distance"] < 1e-5


def test_epochs_are_counted_anew(tmp_path: Path) -> None:
    """2 epochs: what is left of the first one, and all of the second, in the updates of the new number of workers."""
    def run(workers: int, *flags: object, **changes: object) -> Run:
        epochs = recipe(train={"steps": None, "epochs": 2}, data={"batch_size": 10}, checkpoint={"every_steps": 30}, **changes)
        return train(tmp_path, epochs, *flags, workers=workers)

    train(tmp_path, recipe(train={"steps": 30}, data={"batch_size": 10}, checkpoint={"every_steps": 30}), workers=4)
    end = run(2, "--resume", "auto").metrics[-1]
    assert end["kind"] == "end" and end["step"] == 30 + (1442 - 1200) // 20 + 1442 // 20


# ---- what may change, and what not ----------------------------------------------------------------------------------

REFUSED = {
    "optimizer.name was adamw, is sgd": {"optimizer": {"name": "sgd"}},
    "parallel.topology was complete, is ring": {"parallel": {"topology": "ring"}},
    "data.batch_size was 8, is 9": {"data": {"batch_size": 9}},
    "train.grad_accumulation was 1, is 2": {"train": {"grad_accumulation": 2}},
    "seed was 0, is 1": {"seed": 1},
    "data.shuffle was true, is false": {"data": {"shuffle": False}},
    "data.sampling was null, is {weights: class_balanced, replacement: true}":
        {"data": {"sampling": {"weights": "class_balanced"}}},
    "parameter ": {"model": {"path": str(DIGITS_CNN)}},
    "the number of samples of data.train was 1442, is 355":
        {"data": {"train": {"format": "builtin", "name": "digits", "split": "test"}}},
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two workers, checkpoints after steps 5 and 10."""
    return train(tmp_path_factory.mktemp("saved"), recipe(train={"steps": 10}, checkpoint={"every_steps": 5}), workers=2)


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str, saved: Run, tmp_path: Path) -> None:
    other = recipe(**merged({"train": {"steps": 20}}, REFUSED[what]))
    message = error_message(attempt(tmp_path, other, "--resume", saved.checkpoint(10), workers=2))
    assert "the checkpoint of step 10 cannot be continued with this recipe" in message and what in message, message
    assert not (tmp_path / "run").exists()


def test_other_accum_iter(tmp_path: Path) -> None:
    accum = recipe(optimizer={"name": "accum_adam", "accum_iter": 4}, checkpoint={"every_steps": 12})
    train(tmp_path, accum)
    other = merged(accum, {"optimizer": {"accum_iter": 5}, "train": {"steps": 20}})
    message = error_message(attempt(tmp_path, other, "--resume", "auto"))
    assert "optimizer.accum_iter was 4, is 5" in message


def test_what_changes_is_said(saved: Run, tmp_path: Path) -> None:
    other = recipe(train={"steps": 20}, optimizer={"lr": 0.5, "accum_iter": 7}, name="renamed",
                   log={"every_steps": 2}, parallel={"timeout_s": 7}, data={"prefetch": 1})
    out = train(tmp_path, other, "--resume", saved.checkpoint(10), workers=2).ended[0].out
    said = [line.removeprefix("changed since: ") for line in out.splitlines() if line.startswith("changed since")]
    assert said == ["train.steps was 10, is 20", "optimizer.lr was 0.001, is 0.5", "optimizer.accum_iter was 4, is 7",
                    "checkpoint.every_steps was 5, is null"]


FALLING = {"schedule": {"name": "cosine_warmup", "warmup_steps": 2}, "log": {"every_steps": 1}}


@pytest.fixture(scope="module")
def falling(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("falling"), recipe(train={"steps": 20}, checkpoint={"every_steps": 10}, **FALLING), workers=2)


@pytest.mark.parametrize(("changes", "workers"), [({"train": {"steps": 30}}, 2), ({"optimizer": {"lr": 0.5}}, 2),
                                                  ({"optimizer": {"lr_scaling": "sqrt"}}, 3), ({"schedule": {"name": "linear"}}, 2)])
def test_what_the_schedule_makes_of_it_is_said(changes: dict, workers: int, falling: Run, tmp_path: Path) -> None:
    """The rates in the line are those of the steps, as metrics.jsonl has them."""
    other = recipe(**merged({"train": {"steps": 20}, **FALLING}, changes))
    run = train(tmp_path, other, "--resume", falling.checkpoint(10), workers=workers)
    said, = re.findall(r"the learning rate goes on as the schedule has it in a run of (\d+) steps: (\S+) in step 11, (\S+) in step (\d+) "
                       r"\((.*); before: (.*)\)", run.ended[0].out)
    rates = {line["step"]: line["lr"] for line in run.lines("train")}
    steps = int(said[0])
    assert said[3] == said[0] and steps == max(rates)
    assert (said[1], said[2]) == (f"{rates[11]:.3g}", f"{rates[steps]:.3g}")
    assert said[5].startswith("cosine_warmup, lr 0.001, ") and said[4] != said[5]


@pytest.mark.parametrize(("kept", "steps"), [(FALLING, 20), ({"schedule": {"name": "constant"}}, 40)])
def test_nothing_is_said_of_a_schedule_that_stays(kept: dict, steps: int, falling: Run, tmp_path: Path) -> None:
    start = falling if kept is FALLING else train(tmp_path, recipe(train={"steps": 10}, checkpoint={"every_steps": 10}, **kept))
    again = train(tmp_path / "again", recipe(train={"steps": steps}, **kept), "--resume", start.checkpoint(10), workers=2)
    assert "the learning rate goes on" not in again.ended[0].out


def test_frozen_parameters_may_change(tmp_path: Path) -> None:
    """What trains anew starts with an empty optimizer state."""
    first = recipe(model={"freeze": ["*bias"]}, checkpoint={"every_steps": 12})
    train(tmp_path, first, workers=2)
    for freeze, steps in (([], 20), (["*bias"], 28)):
        out = train(tmp_path, merged(first, {"model": {"freeze": freeze}, "train": {"steps": steps}}), "--resume", "auto",
                    workers=2 if freeze else 3).ended[0].out
        assert "changed since: model.freeze was" in out


def test_parameters_that_are_frozen_now_are_the_same_everywhere(tmp_path: Path) -> None:
    """Workers exchange only what trains: their copies of what trained before would stay apart for good."""
    first = recipe(parallel={"topology": "ring"}, optimizer={"lr": 0.01}, checkpoint={"every_steps": 12})
    train(tmp_path, first, workers=4)
    frozen = merged(first, {"model": {"freeze": ["*weight"]}, "train": {"steps": 20}, "eval": {"every_steps": 20}})
    run = train(tmp_path, frozen, "--resume", "auto", workers=4)
    replicas = [read_safetensors(run.checkpoint(20) / f"rank-{rank:04}.safetensors") for rank in range(4)]
    weights = [name for name in replicas[0] if name.startswith("model.") and name.endswith("weight")]
    assert weights
    for name in weights:
        assert all(np.array_equal(replicas[0][name], other[name]) for other in replicas[1:])
        assert np.array_equal(replicas[0][name], run.weights[name.removeprefix("model.")])


def test_a_run_s_folder_stands_for_its_newest_checkpoint(tmp_path: Path) -> None:
    own = recipe(train={"steps": 6}, checkpoint={"every_steps": 2})
    whole = train(tmp_path / "whole", own)
    run = train(tmp_path / "part", own, "--set", "train.steps=4")
    for number, folder in enumerate((run.folder, f"{run.folder}/", run.folder / "checkpoints")):
        resumed = train(tmp_path / str(number), own, "--resume", folder)
        assert_same_weights(resumed, whole)
        ended, = attempt(tmp_path / "eval", own, "--eval-only", "--checkpoint", folder)
        assert ended.code == 0 and "step-00000004" in ended.out, ended.err
