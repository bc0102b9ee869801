"""The ways to start decent-train (CONTRACT section 1), and that each of them learns the digits."""

from __future__ import annotations

from pathlib import Path

import pytest

from digits_runs import ACCURACY, CONFIG, LITTLE, check_all_well, check_completed
from ports import free_port
from program import (PROGRAM, ROOT, environment, launcher_variables, run_alone, run_commands, run_torchrun,
                     run_workers)
from runs import assert_says, error_message

LINK = ROOT / "decent-train"


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


@pytest.mark.parametrize(("variables", "name"), [
    ({"RANK": 0, "WORLD_SIZE": 2, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 2}, "WORLD_SIZE"),
    ({"PMI_RANK": 0, "PMI_SIZE": 2, "PMI_LOCAL_RANK": 0, "PMI_LOCAL_SIZE": 2}, "PMI_SIZE"),
    ({"OMPI_COMM_WORLD_RANK": 0, "OMPI_COMM_WORLD_SIZE": 2, "OMPI_COMM_WORLD_LOCAL_RANK": 0, "OMPI_COMM_WORLD_LOCAL_SIZE": 2},
     "OMPI_COMM_WORLD_SIZE")])
def test_variables_that_were_left_in_a_shell(variables: dict[str, int], name: str, tmp_path: Path) -> None:
    """The others never come: which variable says that there are any?"""
    ended = run_alone("--config", CONFIG, "--set", "parallel.timeout_s=1", cwd=tmp_path, MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=free_port(), **variables)
    assert_says(error_message(ended, 3), "worker 1 of 2 has not shown up within 1 s", f"{name} says how many there are",
                "a single worker with env -u")


def without_places(rank: int, workers: int, port: int) -> dict[str, object]:
    """What Kubeflow sets."""
    return {name: value for name, value in launcher_variables(rank, workers, port).items() if not name.startswith("LOCAL_")}


@pytest.mark.parametrize("kind", ["torch", "PMI"])
@pytest.mark.parametrize("workers", [2, 4])
def test_workers_tell_each_other_who_is_on_a_machine(workers: int, kind: str, tmp_path: Path) -> None:
    """They share its memory, and know how many they are, as with the variables that say so."""
    port = free_port()
    environments = [without_places(rank, workers, port) for rank in range(workers)]
    if kind == "PMI":
        environments = [{"PMI_RANK": each.pop("RANK"), "PMI_SIZE": each.pop("WORLD_SIZE"), **each} for each in environments]
    command = [PROGRAM, "--config", CONFIG, "--set", f"output={tmp_path}/run", "--set", "train.epochs=1"]
    ended = run_commands([command] * workers, [environment(**each) for each in environments], tmp_path)
    check_all_well(ended)
    assert_says(ended[0].out, f"workers  {workers}, ", "exchange by shared memory")
    check_completed(tmp_path / "run", workers, 1, LITTLE)
    assert list((tmp_path / "run").glob("*.lock")) == []


def test_places_are_those_of_the_machine(tmp_path: Path) -> None:
    """All four on one machine: a topology of several machines names that number."""
    port = free_port()
    command = [PROGRAM, "--config", CONFIG, "--set", "parallel.topology=alternating-exp-ring"]
    told = []
    for variables in (without_places, launcher_variables):
        ended = run_commands([command] * 4, [environment(**variables(rank, 4, port)) for rank in range(4)], tmp_path)
        told.append(error_message(ended))
    assert told[0] == told[1] and "alternating-exp-ring" in told[0]


SLURM = {"SLURM_STEP_ID": 0, "SLURM_JOB_ID": 7, "SLURM_STEP_NUM_TASKS": 4, "SLURM_PROCID": 0, "SLURM_LOCALID": 0,
         "SLURM_NODEID": 0, "SLURM_STEP_TASKS_PER_NODE": 4, "SLURM_GTIDS": "0,1,2,3", "SLURM_PTY_PORT": 40000}


@pytest.mark.parametrize("by_hand", [True, False])
def test_the_shell_of_srun_pty(by_hand: bool, tmp_path: Path) -> None:
    """Of four tasks, of which three shells ended at once. A script that is the task waits for the others' scripts."""
    control = "set -m; " if by_hand else ""  # with job control a shell's commands are groups of processes
    line = f"{control}export SLURM_TASK_PID=$$; '{PROGRAM}' --config '{CONFIG}' --set parallel.timeout_s=1; exit $?"
    ended = run_commands([["bash", "-c", line]], [environment(**SLURM)], tmp_path)[0]
    if not by_hand:
        assert_says(error_message(ended, 3), "has not shown up within 1 s", "SLURM_STEP_NUM_TASKS")
        return
    assert_says(error_message(ended), "SLURM_STEP_NUM_TASKS is 4 and SLURM_PROCID is 0", "worker 0 of 4", "srun --pty",
                "srun --overlap --ntasks=4", "env -u SLURM_STEP_ID", "--workers N")
