"""Two machines without a shared file system: each keeps the files of its own workers, and together they have all."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import hosts
from host_runs import check_well, commands_on, run_on
from program import run_alone
from runs import Run, assert_says, merged, recipe, train

REASON = hosts.why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
SETTINGS = recipe(train={"steps": 300}, parallel={"topology": "ring", "timeout_s": 20}, eval={"every_steps": 100},
                  checkpoint={"every_steps": 50}, log={"every_steps": 10})
# On one host: the average of all four is added up in the same order as between hosts.
BY_GLOO = merged(SETTINGS, {"parallel": {"backend": "gloo"}})


@pytest.fixture
def two_hosts():
    with hosts.hosts(2) as made:
        yield made


def files_of(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*")}


def stop_on_the_way(made: list[hosts.Host], folder: Path) -> int:
    """SIGTERM to the last worker; the step after which all stopped."""
    commands, environments = commands_on(made, folder, SETTINGS)
    with (folder / "err").open("w") as err:
        processes = [subprocess.Popen([str(part) for part in command], env=variables, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=err)
                     for command, variables in zip(commands, environments)]
        try:
            metrics = folder / "a" / "metrics.jsonl"
            deadline = time.monotonic() + 60
            while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
                time.sleep(0.005)
            os.kill(processes[3].pid, signal.SIGTERM)  # ip has become the program
            codes = [p.wait(60) for p in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
    assert codes == [75] * 4, (folder / "err").read_text()
    return Run(folder / "a", []).metrics[-1]["step"]


def test_stop_resume_export(two_hosts, tmp_path: Path) -> None:
    undisturbed = train(tmp_path / "whole", BY_GLOO, workers=4)
    folder = tmp_path / "apart"
    folder.mkdir()
    step = stop_on_the_way(two_hosts, folder)
    a, b = Run(folder / "a", []), Run(folder / "b", [])
    assert files_of(a.checkpoint(step)) == {"data.json", "manifest.json", "rank-0000.safetensors", "rank-0001.safetensors"}
    assert files_of(b.checkpoint(step)) == {"data.json", "manifest.json", "rank-0002.safetensors", "rank-0003.safetensors"}
    assert files_of(b.folder) == {"checkpoints", "data.json", "metrics.jsonl", "run.json"}

    check_well(run_on(two_hosts, folder, SETTINGS, "--resume", "auto"))
    assert a.metrics_without_times == undisturbed.metrics_without_times
    assert (a.folder / "model.safetensors").read_bytes() == (undisturbed.folder / "model.safetensors").read_bytes()
    assert a.checkpoints == b.checkpoints == [200, 250, 300]

    # Two workers of four hold no replica of their own number on the right machine: all is gathered.
    for workers, flags in ((2, []), (4, ["--eval-only"])):
        check_well(run_on(two_hosts, folder, SETTINGS, "--export", folder / f"{workers}.safetensors", *flags,
                          workers=workers))
    assert (folder / "2.safetensors").read_bytes() == (folder / "4.safetensors").read_bytes()
    in_training, again = [line for line in a.lines("eval") if line["step"] == 300]
    assert again["loss"] == pytest.approx(in_training["loss"], rel=1e-6)


def test_machines_change_places(two_hosts, tmp_path: Path) -> None:
    """Every worker finds itself on the machine without its file: the files travel, the bits stay."""
    half = merged(SETTINGS, {"train": {"steps": 150}, "schedule": {"name": "constant"}})
    undisturbed = train(tmp_path / "whole", BY_GLOO, workers=4)
    folder = tmp_path / "apart"
    check_well(run_on(two_hosts, folder, half))
    shutil.copy(folder / "a" / "metrics.jsonl", folder / "b" / "metrics.jsonl")
    check_well(run_on(two_hosts, folder, SETTINGS, "--resume", "auto", folders=("b", "a")))
    b = Run(folder / "b", [])
    assert (b.folder / "model.safetensors").read_bytes() == (undisturbed.folder / "model.safetensors").read_bytes()


def test_a_machine_is_lost(two_hosts, tmp_path: Path) -> None:
    half = merged(SETTINGS, {"train": {"steps": 50}})
    check_well(run_on(two_hosts, tmp_path, half))
    shutil.rmtree(tmp_path / "b")
    ended = run_alone("--config", tmp_path / "a.yaml", "--eval-only", cwd=tmp_path)
    assert ended.code == 4
    assert_says(ended.err, "step-00000050' is not whole: replicas 2, 3 of 4", "checkpoint.allow_missing=true")
    ended = run_alone("--config", tmp_path / "a.yaml", "--eval-only", "--set", "checkpoint.allow_missing=true", cwd=tmp_path)
    assert ended.code == 0 and "replicas 2, 3 of 4 cannot be read" in ended.err, ended
    # The whole run goes on without them.
    more = merged(half, {"train": {"steps": 100}, "checkpoint": {"allow_missing": True}})
    ended = run_on(two_hosts, tmp_path, more, "--resume", "auto")
    check_well(ended)
    assert_says(ended[0].err, "replicas 2, 3 of 4 cannot be read")
    assert Run(tmp_path / "b", []).checkpoints == [100]
