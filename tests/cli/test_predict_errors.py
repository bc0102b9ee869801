"""--predict: every mistake has its message, and a file appears whole or not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ports import free_port
from predictions import FORMATS, predict
from program import PROGRAM, environment, launcher_variables
from runs import DIGITS, assert_says, error_message, flag_error, merged, recipe
from tensors import write_safetensors

AS_IT_IS = ("--checkpoint", "none")


@pytest.fixture
def settings() -> dict:
    return recipe(data={"predict": DIGITS["test"]})


def refused(folder: Path, changed: dict, name: str, *flags: object, code: int = 2, workers: int = 2) -> str:
    """The message; nothing is in the folder after it that was not there before."""
    before = {path for path in folder.rglob("*")}
    message = error_message(predict(folder, changed, name, *flags, workers=workers), code)
    assert {path for path in folder.rglob("*")} - before <= {folder / "predict.yaml"}
    return message


# ---- flags and keys -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("name", "nearest"), [("out.json", ".jsonl"), ("out.np", ".npz"), ("out.CSV", ".csv"), ("out", None),
                                               ("out.parquet", None)])
def test_a_name_that_ends_in_something_else(name: str, nearest: str | None) -> None:
    message = flag_error("--config", "r.yaml", "--predict", name)
    assert_says(message, f"--predict '{name}'", "must end in .npz, .safetensors, .csv, .jsonl or /")
    assert message.strip().endswith(f"did you mean '{nearest}'?" if nearest else "or /")


@pytest.mark.parametrize(("flags", "says"), [
    (("--resume", "auto"), "--resume trains, --eval-only, --predict and --export do not"),
    (("--dry-run",), "--dry-run and --eval-only, --predict or --export exclude each other"),
    (("--workers", "2", "--max-restarts", "1"), "--max-restarts is for training"),
    (("--predict", "b.csv"), "--predict is given more than once")])
def test_flags_that_do_not_go_with_it(flags: tuple, says: str) -> None:
    assert_says(flag_error("--config", "r.yaml", "--predict", "out.csv", *flags), says)


def test_nothing_to_predict_on(settings: dict, tmp_path: Path) -> None:
    message = refused(tmp_path, merged(settings, {"data": {"predict": None}}), "out.csv", *AS_IT_IS)
    assert_says(message, "--predict", "data.predict is null", "--set 'data.predict={format: npz, path: new.npz}'")


def test_no_checkpoint(settings: dict, tmp_path: Path) -> None:
    assert_says(refused(tmp_path, settings, "out.csv"), "there is no checkpoint in", "--checkpoint none")


def test_a_field_that_the_model_asks_for(settings: dict, tmp_path: Path) -> None:
    write_safetensors(tmp_path / "new.safetensors", {"xs": np.zeros((3, 64), np.float32)})
    source = {"format": "safetensors", "path": str(tmp_path / "new.safetensors")}
    message = refused(tmp_path, merged(settings, {"data": {"predict": source}}), "out.csv", *AS_IT_IS)
    assert_says(message, "data.predict has no field 'x'", "model.inputs", "did you mean 'xs'?")


def test_data_that_is_not_there(settings: dict, tmp_path: Path) -> None:
    away = {"format": "npz", "path": "gone.npz"}
    assert_says(refused(tmp_path, merged(settings, {"data": {"predict": away}}), "out.csv", *AS_IT_IS), "data.predict", "gone.npz")


def test_data_of_another_shape(settings: dict, tmp_path: Path) -> None:
    write_safetensors(tmp_path / "new.safetensors", {"x": np.zeros((3, 5), np.float32)})
    source = {"format": "safetensors", "path": str(tmp_path / "new.safetensors")}
    message = refused(tmp_path, merged(settings, {"data": {"predict": source}}), "out.csv", *AS_IT_IS)
    assert_says(message, "data.predict")


def test_a_wrong_source(settings: dict, tmp_path: Path) -> None:
    message = refused(tmp_path, merged(settings, {"data": {"predict": {"format": "builtin", "nam": "digits"}}}), "out.csv")
    assert_says(message, "data.predict.nam: unknown key; did you mean 'name'?")


# ---- the file -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("suffix", FORMATS)
def test_a_folder_that_is_not_there(suffix: str, settings: dict, tmp_path: Path) -> None:
    message = refused(tmp_path, settings, f"no/folder/out{suffix}", *AS_IT_IS, code=6)
    assert_says(message, f"cannot write 'no/folder/out{suffix}'")


def test_a_name_that_is_a_folder(settings: dict, tmp_path: Path) -> None:
    (tmp_path / "out.csv").mkdir()
    assert_says(refused(tmp_path, settings, "out.csv", *AS_IT_IS), "--predict: 'out.csv' is a folder")


@pytest.mark.parametrize("there", ["a file", "an empty file", "a folder"])
def test_something_that_has_the_name_of_a_folder_of_masks(there: str, settings: dict, tmp_path: Path) -> None:
    """Refused before the model is read: there is none. An empty folder is taken."""
    away = merged(settings, {"model": {"path": "gone.pt"}})
    place = tmp_path / "masks"
    if there == "a folder":
        place.mkdir()
        assert_says(refused(tmp_path, away, "masks/", *AS_IT_IS), "gone.pt")
        (place / "0.png").touch()
    else:
        place.write_text("older" if there == "a file" else "")
    message = refused(tmp_path, away, "masks/", *AS_IT_IS)
    assert_says(message, "--predict 'masks/': there is something of this name already; remove it, or choose another name")


@pytest.mark.parametrize("key", ["train", "eval", "predict"])
def test_a_file_that_is_read(key: str, settings: dict, tmp_path: Path) -> None:
    write_safetensors(tmp_path / "d.safetensors", {"x": np.zeros((3, 64), np.float32), "y": np.zeros(3, np.int64)})
    source = {"format": "safetensors", "path": str(tmp_path / "d.safetensors")}
    (tmp_path / "link.safetensors").symlink_to("d.safetensors")
    for name in ("d.safetensors", "../" + tmp_path.name + "/d.safetensors", "link.safetensors"):
        message = refused(tmp_path, merged(settings, {"data": {key: source}}), name, *AS_IT_IS)
        assert_says(message, "--predict", f"is the same file as the data (data.{key})", "never written over")


def test_files_of_the_run(settings: dict, tmp_path: Path) -> None:
    for name in ("run/metrics.jsonl", "run/model.safetensors", "./run/eval-classes.csv"):
        assert_says(refused(tmp_path, settings, name, *AS_IT_IS), f"--predict: '{name}' is the run's", "choose another name")
    message = refused(tmp_path, settings, "a.safetensors", *AS_IT_IS, "--export", "./a.safetensors")
    assert_says(message, "'a.safetensors' is the file of --export")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems")
@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("options", ["ro", "size=24k"])
def test_a_disk_that_is_full_or_read_only(options: str, suffix: str, settings: dict, tmp_path: Path) -> None:
    """In a mount namespace of its own. Nothing is left, and the older file stays."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "r.yaml").write_text(json.dumps({**settings, "output": "run"}))
    script = (f"mount -t tmpfs none disk && echo older > disk/out{suffix} && mount -o remount,{options} disk && "
              f"{{ \"$@\"; code=$?; ls -A disk; cat disk/out{suffix}; exit $code; }}")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", str(PROGRAM), "r.yaml", "--workers", "2", "--predict",
                           f"disk/out{suffix}", *AS_IT_IS], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    if "mount: " in done.stderr or "unshare" in done.stderr:
        pytest.skip("file systems cannot be mounted here")
    assert done.returncode == 6, done
    assert_says(done.stderr, f"cannot write 'disk/out{suffix}'")
    assert len(done.stderr.splitlines()) == 1 and done.stdout.splitlines()[-2:] == [f"out{suffix}", "older"]


# ---- ends -----------------------------------------------------------------------------------------------------------

class Slow(nn.Module):
    """Takes its time for a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(8000):
            x = x.flatten(1) @ torch.eye(64)
        return self.fc(x)


def test_a_worker_that_is_killed_and_an_interrupt(tmp_path: Path) -> None:
    torch.jit.script(Slow()).save(str(tmp_path / "slow.pt"))
    changed = recipe(tmp_path / "slow.pt", data={"predict": DIGITS["train"], "eval_batch_size": 2}, parallel={"timeout_s": 5})
    (tmp_path / "r.yaml").write_text(json.dumps({**changed, "output": "run"}))
    for ends, code in ((signal.SIGKILL, 3), (signal.SIGINT, None)):
        port = free_port()
        workers = [subprocess.Popen([PROGRAM, "r.yaml", "--predict", "out.csv", *AS_IT_IS], cwd=tmp_path, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, env=environment(**launcher_variables(rank, 2, port)))
                   for rank in range(2)]
        try:
            deadline = time.monotonic() + 60
            while not any(path.stat().st_size for path in tmp_path.glob("out.csv.*")):
                assert time.monotonic() < deadline and all(worker.poll() is None for worker in workers)
                time.sleep(0.05)
            time.sleep(2)  # heartbeats tell what a worker is at
            (workers[1] if ends == signal.SIGKILL else workers[0]).send_signal(ends)
            errors = [worker.communicate(timeout=40)[1] for worker in workers]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        assert not (tmp_path / "out.csv").exists()
        for left in tmp_path.glob("out.csv.*.tmp"):  # as of every process that is killed
            left.unlink()
        if code:
            assert workers[0].returncode == code
            assert_says(errors[0], "lost worker 1", "predicting")
        else:
            assert workers[0].returncode != 0 and workers[1].returncode == 3, errors
