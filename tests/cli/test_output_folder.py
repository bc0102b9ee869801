"""The output folder: one that holds a run is left alone, and what cannot be written is told (exit 6)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from folders import snapshot
from program import PROGRAM, run_alone
from runs import assert_says, attempt, error_message, merged, recipe, train

# ---- folders that hold something -----------------------------------------------------------------------------------

@pytest.mark.parametrize("workers", [1, 3])
def test_folder_that_holds_a_run(workers: int, tmp_path: Path) -> None:
    run = train(tmp_path, recipe())
    before = snapshot(run.folder)
    message = error_message(attempt(tmp_path, recipe(seed=1), workers=workers))
    assert_says(message, run.folder, "already holds a run", "--resume auto", "--set output=")
    assert snapshot(run.folder) == before


@pytest.mark.parametrize("name", ["recipe.yaml", "metrics.jsonl", "checkpoints"])
def test_any_sign_of_a_run(name: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / name).mkdir() if name == "checkpoints" else (run / name).touch()
    before = snapshot(run)
    assert_says(error_message(attempt(tmp_path, recipe())), run, name, "--resume auto", "--set output=")
    assert snapshot(run) == before


def test_folder_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    assert train(tmp_path, recipe()).lines("end")
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"


def test_print_config_works_on_the_folder_of_a_run(tmp_path: Path) -> None:
    run = train(tmp_path, recipe())
    assert run_alone("--config", run.folder / "recipe.yaml", "--print-config", cwd=tmp_path).code == 0


# ---- folders that cannot be made -----------------------------------------------------------------------------------

@pytest.mark.parametrize("workers", [1, 3])
def test_output_is_a_file(workers: int, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    assert_says(error_message(attempt(tmp_path, recipe(), workers=workers)), tmp_path / "run", "file", "--set output=")
    assert (tmp_path / "run").read_text() == "mine"


@pytest.mark.parametrize("workers", [1, 3])
def test_output_in_a_file(workers: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    settings = recipe(output=str(tmp_path / "file" / "run"))
    assert_says(error_message(attempt(tmp_path, settings, workers=workers), code=6), tmp_path / "file" / "run")
    assert (tmp_path / "file").read_text() == "mine"


def test_output_where_nothing_can_be_written(tmp_path: Path) -> None:
    settings = recipe(output="/proc/decent-train-test/run")
    assert_says(error_message(attempt(tmp_path, settings), code=6), "/proc/decent-train-test/run")


# ---- a full disk ---------------------------------------------------------------------------------------------------

@pytest.fixture
def small_disk(tmp_path_factory: pytest.TempPathFactory):
    """size in bytes -> folder on a file system of that size."""
    mounted = []

    def mount(size: int) -> Path:
        folder = tmp_path_factory.mktemp("disk")
        if os.geteuid() != 0:
            pytest.skip("mounting a small file system needs root")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True)
        if done.returncode != 0:
            pytest.skip(f"no small file system can be mounted here: {done.stderr.decode().strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


def test_what_a_killed_run_left_is_removed_when_it_is_resumed(tmp_path: Path) -> None:
    settings = recipe(train={"steps": 2}, checkpoint={"every_steps": 2})
    folder = train(tmp_path, settings).folder
    left = {"model.pt.0123abcd.tmp", "metrics.jsonl.ffffffff.tmp", ".worker-0-1"}
    others = {"model.pt.tmp", "model.pt.0123abc.tmp", "notes.0123abcd.tmp"}
    for name in left | others:
        (folder / name).write_text("x")
    train(tmp_path, {**settings, "train": {"steps": 3}}, "--resume", "auto")
    names = {path.name for path in folder.iterdir()}
    assert not left & names and others <= names, names


# Pages of the disk -> the files that may be the first that cannot be written. Every file takes a page or more.
FULL = {2: ["run.log", "data.json", "metrics.jsonl", "events.out.tfevents."],
        3: ["run.log", "data.json", "metrics.jsonl", "events.out.tfevents."],
        13: ["model.pt"], 31: ["model.safetensors"]}


@pytest.mark.parametrize("pages", FULL)
@pytest.mark.parametrize("workers", [1, 2])
def test_full_disk(pages: int, workers: int, small_disk, tmp_path: Path) -> None:
    disk = small_disk(4096 * pages)
    ended = attempt(tmp_path, recipe(output=str(disk / "run"), train={"steps": 5}), "--quiet", workers=workers)
    text = "\n".join(f"exit {e.code}: {e.err}{e.out}" for e in ended)
    message = ended[0].err
    assert ended[0].code == 6 and message.startswith("decent-train: error: "), text
    assert len(message.splitlines()) <= 5, text
    named = [name for name in FULL[pages] if f"'{disk / 'run' / name}" in message]
    assert len(named) == 1, text
    assert_says(message, "cannot write", "No space left on device")
    left = {path.name for path in (disk / "run").iterdir()}
    assert not [name for name in left if name.endswith(".tmp")]
    assert "model.safetensors" not in left
    assert ("model.pt" in left) == (named == ["model.safetensors"])
    if "model.pt" in left:
        import torch

        torch.jit.load(str(disk / "run" / "model.pt"))  # it is whole
    # Another worker hears of it, or loses worker 0.
    assert all(e.code in (3, 6) for e in ended[1:]), text


def test_closed_pipe_is_an_error_not_a_death(tmp_path: Path) -> None:
    """SIGPIPE would end a worker with the wrong exit code when a peer, or a reader of its output, goes away."""
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([PROGRAM, "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    assert ended.returncode == 6, ended.stderr
    assert "cannot write to stdout" in ended.stderr


@pytest.mark.parametrize("name", [".lock", "metrics.jsonl", "run.log"])
@pytest.mark.parametrize("flags", [(), ("--resume", "auto")], ids=["new", "resume"])
def test_a_pipe_in_place_of_a_file(name: str, flags: tuple, tmp_path: Path) -> None:
    """Its opening would wait for another program."""
    own = recipe(train={"steps": 2})
    if flags:
        train(tmp_path, merged(own, {"checkpoint": {"every_steps": 1}}))
    (tmp_path / "run").mkdir(exist_ok=True)
    (tmp_path / "run" / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / "run" / name)
    ended = attempt(tmp_path, own, *flags, "--set", "train.steps=3")
    if name == "metrics.jsonl":  # it is a sign of a run, or read first
        assert_says(error_message(ended), "metrics.jsonl")
    else:
        assert_says(error_message(ended, code=6), f"cannot write '{tmp_path / 'run' / name}': it is a pipe, not a file")


@pytest.mark.parametrize("name", ["model.pt", "model.safetensors", "model-best.pt", "data.json", "run.log", "report.html"])
@pytest.mark.parametrize("flags", [(), ("--resume", "auto")], ids=["new", "resume"])
def test_a_folder_in_place_of_a_file(name: str, flags: tuple, tmp_path: Path) -> None:
    """Before training, not when the file is written at last."""
    own = recipe(train={"steps": 2}, checkpoint={"every_steps": 1, "keep_best": "loss"}, eval={"every_steps": 1})
    if flags:
        train(tmp_path, own)
    (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "run" / name).mkdir(parents=True)
    before = snapshot(tmp_path / "run")
    for workers in (1, 2):
        ended = attempt(tmp_path, own, *flags, "--set", "train.steps=3", workers=workers)
        assert_says(error_message(ended), f"'{tmp_path / 'run' / name}' is a folder", "--set output=DIR")
    assert snapshot(tmp_path / "run") == before


@pytest.mark.parametrize(("flag", "name"), [("--export", "x.pt"), ("--export", "x.safetensors"), ("--predict", "x.csv")])
def test_a_folder_in_place_of_an_exported_file(flag: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    own = recipe(data={"predict": {"format": "builtin", "name": "digits", "split": "test"}})
    ended = attempt(tmp_path, own, "--checkpoint", "none", flag, tmp_path / name)
    assert_says(error_message(ended), flag, f"'{tmp_path / name}' is a folder", "choose another name or folder")
