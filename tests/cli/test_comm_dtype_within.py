"""parallel.comm_dtype_within: workers of one machine exchange otherwise than workers of several. Two hosts of two workers, in a
ring whose pairs are on one host in every second step.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hosts
from ports import free_port
from program import PROGRAM, Ended, environment, launcher_variables
from runs import DIGITS_CNN, DIGITS_MLP, Run, assert_same_run, assert_says, attempt, merged, recipe, refused, train, write_recipe
from shared import assert_exchanged, replicas, train_behind, wide_model
from tensors import differing

REASON = hosts.why_not()
needs_hosts = pytest.mark.skipif(REASON is not None, reason=str(REASON))
WORKERS = 4
TWO = {"topology": "ring", "comm_dtype": "modulo2", "comm_dtype_within": "fp32", "bucket_mb": 0.02}  # several buckets
AVERAGE = "all workers start from the average of their weights"


def settings(parallel: dict | None = None, **changes: object) -> dict:
    base = recipe(DIGITS_MLP, parallel={**TWO, **(parallel or {})}, optimizer={"lr": 0.003}, train={"steps": 24})
    return merged(base, changes)


@pytest.fixture(scope="module")
def two_hosts() -> Iterator[list[hosts.Host]]:
    with hosts.hosts(2) as made:
        yield made


def train_on(made: list[hosts.Host], folder: Path, own: dict, *flags: object) -> Run:
    """Two workers on each host."""
    return train_behind([made[rank // 2].prefix for rank in range(WORKERS)], folder, own, *flags, local=2, address=made[0].address)


def exchange_line(ended: list[Ended]) -> str:
    lines = [line for line in ended[0].out.splitlines() if line.startswith("exchange ")]
    assert len(lines) == 1, ended[0].out
    return lines[0]


# ---- two hosts ------------------------------------------------------------------------------------------------------

@needs_hosts
@pytest.mark.parametrize("comm_dtype", ["fp32", "modulo4"])
def test_the_same_type_twice_changes_nothing(comm_dtype: str, two_hosts: list[hosts.Host], tmp_path: Path) -> None:
    own = settings({"comm_dtype": comm_dtype, "slices": 3}, checkpoint={"every_steps": 24})
    one = merged(own, {"parallel": {"comm_dtype_within": None}})
    two = merged(own, {"parallel": {"comm_dtype_within": comm_dtype}})
    plain, both = (train_on(two_hosts, tmp_path / name, of) for name, of in (("one", one), ("two", two)))
    assert_same_run(plain, both)
    for of_plain, of_both in zip(replicas(plain, 24, WORKERS), replicas(both, 24, WORKERS)):
        assert differing(of_plain, of_both) == []


def kill_on_the_way(made: list[hosts.Host], folder: Path, own: dict) -> int:
    """SIGKILL to the last worker once there is a checkpoint; the newest one's step."""
    config, port = write_recipe(folder, own), free_port()
    told = [{**launcher_variables(rank, WORKERS, port, 2), "MASTER_ADDR": made[0].address} for rank in range(WORKERS)]
    run = Run(folder / "run", [])
    with (folder / "err").open("w") as err:
        processes = [subprocess.Popen([*made[rank // 2].prefix, str(PROGRAM), "--config", str(config)], cwd=folder,
                                      env=environment(**told[rank]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=err) for rank in range(WORKERS)]
        try:
            deadline = time.monotonic() + 60
            while not run.checkpoints and time.monotonic() < deadline:
                time.sleep(0.005)
            os.kill(processes[3].pid, signal.SIGKILL)  # ip has become the program
            codes = [process.wait(60) for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
    assert codes == [3, 3, 3, -signal.SIGKILL], (folder / "err").read_text()
    return run.checkpoints[-1]


@needs_hosts
def test_killed_and_resumed_bit_for_bit(two_hosts: list[hosts.Host], tmp_path: Path) -> None:
    own = settings(train={"steps": 400}, checkpoint={"every_steps": 30, "keep": 99})
    whole = train_on(two_hosts, tmp_path / "whole", own)
    assert kill_on_the_way(two_hosts, tmp_path / "killed", own) < 400
    resumed = train_on(two_hosts, tmp_path / "killed", own, "--resume", "auto")
    assert AVERAGE not in resumed.ended[0].out
    assert_same_run(whole, resumed)


@needs_hosts
def test_trains_and_goes_on_elsewhere(two_hosts: list[hosts.Host], tmp_path: Path) -> None:
    own = settings(model={"path": str(DIGITS_CNN)}, train={"steps": 80}, checkpoint={"every_steps": 80})
    run = train_on(two_hosts, tmp_path, own)
    assert_exchanged(run, "mixed")
    assert exchange_line(run.ended).startswith("exchange modulo2 between machines, fp32 within, sent: ")
    assert run.losses[-10:].mean() < 0.3 * run.losses[:5].mean()
    shares = [line.get("wrap_share") for line in run.lines("train")]
    # Step t mixes with what was sent after step t - 1: codes after every second one.
    assert all(share is None for share in shares[1::2]) and all(share is not None for share in shares[2::2]), shares
    # All on one machine now, where nobody uses comm_dtype.
    more = merged(own, {"train": {"steps": 82}})
    resumed = train(tmp_path, more, "--resume", "auto", workers=WORKERS)
    assert_says(resumed.ended[0].out, "the placement of workers on machines was 0 0 2 2, is 0 0 0 0",
                "parallel.comm_dtype is not used")
    assert AVERAGE not in resumed.ended[0].out


# ---- what is sent ---------------------------------------------------------------------------------------------------

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20}
PARAMETERS = 400_000


def told_bytes(line: str) -> tuple[float, float]:
    """Of a worker and step, in edges between machines and within."""
    number = r"([\d.]+) (B|KiB|MiB)"
    found = re.search(f"sent: {number} a worker and step in edges between machines; {number} in edges within", line)
    assert found, line
    return float(found[1]) * UNITS[found[2]], float(found[3]) * UNITS[found[4]]


def traced_bytes(run: Run, steps: int) -> tuple[float, float]:
    """The same as the traces of all workers have it."""
    totals = [0, 0]
    for rank in range(WORKERS):
        for event in json.loads((run.folder / f"trace-rank-{rank:04}.json").read_text())["traceEvents"]:
            if event["name"].startswith("exchange bucket"):
                totals[event["args"]["peer"] // 2 == rank // 2] += event["args"]["bytes"]
    return totals[0] / WORKERS / steps, totals[1] / WORKERS / steps


@needs_hosts
def test_bytes_are_those_that_it_tells(two_hosts: list[hosts.Host], tmp_path: Path) -> None:
    """By its trace, and between the hosts by the interface, whose bytes of the start and the end two lengths tell apart."""
    own = settings({"bucket_mb": 25}, model={"path": str(wide_model(tmp_path, PARAMETERS))}, train={"steps": 20},
                   log={"trace": [5, 14]})
    counted = []
    for steps in (20, 60):
        before = two_hosts[0].sent_bytes()
        run = train_on(two_hosts, tmp_path / str(steps), merged(own, {"train": {"steps": steps}}))
        counted.append(two_hosts[0].sent_bytes() - before)
    between, within = told_bytes(exchange_line(run.ended))
    assert (between, within) == pytest.approx((PARAMETERS * 4 * 19 / 256 / 2, PARAMETERS * 4 / 2), rel=0.01)  # half of the steps
    # Parts of 8 bits are not all of one length.
    assert traced_bytes(run, 10) == pytest.approx((between, within), rel=0.01)
    a_step = (counted[1] - counted[0]) / 40
    assert 1 <= a_step / (2 * between) < 1.25, counted  # two workers; headers, acknowledgements and heartbeats


# ---- where one of the two is not used -------------------------------------------------------------------------------

def test_on_one_machine_it_is_the_one_for_all(tmp_path: Path) -> None:
    one = train(tmp_path / "one", settings(), workers=2)
    assert_says(one.ended[0].out, "parallel.comm_dtype is not used: every edge of the topology is within a machine")
    assert_same_run(one, train(tmp_path / "fp32", settings({"comm_dtype": "fp32", "comm_dtype_within": None}), workers=2))


@needs_hosts
def test_an_edge_of_several_machines_takes_comm_dtype(two_hosts: list[hosts.Host], tmp_path: Path) -> None:
    """All four are in one."""
    own = settings({"topology": "complete"})
    ended = train_on(two_hosts, tmp_path, own, "--dry-run").ended
    assert_says(ended[0].out, "note: parallel.comm_dtype_within is not used: no edge of the topology", "; 0 B in edges within")


def test_alone_it_means_nothing(tmp_path: Path) -> None:
    alone = train(tmp_path / "alone", settings())
    assert "is not used" not in alone.ended[0].out
    for name, parallel in (("none", {"method": "none"}), ("one", {"comm_dtype_within": None})):
        assert "is not used" not in train(tmp_path / name, settings(parallel), workers=2).ended[0].out


# ---- changes and mistakes -------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("then", "now", "told"), [(None, "fp32", "was null, is fp32"), ("fp32", "bf16", "was fp32, is bf16"),
                                                   ("fp32", "fp32", "")], ids=str)
def test_a_resume_that_changes_it(then: str | None, now: str | None, told: str, tmp_path: Path) -> None:
    """As one that changes comm_dtype: copies are not known to be near by the measure of modulo codes."""
    own = settings({"comm_dtype_within": then}, checkpoint={"every_steps": 12})
    train(tmp_path, merged(own, {"train": {"steps": 12}}), workers=2)
    said = train(tmp_path, merged(own, {"parallel": {"comm_dtype_within": now}}), "--resume", "auto", workers=2).ended[0].out
    assert (AVERAGE in said) == bool(told)
    assert f"parallel.comm_dtype_within {told}" in said if told else "comm_dtype_within was" not in said


def test_refused(tmp_path: Path) -> None:
    assert_says(refused(tmp_path, settings({"method": "all_reduce", "comm_dtype": "fp32"}), workers=2),
                "parallel.comm_dtype_within", "fp32 cannot be used with parallel.method: all_reduce", "valid: null")
    sgd = settings({"comm_dtype": "fp32", "comm_dtype_within": "modulo2"}, optimizer={"name": "sgd"})
    assert_says(refused(tmp_path, sgd), "parallel.comm_dtype_within", "modulo2", "sgd")
    assert_says(refused(tmp_path, settings({"comm_dtype_within": "int4"})), "expected one of fp32, bf16, modulo2, modulo4")


def test_printed_and_old_recipes(tmp_path: Path) -> None:
    printed = attempt(tmp_path, settings({"comm_dtype_within": None}), "--print-config")[0].out
    assert "  comm_dtype_within: null\n" in printed
