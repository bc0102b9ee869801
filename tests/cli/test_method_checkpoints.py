"""Checkpoints of runs by all_reduce: parameters and optimizer state once for each folder, buffers of every worker; what is read
from them, and what becomes of files that are lost.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import hosts
from host_runs import check_well, run_on
from methods import ALL, FP16, by, files_of, mean, part
from program import Ended, run_workers
from runs import DIGITS_MLP, Run, assert_says, error_message, merged, train
from tensors import differing, read_safetensors, same_bits

REASON = hosts.why_not()
on_two_hosts = pytest.mark.skipif(REASON is not None, reason=str(REASON))
ALLOW = ("--set", "checkpoint.allow_missing=true")
SETTINGS = by("all_reduce", train={"steps": 8}, eval={"every_steps": 8}, checkpoint={"every_steps": 4})


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three workers, checkpoints after steps 4 and 8."""
    return train(tmp_path_factory.mktemp("three"), SETTINGS, workers=3)


@pytest.fixture
def copy(three: Run, tmp_path: Path) -> Run:
    shutil.copytree(three.folder, tmp_path / "run")
    return Run(tmp_path / "run", [])


def use(run: Run, *flags: object, workers: int = 1) -> list[Ended]:
    """The recipe in the folder of a run."""
    folder = run.folder.parent
    (folder / "use.yaml").write_text(json.dumps({**SETTINGS, "output": str(run.folder)}))
    return run_workers(workers, "--config", folder / "use.yaml", *flags, cwd=folder)


def kinds(tensors: dict[str, np.ndarray]) -> set[str]:
    """Besides the losses that the next line of the metrics sums up, which every worker has its own of."""
    assert "log.losses" in tensors
    return {name.partition(".")[0] for name in tensors} - {"log"}


# ---- what is in them -----------------------------------------------------------------------------------------------

def test_parameters_once_and_buffers_of_every_worker(three: Run) -> None:
    for step in (4, 8):
        first, *others = files_of(three, step)
        assert kinds(first) == {"model", "optimizer", "buffer"} and [kinds(tensors) for tensors in others] == [{"buffer"}] * 2
        assert all(part(tensors, "buffer.").keys() == part(first, "buffer.").keys() for tensors in others)
        name = "buffer.norm1.running_mean"
        assert len({tensors[name].tobytes() for tensors in (first, *others)}) == 3  # each its own
        manifest = json.loads((three.checkpoint(step) / "manifest.json").read_text())
        assert manifest["world_size"] == 3 and len(manifest["files"]) == 3
    files = files_of(three, 8)
    for name, tensor in three.weights.items():
        kept = files[0].get(f"model.{name}")
        assert same_bits(tensor, mean(files, f"buffer.{name}") if kept is None else kept), name


def test_model_without_buffers(tmp_path: Path) -> None:
    """Then files of the others have nothing of their own, and the run goes on all the same."""
    own = by("all_reduce", DIGITS_MLP, train={"steps": 3}, checkpoint={"every_steps": 3})
    run = train(tmp_path, own, workers=2)
    assert kinds(files_of(run, 3)[0]) == {"model", "optimizer"}
    more = train(tmp_path, merged(own, {"train": {"steps": 6}}), "--resume", "auto", workers=2)
    whole = train(tmp_path / "whole", merged(own, {"train": {"steps": 6}}), workers=2)
    assert differing(more.weights, whole.weights) == []


def test_none_keeps_every_copy(tmp_path: Path) -> None:
    run = train(tmp_path, merged(SETTINGS, {"parallel": {"method": "none"}}), workers=2)
    assert [kinds(tensors) for tensors in files_of(run, 8)] == [{"model", "optimizer", "buffer"}] * 2


# ---- what is read from them ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("workers", [1, 2, 3, 5] if ALL else [1, 3])
def test_evaluated_and_exported_as_in_training(workers: int, copy: Run) -> None:
    in_training = copy.evaluation
    flags = ("--eval-only", "--export", copy.folder.parent / "x.safetensors")
    ended = use(copy, *flags, workers=workers)
    assert [e.code for e in ended] == [0] * workers and "".join(e.err for e in ended) == "", ended
    again = copy.evaluation
    assert len(copy.lines("eval")) == 2 and again.keys() == in_training.keys()
    for key, value in in_training.items():
        assert again[key] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-6)), key
    assert again["consensus_distance"] == 0
    assert differing(read_safetensors(copy.folder.parent / "x.safetensors"), copy.weights) == []


# ---- files that are lost -------------------------------------------------------------------------------------------

def test_lost_buffers_of_a_worker(copy: Run) -> None:
    """The parameters are there; the average of buffers is that of the others."""
    (copy.checkpoint(8) / "rank-0001.safetensors").unlink()
    out = copy.folder.parent / "x.safetensors"
    assert_says(error_message(use(copy, "--export", out, "--checkpoint", copy.checkpoint(8)), code=4), "rank-0001.safetensors",
                "checkpoint.allow_missing=true")
    ended = use(copy, "--export", out, "--checkpoint", copy.checkpoint(8), *ALLOW)
    assert ended[0].code == 0, ended
    assert_says(ended[0].err, "warning: ", "1 of 3")
    left = files_of(copy, 8)
    for name, tensor in read_safetensors(out).items():
        kept = left[0].get(f"model.{name}")
        assert same_bits(tensor, mean(left, f"buffer.{name}") if kept is None else kept), name


@pytest.mark.parametrize("workers", [2, 3] if ALL else [3])
def test_goes_on_without_the_buffers_of_a_worker(workers: int, copy: Run) -> None:
    (copy.checkpoint(8) / "rank-0002.safetensors").unlink()
    own = merged(SETTINGS, {"train": {"steps": 9}, "optimizer": {"lr": 1e-30}, "checkpoint": {"allow_missing": True}})
    before = files_of(copy, 8)[0]
    run = train(copy.folder.parent, own, "--resume", copy.checkpoint(8), workers=workers)
    after = files_of(run, 9)
    assert differing(part(after[0], "model."), part(before, "model.")) == [] and len(after) == workers


def test_lost_parameters(copy: Run) -> None:
    """No other file of this folder has them: auto takes the checkpoint before, and nothing is offered for this one."""
    (copy.checkpoint(8) / "rank-0000.safetensors").unlink()
    flags = ("--export", copy.folder.parent / "x.safetensors", "--checkpoint", copy.checkpoint(8))
    for more in ((), ALLOW):
        message = error_message(use(copy, *flags, *more), code=4)
        assert_says(message, copy.checkpoint(8), "rank-0000.safetensors")
    own = merged(SETTINGS, {"train": {"steps": 9}})
    run = train(copy.folder.parent, own, "--resume", "auto", *ALLOW, workers=3)
    assert f"resuming from '{run.checkpoint(4)}', after step 4 of 9" in run.ended[0].out


@pytest.mark.parametrize("rank", [0, 1])
def test_damaged_file(rank: int, copy: Run) -> None:
    file = copy.checkpoint(8) / f"rank-{rank:04}.safetensors"
    content = bytearray(file.read_bytes())
    content[-5] ^= 4
    file.write_bytes(content)
    message = error_message(use(copy, "--export", copy.folder.parent / "x.safetensors", "--checkpoint", copy.checkpoint(8)), code=4)
    assert_says(message, file)


def test_lost_scale_is_that_of_the_others(tmp_path: Path) -> None:
    """float16: one scale for all. A file that is lost takes none with it."""
    own = merged(SETTINGS, FP16)
    run = train(tmp_path, own, workers=2)
    (run.checkpoint(8) / "rank-0001.safetensors").unlink()
    scale = files_of(run, 8)[0]["scaler.scale"]
    more = merged(own, {"train": {"steps": 9}, "checkpoint": {"allow_missing": True}})
    again = train(tmp_path, more, "--resume", run.checkpoint(8), workers=2)
    assert again.lines("train")[-1]["loss_scale"] == float(scale) != 2.0**22


# ---- two machines --------------------------------------------------------------------------------------------------

APART = merged(SETTINGS, {"parallel": {"timeout_s": 20}})


@pytest.fixture
def two_hosts():
    with hosts.hosts(2) as made:
        yield made


def of_host(folder: Path, host: str, step: int) -> dict[str, dict[str, np.ndarray]]:
    """By file name."""
    checkpoint = Run(folder / host, []).checkpoint(step)
    return {file.name: read_safetensors(file) for file in sorted(checkpoint.glob("rank-*"))}


@on_two_hosts
def test_each_folder_has_the_parameters(two_hosts, tmp_path: Path) -> None:
    """In the file of its lowest rank, in the same bits. A run that goes on is the run that was never stopped, also on machines
    that have changed places, and from the files of one machine alone.
    """
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    longer = merged(APART, {"train": {"steps": 12}})
    check_well(run_on(two_hosts, whole, longer))
    check_well(run_on(two_hosts, parts, APART))
    a, b = (of_host(parts, host, 8) for host in ("a", "b"))
    everything, buffers = {"model", "optimizer", "buffer"}, {"buffer"}
    assert {name: kinds(tensors) for name, tensors in (a | b).items()} == {
        "rank-0000.safetensors": everything, "rank-0001.safetensors": buffers,
        "rank-0002.safetensors": everything, "rank-0003.safetensors": buffers}
    first, third = a["rank-0000.safetensors"], b["rank-0002.safetensors"]
    for kind in ("model.", "optimizer."):
        assert differing(part(first, kind), part(third, kind)) == []

    lost = tmp_path / "lost"
    shutil.copytree(parts, lost)
    swapped = tmp_path / "swapped"
    shutil.copytree(parts, swapped)
    check_well(run_on(two_hosts, parts, longer, "--resume", "auto"))
    expected = (whole / "a" / "model.safetensors").read_bytes()
    assert (parts / "a" / "model.safetensors").read_bytes() == expected

    (swapped / "b" / "metrics.jsonl").write_bytes((swapped / "a" / "metrics.jsonl").read_bytes())
    check_well(run_on(two_hosts, swapped, longer, "--resume", "auto", folders=("b", "a")))
    assert (swapped / "b" / "model.safetensors").read_bytes() == expected

    check_lost_host(two_hosts, lost, longer)


def check_lost_host(made: list[hosts.Host], folder: Path, longer: dict) -> None:
    """Without the first machine's files, the second one's are enough where that is allowed."""
    shutil.rmtree(folder / "a" / "checkpoints")
    kept = of_host(folder, "b", 8)["rank-0002.safetensors"]
    ended = run_on(made, folder, longer, "--resume", "auto")
    assert {e.code for e in ended} == {4}, ended
    assert_says("".join(e.err for e in ended), "checkpoint.allow_missing=true")
    still = merged(longer, {"train": {"steps": 9}, "optimizer": {"lr": 1e-30}, "checkpoint": {"allow_missing": True}})
    ended = run_on(made, folder, still, "--resume", "auto")
    check_well(ended)
    assert_says("".join(e.err for e in ended), "replicas 0, 1 of 4")
    for host, name in (("a", "rank-0000.safetensors"), ("b", "rank-0002.safetensors")):
        assert differing(part(of_host(folder, host, 9)[name], "model."), part(kept, "model.")) == []
