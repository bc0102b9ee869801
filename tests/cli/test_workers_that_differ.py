"""One worker that would train something else than the others is found before the first step, with what differs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from ports import free_port
from program import PROGRAM, environment, launcher_variables, run_commands, run_each
from runs import DIGITS, DIGITS_CNN, assert_says, error_message, merged, message_of_odd_worker, recipe
from tensors import write_safetensors

KEYS = {
    "seed": 1, "data.batch_size": 16, "data.shuffle": False, "train.steps": 13, "optimizer.lr": 0.002,
    "optimizer.betas": [0.8, 0.999], "optimizer.weight_decay": 0.5, "schedule.eta_min": 1e-5, "parallel.gamma": 0.5,
    "parallel.bucket_mb": 0.01, "parallel.average_buffers": False, "eval.every_steps": 3,
}


@pytest.mark.parametrize("key", KEYS)
def test_recipe_key(key: str, tmp_path: Path) -> None:
    section, _, name = key.rpartition(".")
    change = {section: {name: KEYS[key]}} if section else {name: KEYS[key]}
    message = message_of_odd_worker(tmp_path, recipe(), merged(recipe(), change))
    assert_says(message, "rank 1 would not train what the other workers train", f"\n  {key} is ", "on rank 0 ")


@pytest.mark.parametrize("rank", [0, 2])
def test_the_odd_one_is_named(rank: int, tmp_path: Path) -> None:
    """Also where it is rank 0."""
    message = message_of_odd_worker(tmp_path, recipe(), recipe(optimizer={"lr": 0.01}), rank=rank)
    assert_says(message, f"rank {rank} would not train", f"optimizer.lr is 0.01, on rank {1 if rank == 0 else 0} 0.001")


def test_topology(tmp_path: Path) -> None:
    message = message_of_odd_worker(tmp_path, recipe(), recipe(parallel={"topology": "ring"}))
    assert_says(message, "rank 1", "parallel.topology is ring, on rank 0 complete")


def test_what_the_data_teaches(tmp_path: Path) -> None:
    """A mean that stands for a missing number: neither is in the 64 samples that are compared by themselves."""
    files = {}
    for name, odd in (("common", 1), ("other", 2)):
        rows = [f"{'' if i == 1 else odd if i == 2 else 1},{i % 2}" for i in range(192)]
        files[name] = tmp_path / f"{name}.csv"
        files[name].write_text("\n".join(["a,y", *rows]) + "\n")
    torch.jit.script(torch.nn.Linear(1, 1)).save(str(tmp_path / "net.pt"))
    own = recipe(tmp_path / "net.pt", model={"loss": "mse"},
                 data={"train": {"format": "csv", "path": str(files["common"]), "missing": "mean"}, "eval": None})
    message = message_of_odd_worker(tmp_path, own, merged(own, {"data": {"train": {**own["data"]["train"], "path": str(files["other"])}}}))
    assert_says(message, "rank 1 would not train", "what data.train teaches: means is ")


def test_model_structure(tmp_path: Path, model) -> None:
    message = message_of_odd_worker(tmp_path, recipe(), recipe(DIGITS_CNN))
    assert_says(message, "rank 1", "parameter ", "more")
    assert len(message.splitlines()) <= 5


def test_model_code(tmp_path: Path) -> None:
    """The same tensors, another function."""
    class Net(torch.nn.Module):
        def __init__(self, scale: float, square: bool) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(64, 10)
            self.scale = scale
            self.square = square

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.fc(x.flatten(1)) * self.scale
            return y * y if self.square else y

    files = {}
    for name, net in {"common": Net(1.0, False), "scaled": Net(2.0, False), "squared": Net(1.0, True)}.items():
        files[name] = tmp_path / f"{name}.pt"
        torch.jit.script(net).save(str(files[name]))
    for odd in ("scaled", "squared"):
        message = message_of_odd_worker(tmp_path, recipe(files["common"]), recipe(files[odd]))
        assert_says(message, "rank 1", "the code of the model is ")


@pytest.mark.parametrize("key", ["train", "eval"])
def test_data_of_the_same_shape(key: str, tmp_path: Path) -> None:
    """One element of one of 64 samples, the last one here."""
    arrays = {"x": np.zeros((64, 1, 8, 8), np.float32), "y": np.zeros(64, np.int64)}
    write_safetensors(tmp_path / "common.safetensors", arrays)
    arrays["x"][63, 0, 7, 7] = 1e-30
    write_safetensors(tmp_path / "odd.safetensors", arrays)
    common, odd = [recipe(data={key: {"format": "safetensors", "path": str(tmp_path / f"{name}.safetensors")}})
                   for name in ("common", "odd")]
    assert_says(message_of_odd_worker(tmp_path, common, odd), "rank 1", f"the content of data.{key} is ", "on rank 0 ")


def test_data(tmp_path: Path) -> None:
    images = np.zeros((100, 1, 8, 8), np.float32)
    labels = np.zeros(100, np.int64)
    for name, arrays in {"common": {"x": images, "y": labels}, "short": {"x": images[:90], "y": labels[:90]},
                         "narrow": {"x": images, "y": labels.astype(np.int32)}}.items():
        write_safetensors(tmp_path / f"{name}.safetensors", arrays)
    own = recipe(data={"train": {"format": "safetensors", "path": str(tmp_path / "common.safetensors")},
                       "eval": DIGITS["test"]})
    for odd, texts in {"short": ["the number of samples of data.train is 90, on rank 0 100"],
                       "narrow": ["the fields of data.train is", "y int32[]", "y int64[]"]}.items():
        other = merged(own, {"data": {"train": {"format": "safetensors", "path": str(tmp_path / f"{odd}.safetensors")}}})
        assert_says(message_of_odd_worker(tmp_path, own, other), "rank 1", *texts)


def test_what_may_differ(tmp_path: Path) -> None:
    """Paths, output, logging, prefetch, timeout: rank 0's logging counts."""
    write_safetensors(tmp_path / "a.safetensors", {"x": np.ones((64, 1, 8, 8), np.float32), "y": np.ones(64, np.int64)})
    write_safetensors(tmp_path / "b.safetensors", {"x": np.ones((64, 1, 8, 8), np.float32), "y": np.ones(64, np.int64)})
    files = []
    for i, name in enumerate("ab"):
        source = {"format": "safetensors", "path": str(tmp_path / f"{name}.safetensors")}
        own = recipe(data={"train": source, "eval": source, "prefetch": i}, log={"every_steps": i + 1},
                     parallel={"timeout_s": 20 + i}, name=name, output=str(tmp_path / f"run-{name}"),
                     train={"steps": 4})
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(json.dumps(own))
    ended = run_each([["--config", file] for file in files], cwd=tmp_path)
    assert [e.code for e in ended] == [0, 0], ended
    lines = [json.loads(line) for line in (tmp_path / "run-a" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if line["kind"] == "train"] == [1, 2, 3, 4]


def test_build(tmp_path: Path) -> None:
    """Another build of the program: one byte of the build id is changed in a copy of it."""
    version = run_commands([[PROGRAM, "--version"]], [environment()], tmp_path)[0].out
    build = re.search(r"\(build (\S+)\)", version).group(1).encode()
    program = PROGRAM.read_bytes()
    assert program.count(build) >= 1
    other = tmp_path / "decent-train"
    other.write_bytes(program.replace(build, build[:-1] + (b"0" if build[-1:] != b"0" else b"1")))
    other.chmod(0o755)
    config = tmp_path / "recipe.yaml"
    config.write_text(json.dumps(recipe(output=str(tmp_path / "run"))))
    port = free_port()
    commands = [[program, "--config", config] for program in (PROGRAM, PROGRAM, other)]
    ended = run_commands(commands, [environment(**launcher_variables(rank, 3, port)) for rank in range(3)], tmp_path)
    message = error_message(ended)
    assert_says(message, "rank 2 runs decent-train", "rank 0 runs", build.decode())
    assert not (tmp_path / "run").exists()
