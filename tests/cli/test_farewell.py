"""A worker is lost while a run trains: the others finish their step and save it, and the run goes on with as many or with fewer."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import fault_layer
from program import run_workers
from runs import Run, merged, on_each, recipe, write_recipe
from started import GRACE_S, Started

ROUNDS = int(os.environ.get("DECENT_FAREWELL_ROUNDS", "6"))
TIMEOUT_S = 5
FAREWELL_S = 20


@dataclass(frozen=True)
class Setting:
    name: str
    workers: int = 4
    parallel: dict | None = None
    backend: str = "auto"


SETTINGS = [
    Setting("fp32", parallel={"topology": "one-peer-exp"}),
    Setting("fp32 by gloo", parallel={"topology": "one-peer-exp"}, backend="gloo"),
    Setting("bf16", parallel={"comm_dtype": "bf16", "topology": "ring"}),
    Setting("modulo2 in slices", parallel={"comm_dtype": "modulo2", "slices": 4, "topology": "one-peer-exp"}),
    Setting("modulo2 by gloo", parallel={"comm_dtype": "modulo2", "slices": 4, "topology": "one-peer-exp"}, backend="gloo"),
    Setting("edges of 4", parallel={"topology": "complete"}),
    Setting("edges of 4 by gloo", parallel={"topology": "complete"}, backend="gloo"),
    Setting("edges of 4 in bf16", parallel={"topology": "complete", "comm_dtype": "bf16"}),
    Setting("all_reduce", parallel={"method": "all_reduce", "bucket_mb": 0.02}),
    Setting("all_reduce by gloo", parallel={"method": "all_reduce", "bucket_mb": 0.02}, backend="gloo"),
    Setting("8 workers", workers=8),
    Setting("8 workers by gloo", workers=8, parallel={"comm_dtype": "bf16"}, backend="gloo"),
]


def settings_of(setting: Setting, **changes: dict) -> dict:
    """An endless run that evaluates and saves all the time."""
    base = recipe(train={"steps": 1000000}, parallel={"timeout_s": TIMEOUT_S, "farewell_s": FAREWELL_S, "backend": setting.backend},
                  eval={"every_steps": 7}, checkpoint={"every_steps": 5, "keep": 2})
    return merged(merged(base, {"parallel": setting.parallel or {}}), changes)


def manifest_of(checkpoint: Path) -> dict:
    return json.loads("{" + (checkpoint / "manifest.json").read_text().split("\n", 1)[1])


def started(folder: Path, setting: Setting, own: dict, *flags: str) -> Started:
    return Started(setting.workers, folder, False, "--set", "train.steps=1000000", "--set", "log.every_steps=1",
                   "--set", f"parallel.timeout_s={TIMEOUT_S}", "--set", f"parallel.farewell_s={FAREWELL_S}", *flags,
                   config=write_recipe(folder, own))


def last_logged(folder: Path) -> int:
    """The last step of which rank 0 has written a line."""
    steps = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines() if '"train"' in line]
    return max(steps, default=0)


def check_saved(run: Started, lost: list[int]) -> int:
    """The newest checkpoint is of the last step, whole, and without the lost workers; returns its step."""
    said = run.said()
    errors = [line for line in said.splitlines() if line.startswith("decent-train: error:")]
    assert len(errors) == 1, said
    assert re.match(r"decent-train: error: lost worker (\d+) on ", errors[0]), said
    assert int(re.match(r".*lost worker (\d+)", errors[0]).group(1)) in lost, said
    named = re.search(r"The others have saved all steps in '(.*)'; go on with --resume auto", said)
    assert named, said
    ended = Run(run.folder / "run", [])
    step = ended.checkpoints[-1]
    assert Path(named.group(1)).name == f"step-{step:08}", said
    assert step >= last_logged(ended.folder), said
    manifest = manifest_of(ended.checkpoint(step))
    names = {file["name"] for file in manifest["files"]}
    files = {path.name for path in ended.checkpoint(step).glob("rank-*")}
    assert names <= files, (names, files)
    if "lost" in manifest:
        assert manifest["version"] == 3 and manifest["lost"] == sorted(lost), (manifest["lost"], lost)
        assert files == names == {f"rank-{rank:04}.safetensors" for rank in range(manifest["world_size"]) if rank not in lost}
    else:  # the step was saved before
        assert len(names) == manifest["world_size"]
    assert not list((ended.folder / "checkpoints").glob(".step-*")), said
    assert ended.metrics[-1] == {**ended.metrics[-1], "kind": "end", "status": "failed", "step": step}
    assert "lost worker" in (ended.folder / "run.log").read_text()
    return step


def check_resumes(run: Started, step: int, workers: int) -> None:
    ended = run_workers(workers, "--config", run.folder / "recipe.yaml", "--resume", "auto", "--set",
                        f"train.steps={step + 3}", cwd=run.folder)
    assert [each.code for each in ended] == [0] * workers, "\n".join(each.err for each in ended)
    said = "".join(each.out + each.err for each in ended)
    assert f"after step {step} of {step + 3}" in said, said


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_killed_at_random_moments(round_: int, tmp_path: Path) -> None:
    chance = random.Random(round_)
    setting = SETTINGS[round_ % len(SETTINGS)]
    victims = sorted(chance.sample(range(setting.workers), chance.choice([1, 1, 2])))
    with started(tmp_path, setting, settings_of(setting)) as run:
        run.wait_until_it_trains()
        time.sleep(chance.uniform(0, 1.5))
        begin = time.monotonic()
        for victim in victims:
            os.kill(run.processes[victim].pid, signal.SIGKILL)
        codes = run.wait(FAREWELL_S)
        took = time.monotonic() - begin
        assert codes == [-9 if rank in victims else 3 for rank in range(setting.workers)], run.said()
        step = check_saved(run, victims)
        print(f"{setting.name}: lost {victims}, saved step {step} {took:.2f} s later")
        check_resumes(run, step, setting.workers - len(victims) if chance.random() < 0.5 else setting.workers)


@pytest.mark.parametrize("victim", [0, 2])
def test_stopped_worker_writes_nothing_more(victim: int, tmp_path: Path) -> None:
    """Silent for timeout_s; SIGCONT later."""
    setting = SETTINGS[0]
    with started(tmp_path, setting, settings_of(setting)) as run:
        run.wait_until_it_trains()
        os.kill(run.processes[victim].pid, signal.SIGSTOP)
        codes = run.wait(TIMEOUT_S + FAREWELL_S + GRACE_S, without=victim)
        assert codes == [3, 3, 3], run.said()
        step = check_saved(run, [victim])
        before = {path: path.stat().st_mtime_ns for path in sorted((tmp_path / "run").rglob("*"))}
        os.kill(run.processes[victim].pid, signal.SIGCONT)
        assert run.processes[victim].wait(TIMEOUT_S + GRACE_S) == 3
        after = {path: path.stat().st_mtime_ns for path in sorted((tmp_path / "run").rglob("*"))}
        changed = {str(path) for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        assert not {path for path in changed if ".lock" not in path and path != str(tmp_path / "run")}, changed
        check_resumes(run, step, 3)


def test_no_step_is_lost_without_checkpoints(tmp_path: Path) -> None:
    """Where none were asked for, too."""
    setting = SETTINGS[0]
    own = settings_of(setting, checkpoint={"every_steps": None}, eval={"every_steps": None})
    with started(tmp_path, setting, own) as run:
        run.wait_until_it_trains()
        os.kill(run.processes[1].pid, signal.SIGKILL)
        assert run.wait(FAREWELL_S, without=1) == [3, 3, 3], run.said()
        step = check_saved(run, [1])
        assert Run(tmp_path / "run", []).checkpoints == [step]


def test_switched_off(tmp_path: Path) -> None:
    setting = SETTINGS[0]
    own = settings_of(setting, checkpoint={"every_steps": None})
    with started(tmp_path, setting, own, "--set", "parallel.farewell_s=0") as run:
        run.wait_until_it_trains()
        os.kill(run.processes[1].pid, signal.SIGKILL)
        assert run.wait(GRACE_S, without=1) == [3, 3, 3], run.said()
        assert "saved" not in run.said() and Run(tmp_path / "run", []).checkpoints == []


@pytest.mark.parametrize("folders", [("run", "run", "run", "run"), ("run", "b", "c", "d")], ids=["one folder", "folders of their own"])
def test_a_full_disk(folders: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of worker 0's machine. Where others have disks of their own, they save without its copy; else what was saved before stays."""
    setting = SETTINGS[0]
    own = settings_of(setting, checkpoint={"every_steps": None}, eval={"every_steps": None})
    start = ("--set", f"parallel.farewell_s={FAREWELL_S}", "--set", "log.every_steps=1")
    first = on_each(tmp_path, own, "--set", "train.steps=5", "--set", "checkpoint.every_steps=5", *start, outputs=folders)
    assert [each.code for each in first] == [0, 0, 0, 0], first
    full = fault_layer.variables(fault_layer.build(tmp_path), tmp_path / "run" / "checkpoints", FAULT_KIND="ENOSPC", FAULT_CALL="write",
                                 FAULT_AT=1)
    for name, value in full.items():
        monkeypatch.setenv(name, str(value))
    with Started(4, tmp_path, False, *start, "--resume", "auto", config=write_recipe(tmp_path, own), outputs=folders) as run:
        while last_logged(tmp_path / "run") < 20:
            assert all(process.poll() is None for process in run.processes), run.said()
            time.sleep(0.005)
        os.kill(run.processes[1].pid, signal.SIGKILL)
        assert run.wait(FAREWELL_S, without=1) == [3, 3, 3], run.said()
        said = run.said()
    for name in full:
        monkeypatch.delenv(name)
    assert Run(tmp_path / "run", []).checkpoints == [5]
    assert not list((tmp_path / "run" / "checkpoints").glob(".step-*")), said
    if len(set(folders)) == 1:
        assert re.search(r"\nNothing was saved after that: .*No space left on device", said), said
        step = 5
    else:
        step = Run(tmp_path / "c", []).checkpoints[-1]
        assert step >= 20 and Run(tmp_path / "d", []).checkpoints[-1] == step and "have saved all steps" in said, said
        assert manifest_of(Run(tmp_path / "c", []).checkpoint(step))["lost"] == [0, 1]
    ended = on_each(tmp_path, own, "--set", f"train.steps={step + 3}", "--resume", "auto", *start, outputs=folders)
    assert [each.code for each in ended] == [0, 0, 0, 0], ended
    assert f"after step {step} of {step + 3}" in ended[0].out + ended[0].err, ended


def test_a_signal_from_the_launcher_changes_nothing(tmp_path: Path) -> None:
    """torchrun sends SIGTERM to those that are left, which are saving."""
    setting = SETTINGS[0]
    with started(tmp_path, setting, settings_of(setting)) as run:
        run.wait_until_it_trains()
        os.kill(run.processes[1].pid, signal.SIGKILL)
        for rank in (0, 2, 3):
            with suppress(ProcessLookupError):
                os.kill(run.processes[rank].pid, signal.SIGTERM)
        assert run.wait(FAREWELL_S, without=1) == [3, 3, 3], run.said()
        check_saved(run, [1])
