"""Parameter groups, frozen parameters, clipping, custom topologies: the mistakes one can make, and what a run says."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from runs import DIGITS_MLP, OPTIMIZERS, assert_says, attempt, error_message, recipe, refused, train
from tensors import differing, read_safetensors, write_safetensors


def phases(*edges: list[tuple[list[int], float]]) -> dict:
    return {"topology": {"phases": [[{"ranks": ranks, "weight": weight} for ranks, weight in phase] for phase in edges]}}


# ---- globs over parameter names --------------------------------------------------------------------------------------

@pytest.mark.parametrize(("changes", "key"), [
    ({"model": {"freeze": ["fc9.*"]}}, "model.freeze"),
    ({"optimizer": {"param_groups": [{"match": "fc9.*", "lr_scale": 0.1}]}}, "optimizer.param_groups"),
])
def test_glob_that_matches_nothing(changes: dict, key: str, tmp_path: Path) -> None:
    names = list(read_start(tmp_path))
    assert_says(refused(tmp_path / "a", recipe(**changes)), key, "'fc9.*' matches no parameter", names[0])


def read_start(tmp_path: Path) -> dict[str, np.ndarray]:
    """The tensors that training starts from."""
    import torch

    return {name: tensor.numpy() for name, tensor in torch.jit.load(str(DIGITS_MLP)).state_dict().items()}


def test_nearest_name(tmp_path: Path) -> None:
    name = list(read_start(tmp_path))[0]
    misspelled = name.replace("weight", "wieght")
    assert_says(refused(tmp_path / "a", recipe(model={"freeze": [misspelled]})), f"did you mean '{name}'?")


def test_everything_frozen(tmp_path: Path) -> None:
    assert_says(refused(tmp_path, recipe(model={"freeze": ["*"]})), "model.freeze", "nothing is left to train")


def test_frozen_parameters_stay(tmp_path: Path) -> None:
    start = read_start(tmp_path)
    frozen = [name for name in start if name.endswith("bias")]
    run = train(tmp_path, recipe(model={"freeze": ["*.bias"]}), workers=2)
    for name, tensor in run.weights.items():
        same = np.array_equal(tensor, start[name])
        assert same == (name in frozen), name


# ---- when weights are updated ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["stopped", "stopped_by_data"])
def test_in_backward_where_a_weight_is_needed_later(name: str, model, data, tmp_path: Path) -> None:
    own = recipe(model(name), data("blob"))
    message = refused(tmp_path / "refused", {**own, "parallel": {"update": "in_backward"}})
    assert_says(message, "parallel.update: after_backward")
    runs = [train(tmp_path / update, {**own, "parallel": {"update": update}}) for update in ("auto", "after_backward")]
    assert not differing(runs[0].weights, runs[1].weights)


def test_in_backward_with_a_global_clip(tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(parallel={"update": "in_backward", "grad_clip_norm": 1.0}))
    assert_says(message, "recipe.yaml:", "parallel.update", "after_backward", "grad_clip_scope: bucket")
    train(tmp_path / "bucket", recipe(parallel={"update": "in_backward", "grad_clip_norm": 1.0,
                                                "grad_clip_scope": "bucket"}))


def test_gradient_that_is_not_finite(tmp_path: Path) -> None:
    """The loss is finite, its gradient is not: sqrt at 0."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(64, 10)
            self.root = torch.nn.Parameter(torch.zeros(10))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x.flatten(1)) + (self.root * self.root).sqrt()

    file = tmp_path / "net.pt"
    torch.jit.script(Net()).save(str(file))
    ended = attempt(tmp_path / "a", recipe(file, parallel={"grad_clip_norm": 1.0}), workers=2)
    assert [e.code for e in ended] == [5, 5], ended
    text = "".join(e.err for e in ended)
    assert text.count("error:") == 1
    assert_says(text, "training diverged", "gradient of parameter 'root' in step 1 is not finite")


def test_grad_norm_is_logged_where_clipping_is_on(tmp_path: Path) -> None:
    """Before clipping, so the same in the first step whatever the limit is."""
    norms = []
    for limit in (0.01, 1e9):
        lines = train(tmp_path / str(limit), recipe(parallel={"grad_clip_norm": limit}), workers=2).lines("train")
        assert all(math.isfinite(line["grad_norm"]) for line in lines)
        norms.append(lines[0]["grad_norm"])
    assert norms[0] == norms[1]
    assert "grad_norm" not in train(tmp_path / "off", recipe()).lines("train")[0]


# ---- custom topologies ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("parallel", "texts"), [
    (phases([([0, 1], 0.5)], [([0], 1.0)]), ["phase 1", "rank 1 is in no edge"]),
    (phases([([0, 1], 0.5), ([1], 1.0)]), ["phase 0", "rank 1 twice"]),
    (phases([([0, 1, 2], 0.5)]), ["phase 0", "rank 2 does not exist", "2 workers"]),
    (phases([([0, 1, 99999999999], 0.5)]), ["phase 0", "does not exist"]),
])
def test_phases_that_are_no_partition(parallel: dict, texts: list[str], tmp_path: Path) -> None:
    assert_says(refused(tmp_path, recipe(parallel=parallel), workers=2), "parallel.topology", *texts)


@pytest.mark.parametrize("weight", [0, 1.5, -0.5])
def test_weight_out_of_range(weight: float, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(parallel=phases([([0], weight)])))
    assert_says(message, "recipe.yaml:", "parallel.topology", "weight")


def test_phases_that_do_not_connect_all(tmp_path: Path) -> None:
    run = train(tmp_path, recipe(parallel=phases([([0, 2], 0.5), ([1], 1.0)])), workers=3)
    warned = run.ended[0].err
    assert_says(warned, "do not connect all workers", "{0 2} {1}")
    whole = train(tmp_path / "whole", recipe(parallel=phases([([0, 2], 0.5), ([1], 1.0)], [([0, 1, 2], 0.4)])), workers=3)
    assert "connect" not in whole.ended[0].err


def test_accumulation_needs_data_for_it(tmp_path: Path) -> None:
    message = error_message(attempt(tmp_path, recipe(train={"grad_accumulation": 1000})))
    assert_says(message, "8000", "1442")


# ---- batches in which no target counts -------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_ignored_batch_is_a_step_without_gradient(name: str, tmp_path: Path) -> None:
    """As docs/recipe.md says: loss 0 and gradient 0, while what the optimizer remembers and weight decay go on. PyTorch's
    optimizer is given zeros for that step, as its loss would be 0 divided by 0."""
    import torch
    import torch.nn.functional as F

    steps, batch_size, ignored = 6, 8, 3
    rng = np.random.default_rng(0)
    x = rng.normal(size=(steps * batch_size, 1, 8, 8)).astype(np.float32)
    y = rng.integers(0, 10, steps * batch_size)
    y[(ignored - 1) * batch_size:ignored * batch_size] = -100
    write_safetensors(tmp_path / "data.safetensors", {"x": x, "y": y})
    options = {"lr": 0.01, "weight_decay": 0.1} | ({"momentum": 0.9} if name == "sgd" else {})
    run = train(tmp_path / "run", recipe(
        DIGITS_MLP, tmp_path / "data.safetensors", data={"shuffle": False}, train={"steps": steps},
        optimizer={"name": name, **options, "param_groups": [{"match": "*"}]}))
    assert run.losses[ignored - 1] == 0

    net = torch.jit.load(str(DIGITS_MLP)).train()
    optimizer = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[name](net.parameters(), **options)
    moved = 0.0
    for t in range(1, steps + 1):
        rows = slice((t - 1) * batch_size, t * batch_size)
        before = [p.detach().clone() for p in net.parameters()]
        if t == ignored:
            for p in net.parameters():
                p.grad = torch.zeros_like(p)
        else:
            optimizer.zero_grad()
            F.cross_entropy(net(torch.from_numpy(x[rows])), torch.from_numpy(y[rows])).backward()
        optimizer.step()
        if t == ignored:
            moved = max(float((p.detach() - b).abs().max()) for p, b in zip(net.parameters(), before))
    assert moved > 1e-4  # it does move weights
    for key, tensor in net.state_dict().items():
        # Float32 rounding of six updates of 0.01 each.
        np.testing.assert_allclose(run.weights[key], tensor.numpy(), rtol=0, atol=2e-6, err_msg=key)


# ---- every optimizer -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_learns_and_exports(optimizer: str, tmp_path: Path) -> None:
    """Resuming is tests/cli/test_resume.py's."""
    settings = recipe(optimizer=OPTIMIZERS[optimizer], train={"steps": 60}, checkpoint={"every_steps": 60},
                      parallel={"topology": "ring"})
    run = train(tmp_path, settings, workers=2)
    losses = [line["loss"] for line in run.lines("train")]
    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:5])
    ended, = attempt(tmp_path, settings, "--export", "average.safetensors")
    assert ended.code == 0, ended.err
    average = read_safetensors(tmp_path / "average.safetensors")
    assert differing(average, read_safetensors(run.folder / "model.safetensors")) == []
