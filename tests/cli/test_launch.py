"""The ways to start decent-train (CONTRACT section 1), and that each of them learns the digits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ports import free_port
from program import (PROGRAM, ROOT, Ended, environment, launcher_variables, run_alone, run_commands, run_torchrun,
                     run_workers)
from runs import assert_says, error_message

CONFIG = ROOT / "configs" / "digits.yaml"
LINK = ROOT / "decent-train"
ACCURACY = 0.96
LITTLE = 0.7  # after one epoch; guessing gives 0.1


def check_completed(folder: Path, workers: int, epochs: int = 20, accuracy: float = ACCURACY) -> None:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    evaluation, end = lines[-2:]
    assert (end["kind"], end["status"], end["step"]) == ("end", "completed", epochs * (1442 // (16 * workers)))
    assert evaluation["kind"] == "eval" and evaluation["samples"] == 355
    assert evaluation["accuracy"] >= accuracy
    for name in ("model.pt", "model.safetensors", "recipe.yaml", "run.log"):
        assert (folder / name).stat().st_size > 0


def check_all_well(ended: list[Ended]) -> None:
    assert [e.code for e in ended] == [0] * len(ended), "\n".join(e.err + e.out for e in ended)
    assert "".join(e.err for e in ended) == ""
    assert all(e.out == "" for e in ended[1:])


# ---- the three forms, in the repository root -----------------------------------------------------------------------

in_the_repository = pytest.mark.skipif(LINK.resolve() != PROGRAM.resolve(),
                                       reason="./decent-train is not the program under test")


@in_the_repository
def test_torchrun_starts_the_link(tmp_path: Path) -> None:
    ended = run_torchrun("--nproc-per-node", 2, "decent-train", "--config", "configs/digits.yaml",
                         "--set", f"output={tmp_path}/run", cwd=ROOT)
    assert ended.code == 0, ended.err
    assert "average of 2 models" in ended.out
    check_completed(tmp_path / "run", workers=2)


@in_the_repository
def test_torchrun_no_python_starts_the_program(tmp_path: Path) -> None:
    ended = run_torchrun("--nproc-per-node", 4, "--no-python", PROGRAM.relative_to(ROOT), "--config",
                         "configs/digits.yaml", "--set", f"output={tmp_path}/run", cwd=ROOT)
    assert ended.code == 0, ended.err
    check_completed(tmp_path / "run", workers=4)


@in_the_repository
def test_no_launcher(tmp_path: Path) -> None:
    command = ["./decent-train", "--config", "configs/digits.yaml", "--set", f"output={tmp_path}/run"]
    ended = run_commands([command], [environment()], cwd=ROOT)
    check_all_well(ended)
    check_completed(tmp_path / "run", workers=1)


def test_torchrun_from_another_folder(tmp_path: Path) -> None:
    """Paths in the recipe are relative to it, its default output to the working folder."""
    ended = run_torchrun("--nproc-per-node", 2, PROGRAM, "--config", CONFIG, "--set", "train.epochs=1", cwd=tmp_path)
    assert ended.code == 0, ended.err
    check_completed(tmp_path / "runs" / "digits", workers=2, epochs=1, accuracy=LITTLE)


def test_torchrun_passes_the_error_on(tmp_path: Path) -> None:
    ended = run_torchrun("--nproc-per-node", 2, PROGRAM, "--config", CONFIG, "--set", "optimizer.lrr=1", cwd=tmp_path)
    assert ended.code == 1  # torchrun's own
    assert ended.err.count("decent-train: error:") == 1
    assert_says(ended.err, "optimizer.lrr", "did you mean", "exitcode  : 2")


# ---- any launcher --------------------------------------------------------------------------------------------------

TOPOLOGIES = [(topology, workers) for topology in ("ring", "complete", "one-peer-exp") for workers in (1, 2, 3, 4)]


@pytest.mark.parametrize("topology, workers", TOPOLOGIES)
def test_launched_by_hand(topology: str, workers: int, tmp_path: Path) -> None:
    """The whole recipe where that says more than one epoch: a single worker averages with nobody."""
    whole = workers in (2, 4) or (workers, topology) == (1, "ring")
    epochs = 20 if whole else 1
    ended = run_workers(workers, "--config", CONFIG, "--set", f"parallel.topology={topology}", "--set",
                        f"train.epochs={epochs}", cwd=tmp_path)
    check_all_well(ended)
    check_completed(tmp_path / "runs" / "digits", workers, epochs, ACCURACY if whole else LITTLE)


def test_two_nodes_of_two_workers(tmp_path: Path) -> None:
    """LOCAL_WORLD_SIZE says how many workers a node has."""
    ended = run_workers(4, "--config", CONFIG, "--set", "parallel.topology=alternating-exp-ring", local=2, cwd=tmp_path)
    check_all_well(ended)
    check_completed(tmp_path / "runs" / "digits", workers=4)


def test_local_world_size_of_the_recipe(tmp_path: Path) -> None:
    flags = ["--set", "parallel.topology=alternating-exp-ring", "--set", "parallel.local_world_size=2"]
    check_all_well(run_workers(4, "--config", CONFIG, *flags, "--set", "train.steps=5", cwd=tmp_path))


def test_convolutional_network(tmp_path: Path) -> None:
    check_all_well(run_workers(2, "--config", ROOT / "configs" / "digits_cnn.yaml", cwd=tmp_path))
    check_completed(tmp_path / "runs" / "digits_cnn", workers=2, epochs=10)


def test_named_network_interface(tmp_path: Path) -> None:
    ended = run_workers(2, "--config", CONFIG, "--set", "train.steps=5", cwd=tmp_path, GLOO_SOCKET_IFNAME="lo")
    check_all_well(ended)


def test_unknown_network_interface(tmp_path: Path) -> None:
    ended = run_workers(2, "--config", CONFIG, "--set", "train.steps=5", "--quiet", cwd=tmp_path,
                        GLOO_SOCKET_IFNAME="nonsense0")
    assert [e.code for e in ended] == [2, 2]
    assert_says("".join(e.err for e in ended), "nonsense0")


# ---- the launcher's variables --------------------------------------------------------------------------------------

def test_a_world_of_one_needs_no_address(tmp_path: Path) -> None:
    check_all_well([run_alone("--config", CONFIG, "--set", "train.steps=5", cwd=tmp_path, RANK=0, WORLD_SIZE=1)])


@pytest.mark.parametrize("missing", launcher_variables(0, 2, 1))
def test_missing_variable(missing: str, tmp_path: Path) -> None:
    variables = launcher_variables(1, 2, free_port())
    del variables[missing]
    assert_says(error_message(run_alone("--config", CONFIG, cwd=tmp_path, **variables)), missing, "torchrun")


@pytest.mark.parametrize("name, value", [("RANK", "2"), ("RANK", "-1"), ("WORLD_SIZE", "0"), ("WORLD_SIZE", "two"),
                                         ("LOCAL_RANK", "2"), ("LOCAL_WORLD_SIZE", "3"), ("MASTER_PORT", "70000"),
                                         ("MASTER_PORT", "")])
def test_variable_that_makes_no_sense(name: str, value: str, tmp_path: Path) -> None:
    variables = {**launcher_variables(1, 2, free_port()), name: value}
    assert_says(error_message(run_alone("--config", CONFIG, cwd=tmp_path, **variables)), name, f"'{value}'")
