"""Moving averages of weights (optimizer.ema): PyTorch's AveragedModel, what is evaluated and exported, checkpoints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from runs import Run, assert_same_run, assert_says, merged, recipe, refused, train
from tensors import differing, read_safetensors, write_safetensors

STEPS, BATCH, DECAY = 12, 8, 0.8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ema")
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    torch.jit.script(net).save(str(folder / "net.pt"))
    random = np.random.default_rng(4)
    write_safetensors(folder / "data.safetensors", {
        "x": random.normal(size=(STEPS * BATCH, 6)).astype(np.float32), "y": random.integers(0, 3, STEPS * BATCH)})
    return folder


def settings(folder: Path, **changes: object) -> dict:
    own = recipe(folder / "net.pt", folder / "data.safetensors", data={"shuffle": False, "batch_size": BATCH},
                 train={"steps": STEPS}, optimizer={"name": "sgd", "lr": 0.1, "ema": DECAY}, eval={"every_steps": 4},
                 checkpoint={"every_steps": 4, "keep": 9})
    return merged(own, changes)


def parameters_in(file: Path, prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): value for name, value in read_safetensors(file).items() if name.startswith(prefix)}


def replicas(run: Run, step: int, prefix: str) -> list[dict[str, np.ndarray]]:
    return [parameters_in(file, prefix) for file in sorted(run.checkpoint(step).glob("rank-*.safetensors"))]


def test_is_pytorchs(folder: Path, tmp_path: Path) -> None:
    run = train(tmp_path, settings(folder))
    net = torch.jit.load(str(folder / "net.pt")).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    averaged = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(DECAY))
    data = {name: torch.tensor(value) for name, value in read_safetensors(folder / "data.safetensors").items()}
    losses = []
    for x, y in zip(data["x"].split(BATCH), data["y"].split(BATCH)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
        averaged.update_parameters(net)
        averaged.eval()
        with torch.no_grad():
            losses.append(nn.functional.cross_entropy(averaged(data["x"]), data["y"]).item())
        net.train()
    # Some 12 steps of float32, summed in another order.
    np.testing.assert_allclose([line["loss"] for line in run.lines("eval")], losses[3::4], rtol=1e-5)
    for name, value in averaged.module.state_dict().items():
        np.testing.assert_allclose(run.weights[name], value.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("method", ["gossip", "all_reduce"])
def test_workers_average_their_averages(method: str, folder: Path, tmp_path: Path) -> None:
    own = settings(folder, parallel={"method": method, "topology": "ring"}, data={"batch_size": 2})
    run = train(tmp_path / "ema", own, workers=3)
    averages = replicas(run, STEPS, "ema.")
    if method == "all_reduce":  # parameters are the same on all workers, and stored once
        averages = [each for each in averages if each]
        assert len(averages) == 1
    weights = [each for each in replicas(run, STEPS, "model.") if each]
    assert averages[0].keys() == weights[0].keys()
    for name in averages[0]:
        mean = np.mean([each[name].astype(np.float64) for each in averages], axis=0)
        np.testing.assert_allclose(run.weights[name], mean, rtol=1e-6, atol=1e-8)  # a sum of three in float32
    assert np.abs(run.weights["3.weight"] - np.mean([each["3.weight"] for each in weights], axis=0)).max() > 1e-3
    without = train(tmp_path / "without", merged(own, {"optimizer": {"ema": None}}), workers=3)
    assert [line["loss"] for line in run.lines("train")] == [line["loss"] for line in without.lines("train")]
    assert [line["consensus_distance"] for line in run.lines("eval")] == [line["consensus_distance"] for line in without.lines("eval")]
    assert run.evaluation["loss"] != without.evaluation["loss"]


def test_resumes_bit_for_bit(folder: Path, tmp_path: Path) -> None:
    own = settings(folder, data={"batch_size": 4})
    wanted = train(tmp_path / "wanted", own, workers=2)
    train(tmp_path / "parts", own, "--set", "train.steps=8", workers=2)
    resumed = train(tmp_path / "parts", own, "--resume", "auto", workers=2)
    assert_same_run(resumed, wanted)
    assert replicas(resumed, STEPS, "ema.")[0].keys() == {"0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias"}
    fewer = train(tmp_path / "parts", own, "--resume", resumed.checkpoint(8))  # from the average, of averages too
    assert np.isfinite(fewer.evaluation["loss"])


def test_evaluation_and_export_take_it(folder: Path, tmp_path: Path) -> None:
    run = train(tmp_path, settings(folder, data={"batch_size": 4}), workers=2)
    config = ["--config", tmp_path / "recipe.yaml"]
    loss = run.evaluation["loss"]

    def evaluated(*flags: object) -> dict:
        from program import run_alone
        ended = run_alone(*config, "--eval-only", *flags)
        assert ended.code == 0, ended.err
        return {"line": run.evaluation, "err": ended.err}

    assert evaluated()["line"]["loss"] == pytest.approx(loss, rel=1e-6)  # float64 sums rounded, one worker against two
    plain = evaluated("--set", "optimizer.ema=null")
    assert abs(plain["line"]["loss"] - loss) > 1e-3
    from program import run_alone
    assert run_alone(*config, "--export", tmp_path / "e.safetensors").code == 0
    exported = read_safetensors(tmp_path / "e.safetensors")
    for name, value in run.weights.items():
        np.testing.assert_allclose(exported[name], value, rtol=1e-6, atol=1e-8)  # as above


def test_a_checkpoint_without_it(folder: Path, tmp_path: Path) -> None:
    """Evaluation says so; a run that goes on begins with the weights."""
    train(tmp_path, settings(folder, optimizer={"ema": None}, train={"steps": 8}))
    from program import run_alone
    ended = run_alone("--config", tmp_path / "recipe.yaml", "--eval-only", "--set", "optimizer.ema=0.5")
    assert ended.code == 0
    assert_says(ended.err, "optimizer.ema", "has no moving average")
    run = train(tmp_path, settings(folder), "--resume", "auto")
    assert_says(run.ended[0].out, "changed since: optimizer.ema")
    before = parameters_in(run.checkpoint(8) / "rank-0000.safetensors", "model.")
    after = replicas(run, STEPS, "ema.")[0]
    weights = replicas(run, STEPS, "model.")[0]
    assert after.keys() == weights.keys()
    for name, value in after.items():
        span = np.abs(weights[name] - before[name]).max()
        assert np.abs(value - before[name]).max() < 0.9 * span + 1e-6, name


@pytest.mark.parametrize("workers", [2, 1])
def test_parameters_that_were_frozen_begin_with_their_weights(workers: int, folder: Path, tmp_path: Path) -> None:
    """Not with the model file's: they were trained before. With another number of workers: with the average's."""
    steady = settings(folder, data={"batch_size": 2}, optimizer={"ema": 0.9})
    train(tmp_path, steady, "--set", "train.steps=4", "--set", "optimizer.ema=null", workers=2)
    frozen = train(tmp_path, steady, "--set", "train.steps=8", "--set", "model.freeze=[0.*]", "--resume", "auto", workers=2)
    assert "0.weight" not in replicas(frozen, 8, "ema.")[0] and "3.weight" in replicas(frozen, 8, "ema.")[0]
    before = np.mean([each["0.weight"] for each in replicas(frozen, 8, "model.")], axis=0)
    step = train(tmp_path, steady, "--set", "train.steps=9", "--set", "checkpoint.every_steps=1", "--resume", "auto", workers=workers)
    after, weights = replicas(step, 9, "ema."), replicas(step, 9, "model.")
    for average, own in zip(after, weights):
        # 0.9 of the start and 0.1 of the weights after an update, but for rounding.
        np.testing.assert_allclose(average["0.weight"], 0.9 * before + 0.1 * own["0.weight"], rtol=1e-5, atol=1e-7)
        assert np.abs(own["0.weight"] - before).max() > 1e-4


def test_evaluations_change_nothing(folder: Path, tmp_path: Path) -> None:
    often = train(tmp_path / "often", settings(folder, eval={"every_steps": 1}, data={"batch_size": 4}), workers=2)
    once = train(tmp_path / "once", settings(folder, eval={"every_steps": 12}, data={"batch_size": 4}), workers=2)
    assert differing(often.weights, once.weights) == []


@pytest.mark.parametrize("value", [1, -0.1, "on"])
def test_mistakes(value: object, folder: Path, tmp_path: Path) -> None:
    assert_says(refused(tmp_path, settings(folder, optimizer={"ema": value})), "optimizer.ema", "a number in [0, 1)")
