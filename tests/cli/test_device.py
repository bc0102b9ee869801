"""model.device and parallel.backend where there is no GPU; test_gpu.py has what needs one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from program import run_alone, run_each
from runs import Run, assert_says, attempt, error_message, merged, recipe, refused, train, write_recipe

CUDA = {"model": {"device": "cuda"}}
NCCL = {"parallel": {"backend": "nccl"}}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("wishes", "keys"), [
    (CUDA, ["model.device: cuda"]),
    (NCCL, ["parallel.backend: nccl"]),
    ({"model": {"device": "cpu"}, **NCCL}, ["model.device: cpu", "parallel.backend: nccl"]),
    ({**CUDA, **NCCL}, ["model.device: cuda", "parallel.backend: nccl"]),
    ({**CUDA, "parallel": {"backend": "gloo"}}, ["model.device: cuda"]),
], ids=lambda value: "" if isinstance(value, list) else json.dumps(value))
def test_what_needs_a_gpu_is_refused_without_one(wishes: dict, keys: list[str], workers: int, tmp_path: Path) -> None:
    message = refused(tmp_path, merged(recipe(), wishes), workers=workers)
    assert_says(message, *keys)
    assert "rank" not in message  # it is the same on all of them


@pytest.mark.parametrize("flag", ["--dry-run", "--eval-only"])
def test_also_where_nothing_is_trained(flag: str, tmp_path: Path) -> None:
    assert_says(refused(tmp_path, merged(recipe(), CUDA), flag), "model.device: cuda")


def test_export_needs_no_gpu(tmp_path: Path) -> None:
    """Whatever the run was trained on."""
    ended = attempt(tmp_path, merged(recipe(), merged(CUDA, NCCL)), "--export", "out.pt", "--checkpoint", "none")
    assert [e.code for e in ended] == [0], ended
    assert (tmp_path / "out.pt").exists()


def device_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if "device " in line]


@pytest.mark.parametrize(("workers", "backend", "told"), [
    (1, "auto", "cpu"), (1, "gloo", "cpu"), (2, "auto", "cpu, exchange by shared memory"), (2, "gloo", "cpu, exchange by gloo")])
def test_the_choice_is_told(workers: int, backend: str, told: str, tmp_path: Path) -> None:
    own = recipe(parallel={"backend": backend})
    run = train(tmp_path / "run", own, workers=workers)
    assert f"device   {told}" in run.ended[0].out.splitlines()
    assert [line.rpartition("device   ")[2] for line in device_lines((run.folder / "run.log").read_text())] == [told]
    dry = attempt(tmp_path / "dry", own, "--dry-run", workers=workers)[0]
    assert device_lines(dry.out) == [f"device     {told}"]


def test_auto_stays_auto_in_the_recipe(tmp_path: Path) -> None:
    """So that it means the same on another machine."""
    config = write_recipe(tmp_path, recipe())
    printed = run_alone("--config", config, "--print-config", cwd=tmp_path)
    assert printed.code == 0
    assert "  device: auto" in printed.out.splitlines() and "  backend: auto" in printed.out.splitlines()
    (tmp_path / "again.yaml").write_text(printed.out)
    assert run_alone("--config", tmp_path / "again.yaml", "--print-config", cwd=tmp_path).out == printed.out
    run = train(tmp_path / "run", recipe())
    assert "  device: auto" in (run.folder / "recipe.yaml").read_text().splitlines()


def test_workers_that_come_to_the_same_agree(tmp_path: Path) -> None:
    config = write_recipe(tmp_path, recipe())
    same = ["--set", "model.device=cpu", "--set", "parallel.backend=gloo"]
    ended = run_each([["--config", config], ["--config", config, *same]], cwd=tmp_path)
    assert [e.code for e in ended] == [0, 0], ended


def test_one_worker_without_its_gpu_is_named(tmp_path: Path) -> None:
    config = write_recipe(tmp_path, recipe())
    ended = run_each([["--config", config], ["--config", config, "--set", "model.device=cuda"]], cwd=tmp_path)
    assert_says(error_message(ended), "rank 1", "model.device: cuda")


def test_another_device_may_be_asked_for_when_resuming(tmp_path: Path) -> None:
    """What it comes to is what counts: here the same."""
    settings = recipe(checkpoint={"every_steps": 6})
    first = train(tmp_path, settings)
    again = train(tmp_path, merged(settings, {"model": {"device": "cpu"}, "parallel": {"backend": "gloo"}}),
                  "--resume", first.checkpoint(6))
    assert "changed since" not in again.ended[0].out
    assert isinstance(again, Run) and again.lines("train")[-1]["step"] == 12
