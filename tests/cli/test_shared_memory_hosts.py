"""Who shares memory with whom: one host, several, and workers that cannot."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hosts
from exchange_cases import STEPS, Case
from ports import free_port
from program import PROGRAM, environment, launcher_variables, run_commands
from runs import DIGITS_MLP, Run, assert_same_run, assert_says, recipe, write_recipe
from shared import (ALL, GLOO, assert_exchanged, in_mounts, replicas, run_behind, train_behind, train_gloo, train_shared,
                    wide_model)
from started import Started
from tensors import differing

REASON = hosts.why_not()
needs_hosts = pytest.mark.skipif(REASON is not None, reason=str(REASON))
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to make namespaces")
SHORT = recipe(DIGITS_MLP, parallel={"topology": "ring"}, log={"tensorboard": False})


def assert_same_replicas(a: Run, b: Run, workers: int) -> None:
    for of_a, of_b in zip(replicas(a, STEPS, workers), replicas(b, STEPS, workers)):
        assert differing(of_a, of_b) == []


# ---- several hosts --------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def two_hosts() -> Iterator[list[hosts.Host]]:
    with hosts.hosts(2) as made:
        yield made


ON_TWO_HOSTS = [Case(4, "ring"), Case(4, "nodes-of-2"), Case(4, "nodes-of-2", "bf16"), Case(4, "ring", "modulo2", 3),
                Case(4, "uneven-groups", "modulo4"), Case(4, "complete")]


@needs_hosts
@pytest.mark.parametrize("case", ON_TWO_HOSTS if ALL else ON_TWO_HOSTS[:3], ids=lambda case: case.name)
def test_two_hosts_of_two(case: Case, two_hosts: list[hosts.Host], tmp_path: Path) -> None:
    """Both ways in one run: between hosts and inside."""
    prefixes, address = [two_hosts[rank // 2].prefix for rank in range(4)], two_hosts[0].address
    # Of sums in another order: see test_shared_memory.py.
    own = case.recipe(model={"path": str(DIGITS_MLP)}, optimizer={"name": "sgd", "lr": 0.02}) if case.adds_up else case.recipe()
    both = train_behind(prefixes, tmp_path / "both", own, local=2, address=address)
    assert_exchanged(both, "mixed")
    assert both.ended[0].err == ""
    gloo = train_gloo(tmp_path / "gloo", own, workers=4)
    if case.adds_up:
        np.testing.assert_allclose(both.losses, gloo.losses, rtol=1e-6)
        again = train_behind(prefixes, tmp_path / "again", own, local=2, address=address)
        assert_same_run(both, again)
    else:
        assert_same_replicas(both, gloo, 4)


@needs_hosts
def test_uneven_hosts(two_hosts: list[hosts.Host], tmp_path: Path) -> None:
    """Two workers on one, the third alone."""
    case, on = Case(3, "uneven-pairs"), (0, 1, 0)  # the ranks of a host need not follow one another
    prefixes = [two_hosts[i].prefix for i in on]
    run = train_behind(prefixes, tmp_path / "both", case.recipe(), local=2, address=two_hosts[0].address)
    assert_exchanged(run, "mixed")
    assert_same_replicas(run, train_gloo(tmp_path / "gloo", case.recipe(), workers=3), 3)


@needs_hosts
def test_one_worker_a_host(two_hosts: list[hosts.Host], tmp_path: Path) -> None:
    run = train_behind([host.prefix for host in two_hosts], tmp_path, SHORT, local=1, address=two_hosts[0].address)
    assert_exchanged(run, "gloo")
    assert run.ended[0].err == ""  # nothing went wrong


# ---- one machine, but not one host ----------------------------------------------------------------------------------

PID_NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child"]


@needs_root
@pytest.mark.parametrize(("prefixes", "by"), [([[], PID_NAMESPACE], "gloo"), ([PID_NAMESPACE, []], "gloo"),
                                              ([[], PID_NAMESPACE, []], "mixed")], ids=["second", "first", "of three"])
def test_other_pid_namespace(prefixes: list[list[str]], by: str, tmp_path: Path) -> None:
    case = Case(len(prefixes), "ring")
    run = train_behind(prefixes, tmp_path / "run", case.recipe())
    assert_exchanged(run, by)
    assert run.ended[0].err == ""
    assert_same_replicas(run, train_gloo(tmp_path / "gloo", case.recipe(), workers=case.workers), case.workers)


@needs_root
def test_other_user() -> None:
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        os.chmod(folder, 0o755)
        ended = run_behind([[], nobody], Path(folder), SHORT, "--dry-run")
    assert [e.code for e in ended] == [0, 0], ended
    assert_exchanged(ended, "gloo")


@needs_root
def test_both_of_another_user() -> None:
    """Nothing of it needs rights."""
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        run = train_behind([nobody, nobody], Path(folder), SHORT)
        assert_exchanged(run, "shared")
        assert run.ended[0].err == ""


# ---- a host that cannot share ---------------------------------------------------------------------------------------

def assert_fell_back(run: Run, *reasons: str) -> None:
    """By gloo, and one warning says why. Another one is of the page, where the size of files is limited."""
    assert_exchanged(run, "gloo")
    warnings = [line for ended in run.ended for line in ended.err.splitlines()
                if line.startswith("warning: ") and "no page of this run" not in line]
    assert len(warnings) == 1 and warnings[0] in run.ended[0].err, warnings
    assert_says(warnings[0], "cannot share memory", "gloo")
    assert any(reason in warnings[0] for reason in reasons), warnings[0]
    assert warnings[0].removeprefix("warning: ") in (run.folder / "run.log").read_text()


def file_size(most: int) -> list[str]:
    return ["prlimit", f"--fsize={most}:{most}"]


# Enough for what rank 0 writes, which has weights once.
@pytest.mark.parametrize("limits", [(None, 4096), (100_000, None), (100_000, 100_000)], ids=str)
def test_limit_on_the_size_of_files(limits: tuple[int | None, ...], tmp_path: Path) -> None:
    prefixes = [file_size(limit) if limit else [] for limit in limits]
    run = train_behind(prefixes, tmp_path / "limited", SHORT)
    assert_fell_back(run, "File too large", "ulimit -f")
    assert_same_run(run, train_gloo(tmp_path / "gloo", SHORT, workers=2))


@needs_root
@pytest.mark.parametrize("rank", [0, 1])
def test_peer_with_more_rights(rank: int, tmp_path: Path) -> None:
    """The kernel opens no descriptors of a process with more capabilities."""
    prefixes: list[list[object]] = [[], []]
    prefixes[rank] = ["setpriv", "--bounding-set=-all"]
    run = train_behind(prefixes, tmp_path / "run", SHORT)
    assert_fell_back(run, "Permission denied", "Operation not permitted")
    assert_same_run(run, train_gloo(tmp_path / "gloo", SHORT, workers=2))


@needs_root
def test_without_proc(tmp_path: Path) -> None:
    """Where nothing can be known of the machine."""
    hidden = in_mounts("mount -t tmpfs none /proc")
    assert_fell_back(train_behind([hidden, hidden], tmp_path / "run", SHORT), "/proc does not tell")


def address_space(folder: Path, own: dict) -> int:
    """The most that a worker of a run by gloo reserves, in bytes."""
    (folder / "free").mkdir()
    config, most = write_recipe(folder / "free", own), 0
    with Started(2, folder / "started", False, *GLOO, "--set", "log.every_steps=1", config=config) as run:
        run.wait_until_it_trains()
        time.sleep(0.5)
        for process in run.processes:
            status = Path(f"/proc/{process.pid}/status").read_text()
            most = max(most, int(re.search(r"VmPeak:\s+(\d+) kB", status)[1]) * 1024)
    return most


def test_limit_on_the_address_space(tmp_path: Path) -> None:
    """Gloo's run fits with room for one more copy of the weights; the copies of two workers do not."""
    parameters = 4_000_000
    own = recipe(wide_model(tmp_path, parameters), parallel={"topology": "ring"}, optimizer={"name": "sgd", "momentum": 0},
                 train={"steps": 3})
    most = address_space(tmp_path, own) + 4 * parameters
    run = train_behind([["prlimit", f"--as={most}:{most}"]] * 2, tmp_path / "run", own)
    assert_fell_back(run, "Cannot allocate memory", "ulimit -v")


# ---- surroundings that do not matter --------------------------------------------------------------------------------

@needs_root
@pytest.mark.parametrize("options", ["size=64k", "ro"])
def test_dev_shm_is_not_used(options: str, tmp_path: Path) -> None:
    """As in containers, where it is small or absent; each worker with mounts of its own."""
    closed = in_mounts(f"mount -t tmpfs -o {options} none /dev/shm")
    run = train_behind([closed, closed], tmp_path / "run", SHORT)
    assert_exchanged(run, "shared")
    assert run.ended[0].err == ""
    assert_same_run(run, train_gloo(tmp_path / "gloo", SHORT, workers=2))


def test_empty_environment(tmp_path: Path) -> None:
    """Nothing but the launcher's variables."""
    config, port = write_recipe(tmp_path, SHORT), free_port()
    told = [{name: str(value) for name, value in launcher_variables(rank, 2, port).items()} for rank in range(2)]
    ended = run_commands([[PROGRAM, "--config", config]] * 2, told, tmp_path)
    assert [e.code for e in ended] == [0, 0], ended
    assert_exchanged(ended, "shared")


def test_two_runs_at_once(tmp_path: Path) -> None:
    """On one core, so that workers of both take turns in the middle of everything."""
    case = Case(3, "uneven-groups", "bf16", 3)
    commands, told = [], []
    for name in ("one", "two"):
        config, port = write_recipe(tmp_path / name, case.recipe()), free_port()
        commands += [["taskset", "--cpu-list", next(iter(sorted(os.sched_getaffinity(0)))), PROGRAM, "--config", config]] * 3
        told += [environment(**launcher_variables(rank, 3, port)) for rank in range(3)]
    ended = run_commands(commands, told, tmp_path)
    assert [e.code for e in ended] == [0] * 6, ended
    for name, own in (("one", ended[:3]), ("two", ended[3:])):
        assert_exchanged(own, "shared")
    one, two = (Run(tmp_path / name / "run", []) for name in ("one", "two"))
    assert_same_run(one, two)
    assert_same_replicas(one, train_gloo(tmp_path / "gloo", case.recipe(), workers=3), 3)


def test_resumes_with_the_other_backend(tmp_path: Path) -> None:
    """Checkpoints do not depend on it."""
    own = Case(2, "ring", "modulo2", 3).recipe()
    half = {**own, "train": {"steps": STEPS // 2}, "checkpoint": {"every_steps": STEPS // 2}}
    whole = train_gloo(tmp_path / "whole", {**own, "eval": {"every_steps": STEPS}}, workers=2)
    for name, first, second in (("to gloo", train_shared, train_gloo), ("from gloo", train_gloo, train_shared)):
        first(tmp_path / name, {**half, "eval": {"every_steps": STEPS}}, workers=2)
        resumed = second(tmp_path / name, {**own, "eval": {"every_steps": STEPS}}, "--resume", "auto", workers=2)
        assert_same_replicas(whole, resumed, 2)
