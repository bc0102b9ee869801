"""model.lora with every exchange and option, beside a network that has adapters of its own and trains as any other: the same bits."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import hosts
from adapted import adapted
from host_runs import check_well, run_on
from runs import Run, assert_same_run, merged, recipe, train
from tensors import differing, read_safetensors, write_safetensors

STEPS, BATCH, CLASSES, RANK, ALPHA = 10, 4, 5, 4, 6.0
LAYERS = ["first", "second", "third"]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.norm, self.third, self.head = nn.BatchNorm2d(8), nn.Linear(8, 40), nn.Linear(40, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.first(x.view(-1, 1, 4, 4))))
        x = torch.relu(self.second(x)).mean((2, 3))
        return self.head(torch.relu(self.third(x)))


@functools.cache
def nets() -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(4)
    net = Net()
    return net, adapted(net, LAYERS, RANK, ALPHA)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    net, own = nets()
    torch.jit.script(net).save(str(tmp_path / "net.pt"))
    torch.jit.script(own).save(str(tmp_path / "own.pt"))
    write_safetensors(tmp_path / "start.safetensors", {name: value.numpy() for name, value in own.state_dict().items()})
    random = np.random.default_rng(3)
    y = random.integers(0, CLASSES, 400)
    x = random.normal(size=(CLASSES, 16))[y] + random.normal(size=(400, 16))
    write_safetensors(tmp_path / "data.safetensors", {"x": x.astype(np.float32), "y": y})
    return tmp_path


def lora_of(folder: Path) -> dict:
    return {"match": [f"{name}.weight" for name in LAYERS], "rank": RANK, "alpha": ALPHA, "train": ["norm.*", "head.*"],
            "adapters": str(folder / "start.safetensors")}


def both(folder: Path, changes: dict, workers: int) -> tuple[Run, Run]:
    """Of model.lora, and of the network with its own adapters."""
    settings = merged(recipe(folder / "net.pt", folder / "data.safetensors", train={"steps": STEPS}, optimizer={"lr": 0.01}), changes)
    lora = merged(settings, {"model": {"lora": lora_of(folder)}})
    return (train(folder / "lora", lora, workers=workers),
            train(folder / "own", merged(settings, {"model": {"path": str(folder / "own.pt")}}), workers=workers))


EXCHANGES = {
    "one": (1, {}),
    "none": (2, {"method": "none"}),
    "fp32-ring": (4, {"topology": "ring"}),
    "fp32-complete": (3, {"topology": "complete"}),
    "bf16-slices": (2, {"comm_dtype": "bf16", "slices": 2}),
    "modulo2": (2, {"comm_dtype": "modulo2"}),
    "modulo4-slices": (3, {"comm_dtype": "modulo4", "slices": 3, "bucket_mb": 0.002}),
    "modulo2-exp": (4, {"comm_dtype": "modulo2", "topology": "one-peer-exp"}),
    "gamma-small-buckets": (2, {"gamma": 0.5, "bucket_mb": 0.0005}),
    "all_reduce": (3, {"method": "all_reduce"}),
    "all_reduce-bf16": (2, {"method": "all_reduce", "comm_dtype": "bf16"}),
}


@pytest.mark.parametrize("name", EXCHANGES)
def test_exchanges(name: str, files: Path) -> None:
    workers, parallel = EXCHANGES[name]
    compare(*both(files, {"parallel": parallel}, workers))


OPTIONS = {
    "clip": {"parallel": {"grad_clip_norm": 0.3}},
    "clip-bucket": {"parallel": {"grad_clip_norm": 0.3, "grad_clip_scope": "bucket", "bucket_mb": 0.0005}},
    "accumulation": {"train": {"grad_accumulation": 3}},
    "groups": {"optimizer": {"param_groups": [{"match": "*.lora_B", "lr_scale": 4.0}, {"match": "first.*", "weight_decay": 0.5}]}},
    "schedule": {"schedule": {"name": "cosine_warmup", "warmup_steps": 3}},
    "after-backward": {"parallel": {"update": "after_backward"}},
    "lion": {"optimizer": {"name": "lion"}},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str, files: Path) -> None:
    compare(*both(files, OPTIONS[name], 2))


def compare(lora: Run, own: Run) -> None:
    assert list(lora.losses) == list(own.losses)
    trained = read_safetensors(lora.folder / "adapters.safetensors")
    assert trained.keys() == own.weights.keys()
    assert differing(trained, own.weights) == []
    start = read_safetensors(lora.folder.parent.parent / "start.safetensors")
    assert set(differing(trained, start)) == set(trained)  # all of it moved


RESUMES = {
    "ema": {"optimizer": {"ema": 0.9}},
    "clip": {"parallel": {"grad_clip_norm": 0.3}},
    "bf16": {"amp": {"dtype": "bf16"}},
    "fp16": {"amp": {"dtype": "fp16", "init_scale": 1024, "growth_interval": 3}},
    "plateau": {"schedule": {"name": "plateau", "metric": "loss", "mode": "min", "patience": 0, "threshold": 0.9}},
    "groups": {"optimizer": {"param_groups": [{"match": "*.lora_B", "lr_scale": 4.0}]}},
    "modulo2": {"parallel": {"comm_dtype": "modulo2", "slices": 2}},
    "all_reduce": {"parallel": {"method": "all_reduce"}},
    "adapters-of-a-seed": {"model": {"lora": {"adapters": None}}},
}


@pytest.mark.parametrize("name", RESUMES)
def test_resumes_to_the_bit(name: str, files: Path) -> None:
    """With an evaluation before and after, for which the adapters are merged."""
    source = {"format": "safetensors", "path": str(files / "data.safetensors"), "limit": 40}
    settings = recipe(files / "net.pt", files / "data.safetensors", model={"lora": lora_of(files)}, train={"steps": 8},
                      data={"eval": source}, eval={"every_steps": 2}, checkpoint={"every_steps": 4}, optimizer={"lr": 0.01})
    settings = merged(settings, RESUMES[name])
    whole = train(files / "whole", settings, workers=2)
    train(files / "parts", settings, "--set", "train.steps=4", workers=2)
    resumed = train(files / "parts", settings, "--resume", "auto", workers=2)
    assert_same_run(whole, resumed)
    assert (whole.folder / "adapters.safetensors").read_bytes() == (resumed.folder / "adapters.safetensors").read_bytes()


# ---- what travels ---------------------------------------------------------------------------------------------------

class Wide(nn.Module):
    """A large base."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Linear(16, 1024), nn.Linear(1024, 1024), nn.Linear(1024, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.second(torch.relu(self.first(x)))))


BASE, ADAPTERS = 4 * 1024 * 1024, 4 * 2 * (1024 + 1024)  # bytes: of second.weight, and of its adapter of rank 2


@pytest.fixture
def two_hosts():
    with hosts.hosts(2) as made:
        yield made


@pytest.mark.skipif(hosts.why_not() is not None, reason=str(hosts.why_not()))
@pytest.mark.parametrize(("parallel", "share"), [({}, 1), ({"comm_dtype": "bf16"}, 1 / 2), ({"method": "all_reduce"}, 1)], ids=str)
def test_bytes_on_the_wire(parallel: dict, share: float, two_hosts: list[hosts.Host], files: Path) -> None:
    """A whole run sends less than the base once: start, evaluations, checkpoints and files too. A step sends the adapters."""
    torch.manual_seed(1)
    torch.jit.script(Wide()).save(str(files / "wide.pt"))
    settings = recipe(files / "wide.pt", files / "data.safetensors", parallel=parallel, eval={"every_steps": 20},
                      model={"lora": {"match": ["second.weight"], "rank": 2}}, checkpoint={"every_steps": 20})
    counted = []
    for steps in (20, 60):
        before = two_hosts[0].sent_bytes()
        check_well(run_on(two_hosts, files / str(steps), merged(settings, {"train": {"steps": steps}}), workers=2))
        counted.append(two_hosts[0].sent_bytes() - before)
    assert counted[1] < BASE, counted
    a_step = (counted[1] - counted[0]) / 40  # and a twentieth of an evaluation, which sends all adapters once
    assert share * ADAPTERS < a_step < 1.25 * share * ADAPTERS + ADAPTERS / 20 + 2000, counted  # headers, losses, heartbeats
