"""Other people's weights under a new head: names that are changed or left out, frozen parameters and statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision
from torch import nn

from runs import Run, assert_same_run, assert_says, attempt, merged, recipe, refused, train
from tensors import read_safetensors, write_safetensors

CLASSES, STEPS, BATCH = 5, 20, 8
FROZEN = ["conv1.*", "bn1.*", "layer1.*", "layer2.*", "layer3.*"]
SETTINGS = {"freeze": FROZEN, "freeze_statistics": True, "weights_ignore": ["fc.*"], "weights_rename": {"backbone.": ""}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A resnet18 with a head of its own, weights of one with another, whose statistics are no beginner's, and images."""
    folder = tmp_path_factory.mktemp("fine-tuning")
    torch.manual_seed(1)
    torch.jit.script(torchvision.models.resnet18(num_classes=CLASSES)).save(str(folder / "net.pt"))
    other = torchvision.models.resnet18(num_classes=11)
    for module in other.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2)
    torch.save({f"backbone.{name}": tensor for name, tensor in other.state_dict().items()}, folder / "other.pt")
    random = np.random.default_rng(2)
    write_safetensors(folder / "data.safetensors", {
        "x": random.normal(size=(STEPS * BATCH, 3, 32, 32)).astype(np.float32), "y": random.integers(0, CLASSES, STEPS * BATCH)})
    return folder


def settings(folder: Path, **changes: object) -> dict:
    own = recipe(folder / "net.pt", folder / "data.safetensors", model={"weights": str(folder / "other.pt"), **SETTINGS},
                 data={"shuffle": False, "eval": None}, train={"steps": STEPS},
                 optimizer={"name": "sgd", "lr": 0.02, "param_groups": [{"match": "layer4.*", "lr_scale": 0.1}, {"match": "*"}]})
    return merged(own, changes)


def eager(folder: Path) -> tuple[nn.Module, list[float]]:
    from safetensors.numpy import load_file

    net = torchvision.models.resnet18(num_classes=CLASSES)
    net.load_state_dict(torch.jit.load(str(folder / "net.pt")).state_dict())
    given = {name.removeprefix("backbone."): tensor for name, tensor in torch.load(folder / "other.pt").items()}
    net.load_state_dict({name: tensor for name, tensor in given.items() if not name.startswith("fc.")}, strict=False)
    net.train()
    for name, module in net.named_modules():
        if isinstance(module, nn.BatchNorm2d) and not name.startswith("layer4"):
            module.eval()
            module.requires_grad_(False)
    groups = [{"params": net.layer4.parameters(), "lr": 0.002}, {"params": net.fc.parameters(), "lr": 0.02}]
    optimizer = torch.optim.SGD(groups, momentum=0.9)
    data = load_file(folder / "data.safetensors")
    losses = []
    for x, y in zip(torch.tensor(data["x"]).split(BATCH), torch.tensor(data["y"]).split(BATCH)):
        loss = nn.functional.cross_entropy(net(x), y)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net, losses


def statistics_of(state: dict) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in state.items() if "running" in name or "tracked" in name}


def is_frozen(name: str) -> bool:
    return not name.startswith(("layer4", "fc"))


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return train(folder / "own", settings(folder))


def test_follows_eager_pytorch(folder: Path, run: Run) -> None:
    net, losses = eager(folder)
    np.testing.assert_allclose(run.losses, losses, rtol=1e-5)  # 20 steps of float32, summed in another order
    state = {name: tensor.numpy() for name, tensor in net.state_dict().items()}
    assert state.keys() == run.weights.keys()
    for name, value in state.items():
        if is_frozen(name):
            assert np.array_equal(run.weights[name], value), name
        else:
            np.testing.assert_allclose(run.weights[name], value, rtol=1e-3, atol=1e-5, err_msg=name)


def test_statistics_are_untouched(folder: Path, run: Run) -> None:
    """Bit for bit those of the file, on three workers too; those of layers that train are not."""
    given = statistics_of(torch.load(folder / "other.pt"))
    three = train(folder / "three", settings(folder, train={"steps": 4}), workers=3)
    for each in (run, three):
        own = statistics_of(each.weights)
        assert own and {f"backbone.{name}" for name in own} == set(given)
        for name, value in own.items():
            assert np.array_equal(value, given[f"backbone.{name}"]) == is_frozen(name), name


def test_what_stays_is_said(folder: Path, run: Run) -> None:
    out = run.ended[0].out
    assert_says(out, "model.weights_ignore: stay as the model file has them: fc.weight, fc.bias",
                "model.freeze_statistics: batch norm that keeps its statistics: bn1, layer1.0.bn1, ", " more")


def test_goes_on_as_it_was(folder: Path) -> None:
    """Resumed and evaluated in between, bit for bit: evaluation does not switch the frozen ones on."""
    own = settings(folder, train={"steps": 6}, schedule={"t_max": 6}, checkpoint={"every_steps": 3}, eval={"every_steps": 3},
                   data={"eval": {"format": "safetensors", "path": str(folder / "data.safetensors"), "limit": 16}})
    wanted = train(folder / "wanted", own)
    train(folder / "parts", own, "--set", "train.steps=3")
    assert_same_run(train(folder / "parts", own, "--resume", "auto"), wanted)


@pytest.mark.parametrize(("model", "parts"), [
    ({"weights_ignore": ["fd.*"]}, ["model.weights", "'fd.*' fits no tensor of the model (weights_ignore)", "'conv1.weight'"]),
    ({"weights_ignore": []}, ["of another shape or type", "'fc.weight' is float32[11, 512], the model's float32[5, 512]"]),
    ({"weights_rename": {"backbones.": ""}}, ["no name in the file begins with 'backbones.' (weights_rename)", "'backbone."]),
    ({"weights_rename": {"backbone.bn1": "conv1", "backbone.": ""}}, ["weights_rename gives two tensors", "'conv1.weight'"]),
    ({"weights_rename": {"backbone.layer1": "x", "backbone.": ""}}, ["missing: 'layer1.0.conv1.weight'", "not in the model: 'x.0."]),
    ({"weights": None}, ["model.weights_ignore", "it needs model.weights"]),
    ({"freeze": []}, ["model.freeze_statistics", "no batch norm whose parameters are frozen"]),
    ({"weights_rename": ["backbone."]}, ["model.weights_rename: expected a mapping {beginning: replacement}"]),
])
def test_mistakes(folder: Path, model: dict, parts: list[str], tmp_path: Path) -> None:
    own = settings(folder)
    own["model"] = {**own["model"], **model}
    assert_says(refused(tmp_path, own), *parts)


def test_modes_that_the_file_holds(folder: Path, tmp_path: Path) -> None:
    """Of a traced model it is a constant."""
    net = torchvision.models.resnet18(num_classes=CLASSES).train()
    torch.jit.trace(net, torch.zeros(2, 3, 32, 32), check_trace=False).save(str(folder / "traced.pt"))
    own = settings(folder)
    own["model"] = {**own["model"], "path": str(folder / "traced.pt")}
    assert_says(refused(tmp_path, own), "model.freeze_statistics", "batch_norm", "torch.jit.script")


def test_evaluation_and_export(folder: Path, run: Run, tmp_path: Path) -> None:
    exported = tmp_path / "weights.safetensors"
    ended = attempt(folder / "own", settings(folder), "--checkpoint", "none", "--export", exported)
    assert [each.code for each in ended] == [0], ended[0].err
    start = {name: tensor.numpy() for name, tensor in torch.jit.load(str(folder / "net.pt")).state_dict().items()}
    left = read_safetensors(exported)
    assert np.array_equal(left["fc.weight"], start["fc.weight"])
    assert not np.array_equal(left["conv1.weight"], start["conv1.weight"])
