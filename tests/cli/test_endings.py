"""How runs end: early (train.stop), with the best model (keep_best), after a last train line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from program import run_alone
from runs import Run, assert_same_run, assert_same_weights, assert_says, attempt, error_message, merged, recipe, refused, train
from tensors import differing, read_safetensors, write_safetensors

# The loss of the evaluations falls, then rises: 12 samples to learn by heart, others to be tested with.
EVERY, STEPS = 5, 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("endings")
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    torch.jit.script(net).save(str(folder / "net.pt"))
    random = np.random.default_rng(2)
    for name, samples in (("train", 12), ("test", 60)):
        x = random.normal(size=(samples, 8)).astype(np.float32)
        noisy = np.where(random.random(samples) < 0.4, random.integers(0, 4, samples), np.argmax(x[:, :4], 1))
        write_safetensors(folder / f"{name}.safetensors", {"x": x, "y": noisy.astype(np.int64)})
    return folder


def settings(folder: Path, **changes: object) -> dict:
    source = {name: {"format": "safetensors", "path": str(folder / f"{name}.safetensors")} for name in ("train", "test")}
    own = recipe(folder / "net.pt", data={"train": source["train"], "eval": source["test"], "batch_size": 2}, train={"steps": STEPS},
                 optimizer={"name": "adam", "lr": 0.02}, eval={"every_steps": EVERY, "metrics": ["accuracy"]},
                 checkpoint={"every_steps": EVERY, "keep": 2}, log={"every_steps": 10})
    return merged(own, changes)


def stop_after(losses: list[float], patience: int, min_delta: float = 0) -> int:
    """The number of evaluations after which PyTorch Lightning's EarlyStopping ends, by its definition."""
    best, waits = np.inf, 0
    for number, loss in enumerate(losses, 1):
        best, waits = (loss, 0) if loss + min_delta < best else (best, waits + 1)
        if waits >= patience:
            return number
    raise AssertionError("the run would not end early")


@pytest.fixture(scope="module")
def whole(folder: Path) -> Run:
    """Without an early end, and all of its checkpoints."""
    return train(folder / "whole", settings(folder, checkpoint={"keep": 99}), workers=2)


STOP = {"metric": "loss", "patience": 3, "min_delta": 0.001}


@pytest.fixture(scope="module")
def stopped(folder: Path) -> Run:
    return train(folder / "stopped", settings(folder, train={"stop": STOP}), workers=2)


def test_ends_where_it_gets_no_better(whole: Run, stopped: Run) -> None:
    step = EVERY * stop_after([line["loss"] for line in whole.lines("eval")], 3, 0.001)
    assert 10 < step < STEPS
    end = stopped.lines("end")[0]
    assert (end["status"], end["step"], end["stopped_early"]) == ("completed", step, True)
    assert [line["step"] for line in stopped.lines("eval")][-1] == step
    assert stopped.checkpoints[-1] == step
    # Up to there it is the run that does not end early.
    until = [line for line in whole.metrics_without_times if line["step"] <= step]
    assert stopped.metrics_without_times[:-1] == until
    for file in ("rank-0000.safetensors", "rank-0001.safetensors"):
        assert (stopped.checkpoint(step) / file).read_bytes() == (whole.checkpoint(step) / file).read_bytes()
    best = min(line["loss"] for line in stopped.lines("eval"))
    assert_says(stopped.ended[0].out, "stopped", f"early: loss has not got better than {best!r}, of step ", "in 3 evaluations")


def test_ends_there_after_a_resume(folder: Path, stopped: Run) -> None:
    """Cut short in the middle of its patience."""
    step = stopped.lines("end")[0]["step"]
    own = settings(folder, train={"stop": STOP})
    train(folder / "parts", own, "--set", f"train.steps={step - EVERY}", workers=2)
    resumed = train(folder / "parts", own, "--resume", "auto", workers=2)
    assert_same_run(resumed, stopped)
    again = train(folder / "parts", own, "--resume", "auto", workers=2)
    assert_says(again.ended[0].out, "is complete", f"step {step}")
    longer = train(folder / "parts", settings(folder, train={"stop": {**STOP, "patience": 4}, "steps": step + EVERY}),
                   "--resume", "auto", workers=2)
    assert longer.lines("end")[-1]["step"] == step + EVERY


def test_without_checkpoints(folder: Path) -> None:
    own = settings(folder, train={"stop": STOP}, checkpoint={"every_steps": None})
    run = train(folder / "without", own)
    assert run.checkpoints == [] and run.lines("end")[0]["stopped_early"]
    assert_says(train(folder / "without", own, "--resume", "auto").ended[0].out, "is complete")


def test_stops_by_what_is_to_rise(folder: Path) -> None:
    run = train(folder / "accuracy", settings(folder, train={"stop": {"metric": "accuracy", "patience": 2}}))
    accuracies = [line["accuracy"] for line in run.lines("eval")]
    assert stop_after([-a for a in accuracies], 2) == len(accuracies)


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_the_best_model(metric: str, folder: Path, whole: Run) -> None:
    """Of equals the later one; what --checkpoint best finds is what model-best.* holds."""
    run = train(folder / f"best-{metric}", settings(folder, checkpoint={"keep_best": metric}), workers=2)
    assert_same_weights(run, whole)
    values = [(line[metric] if metric == "accuracy" else -line["loss"], line["step"]) for line in whole.lines("eval")]
    best = max(values)[1]
    assert best < STEPS and best in run.checkpoints and len(run.checkpoints) == 3
    weights = read_safetensors(run.folder / "model-best.safetensors")
    replicas = [read_safetensors(run.checkpoint(best) / f"rank-000{rank}.safetensors") for rank in range(2)]
    for name, value in weights.items():
        mean = np.mean([each[f"model.{name}"].astype(np.float64) for each in replicas], axis=0)
        assert np.array_equal(value, mean.astype(np.float32)), name
    module = torch.jit.load(str(run.folder / "model-best.pt"))
    assert not module.training
    assert differing({name: tensor.numpy() for name, tensor in module.state_dict().items()}, weights) == []
    assert_says(run.ended[0].out, "model-best.pt", f"({metric} ", f"at step {best})")
    config = folder / f"best-{metric}" / "recipe.yaml"
    exported = folder / f"{metric}.safetensors"
    ended = run_alone("--config", config, "--checkpoint", "best", "--eval-only", "--export", exported)
    assert ended.code == 0, ended.err
    assert run.evaluation["step"] == best
    # A run averages in float32, whoever reads a checkpoint in float64.
    losses = {line["step"]: line["loss"] for line in whole.lines("eval")}
    assert run.evaluation["loss"] == pytest.approx(losses[best], rel=1e-6)
    assert differing(read_safetensors(exported), weights) == []


def test_no_best_without_its_metric(folder: Path, whole: Run) -> None:
    config = ["--config", folder / "whole" / "recipe.yaml"]
    message = error_message(run_alone(*config, "--checkpoint", "best", "--eval-only"))
    assert_says(message, "checkpoint.keep_best", "null", "--set checkpoint.keep_best=loss")
    assert run_alone(*config, "--checkpoint", "best", "--eval-only", "--set", "checkpoint.keep_best=loss").code == 0
    nothing = ["--set", "checkpoint.keep_best=loss", "--set", f"output={folder / 'nothing'}"]
    assert_says(error_message(run_alone(*config, "--checkpoint", "best", "--eval-only", *nothing)), "no checkpoint in", "by loss")
    # --resume takes folders: there is none of that name.
    assert_says(error_message(run_alone(*config, "--resume", "best", *nothing)), "best")


def test_a_damaged_best_is_an_error(folder: Path) -> None:
    run = train(folder / "damaged", settings(folder, train={"steps": 40}, checkpoint={"keep_best": "loss", "keep": 9}))
    losses = {line["step"]: line["loss"] for line in run.lines("eval")}
    best = min(reversed(losses), key=losses.get)
    file = run.checkpoint(best) / "rank-0000.safetensors"
    file.write_bytes(file.read_bytes()[:-3])
    message = error_message(run_alone("--config", folder / "damaged" / "recipe.yaml", "--checkpoint", "best", "--eval-only"), 4)
    assert_says(message, "the best checkpoint by loss", file)


NO_EVALUATION = {"every_steps": None, "every_epochs": None}


@pytest.mark.parametrize(("changes", "parts"), [
    ({"train": {"stop": STOP}, "data": {"eval": None}}, ["train.stop", "data.eval is null"]),
    ({"checkpoint": {"keep_best": "loss"}, "data": {"eval": None}}, ["checkpoint.keep_best", "data.eval is null"]),
    ({"schedule": {"name": "plateau"}, "data": {"eval": None}}, ["schedule.name", "data.eval is null"]),
    ({"checkpoint": {"keep_best": "loss"}, "eval": NO_EVALUATION}, ["checkpoint.keep_best needs", "eval.every_steps and eval.every_epochs are null"]),
    ({"train": {"stop": STOP}, "eval": NO_EVALUATION}, ["train.stop needs", "eval.every_steps and eval.every_epochs are null"]),
    ({"schedule": {"name": "plateau"}, "eval": NO_EVALUATION}, ["schedule.plateau needs", "eval.every_steps and eval.every_epochs are null"]),
    ({"schedule": {"name": "plateau", "metric": "top5"}}, ["schedule.metric: evaluations do not measure top5", "loss, accuracy"]),
    ({"checkpoint": {"keep_best": "loss", "every_steps": None}}, ["checkpoint.keep_best", "no checkpoints are saved"]),
    ({"train": {"stop": {"metric": "top5"}}}, ["train.stop.metric", "do not measure top5", "loss, accuracy"]),
    ({"train": {"stop": {"metric": "speed"}}}, ["train.stop.metric", "expected one of loss, accuracy", '"speed"']),
    ({"train": {"stop": {"patience": 0}}}, ["train.stop.patience", ">= 1"]),
    ({"train": {"stop": {"patients": 3}}}, ["train.stop.patients", "did you mean 'patience'"]),
    ({"train": {"stop": "loss"}}, ["train.stop", 'expected a mapping of metric, patience, min_delta, got "loss"']),
])
def test_mistakes(changes: dict, parts: list[str], folder: Path, tmp_path: Path) -> None:
    assert_says(refused(tmp_path, settings(folder, **changes)), *parts)


def test_loss_mean_is_the_mean(folder: Path, tmp_path: Path) -> None:
    """Over the steps since the line before, also where an end and a resume lie between."""
    own = settings(folder, train={"steps": 27}, checkpoint={"every_steps": 4, "keep": 9})
    each = train(tmp_path / "each", merged(own, {"log": {"every_steps": 1}}), workers=2)
    run = train(tmp_path / "run", own, workers=2)
    assert [line["step"] for line in run.lines("train")] == [10, 20]
    for line, steps in zip(run.lines("train"), (slice(0, 10), slice(10, 20))):
        assert line["loss"] == each.losses[steps][-1]
        assert line["loss_mean"] == pytest.approx(np.mean(each.losses[steps]), rel=1e-12)  # sums of 10 in another order
    assert all(line["loss_mean"] == line["loss"] for line in each.lines("train"))
    train(tmp_path / "parts", own, "--set", "train.steps=8", workers=2)
    assert [line["step"] for line in Run(tmp_path / "parts" / "run", []).lines("train")] == [8]
    resumed = train(tmp_path / "parts", own, "--resume", "auto", workers=2)
    trained = [line for line in resumed.metrics_without_times if line["kind"] == "train"]
    assert trained == [line for line in run.metrics_without_times if line["kind"] == "train"]


def test_a_short_run_has_a_line(folder: Path, tmp_path: Path) -> None:
    run = train(tmp_path / "short", settings(folder, train={"steps": 3}))
    assert [line["step"] for line in run.lines("train")] == [3]
    early = settings(folder, train={"stop": {"metric": "accuracy", "patience": 1, "min_delta": 1}}, eval={"every_steps": 2},
                     checkpoint={"every_steps": 2})
    stopped = train(tmp_path / "early", early, workers=2)
    assert stopped.lines("end")[0]["step"] == 4
    assert [line["step"] for line in stopped.lines("train")] == [4]


def test_early_end_without_checkpoints(folder: Path, tmp_path: Path) -> None:
    """It is the run's end by the rule that it had; by another the run is made again."""
    own = settings(folder, checkpoint={"every_steps": None}, train={"stop": {"patience": 1}})
    run = train(tmp_path, own)
    assert run.lines("end")[0]["stopped_early"] and run.checkpoints == []
    assert_says(train(tmp_path, own, "--resume", "auto").ended[0].out, "is complete", "nothing is left to do",
                "train.stop ended it early", "train.stop=null")
    longer = train(tmp_path, own, "--set", "train.stop=null", "--resume", "auto")
    assert longer.lines("end")[0]["step"] == STEPS


def test_best_by_what_is_never_a_number(folder: Path, tmp_path: Path) -> None:
    """The AUC of samples that are all of one class: the run has its end and its other files."""
    test = read_safetensors(folder / "test.safetensors")
    write_safetensors(folder / "one_class.safetensors", {"x": test["x"], "y": np.zeros_like(test["y"])})
    own = settings(folder, data={"eval": {"format": "safetensors", "path": str(folder / "one_class.safetensors")}}, train={"steps": 10},
                   eval={"metrics": ["auc"]}, checkpoint={"keep_best": "auc"})
    run = train(tmp_path, own, workers=2)
    assert run.lines("end")[0]["status"] == "completed"
    assert_says(run.ended[0].err, "warning: checkpoint.keep_best: there is no best model: no checkpoint in ", "evaluation by auc")
    assert (run.folder / "model.pt").exists() and not (run.folder / "model-best.pt").exists()
    assert_says(train(tmp_path, own, "--resume", "auto", workers=2).ended[0].out, "nothing is left to do")


def test_the_best_is_not_looked_for_by_another_loss(folder: Path, tmp_path: Path) -> None:
    """Focal's numbers are lower than those of cross_entropy, whatever the model."""
    own = settings(folder, train={"steps": 20}, model={"loss": "focal"}, checkpoint={"keep": 9, "keep_best": "loss"})
    train(tmp_path, own)
    run = train(tmp_path, merged(own, {"model": {"loss": "cross_entropy"}, "train": {"steps": 40}}), "--resume", "auto")
    losses = {line["step"]: line["loss"] for line in run.lines("eval")}
    later = {step: loss for step, loss in losses.items() if step > 20}
    best = min(later, key=lambda step: (later[step], -step))
    assert min(losses.values()) < later[best]
    assert_says(run.ended[0].out, "model-best.pt", f"at step {best})")
    assert_says(run.ended[0].err, "warning: the best checkpoint is not looked for among 4 checkpoints",
                "another loss, target or data.eval")


@pytest.mark.parametrize("change", [
    {"model": {"target": "z"}},
    {"data": {"transforms": [{"normalize": {"field": "y", "mean": [1.0], "std": [10.0]}}]}}], ids=["another", "transformed"])
def test_the_best_is_not_looked_for_by_another_target(change: dict, folder: Path, tmp_path: Path) -> None:
    """A target of a tenth of the size has a lower loss, whatever the model."""
    rows = read_safetensors(folder / "train.safetensors")
    y = rows["x"][:, :4] + 1
    write_safetensors(folder / "two.safetensors", {"x": rows["x"], "y": y, "z": y / 10})
    source = {"format": "safetensors", "path": str(folder / "two.safetensors")}
    own = settings(folder, data={"train": source, "eval": source}, model={"loss": "mse", "target": "y"},
                   eval={"metrics": None}, train={"steps": 20, "stop": {"patience": 9}}, optimizer={"lr": 0.002},
                   checkpoint={"keep": 9, "keep_best": "loss"})
    train(tmp_path, own)
    run = train(tmp_path, merged(own, {**change, "train": {"steps": 40}}), "--resume", "auto")
    assert_says(run.ended[0].err, "warning: the best checkpoint is not looked for among 4 checkpoints",
                "warning: train.stop: the best value until now cannot be compared")


def test_a_best_that_is_damaged_ends_no_run(folder: Path, tmp_path: Path) -> None:
    own = settings(folder, train={"steps": 40}, checkpoint={"keep_best": "loss", "keep": 9})
    run = train(tmp_path, own)
    losses = {line["step"]: line["loss"] for line in run.lines("eval")}
    best = min(reversed(losses), key=losses.get)
    assert best < 40
    file = run.checkpoint(best) / "rank-0000.safetensors"
    file.write_bytes(file.read_bytes()[:-3])
    longer = train(tmp_path, own, "--set", "train.steps=42", "--set", "optimizer.lr=1e-12", "--resume", "auto")
    assert_says(longer.ended[0].err, "warning: checkpoint.keep_best: there is no best model: the best checkpoint by loss", file)
    assert longer.lines("end")[-1]["status"] == "completed"


def test_early_end_by_another_metric(folder: Path, tmp_path: Path) -> None:
    """What was best by the one says nothing of the other."""
    own = settings(folder, train={"steps": 30, "stop": {"patience": 99}}, eval={"metrics": ["perplexity"]})
    train(tmp_path, own, workers=2)
    by_another = {"train": {"steps": 60, "stop": {"metric": "perplexity", "patience": 6}}}
    run = train(tmp_path, merged(own, by_another), "--resume", "auto", workers=2)
    assert_says(run.ended[0].err, "warning: train.stop: the best value until now cannot be compared", "counting begins again")
    end = run.lines("end")[-1]  # six evaluations of perplexity, which is above every loss; the first is the best until then
    assert end["step"] == 60 and "stopped_early" not in end
