"""What a run shows: a bar on a terminal, plain lines elsewhere, TensorBoard, the last table, --dry-run."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import numpy as np
import pytest

from folders import snapshot
from ports import free_port
from program import PROGRAM, environment, launcher_variables, run_alone
from runs import assert_says, attempt, error_message, recipe, train


# ---- TensorBoard ----------------------------------------------------------------------------------------------------

def test_event_file(tmp_path: Path) -> None:
    """The tensorboard package reads the scalars of metrics.jsonl, in float32."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train(tmp_path, recipe(eval={"every_steps": 4, "metrics": ["accuracy", "top5"]},
                                 parallel={"grad_clip_norm": 1.0}), workers=2)
    files = list(run.folder.glob("events.out.tfevents.*"))
    assert len(files) == 1 and re.fullmatch(r"events\.out\.tfevents\.\d+\..+\.\d+\.0", files[0].name)
    events = EventAccumulator(str(files[0]), size_guidance={"scalars": 0}).Reload()
    found = {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    wanted: dict[str, list] = {}
    for line in run.metrics:
        for key, value in line.items():
            if key not in ("kind", "step", "model", "samples", "status", "wall_s"):
                wanted.setdefault(f"{line['kind']}/{key}", []).append((line["step"], float(np.float32(value))))
    assert found == wanted
    assert {"train/loss", "train/grad_norm", "eval/top5", "eval/consensus_distance"} <= found.keys()


def test_tensorboard_of_a_resumed_run(tmp_path: Path) -> None:
    """Steps that were done again stand there once, as the resumed run did them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    whole = recipe(checkpoint={"every_steps": 4, "keep": 9})
    train(tmp_path, whole)
    run = train(tmp_path, {**whole, "optimizer": {"lr": 0.1}}, "--resume", tmp_path / "run" / "checkpoints" / "step-00000004")
    events = EventAccumulator(str(run.folder), size_guidance={"scalars": 0}).Reload()
    assert len(list(run.folder.glob("events.out.tfevents.*"))) == 2
    losses = {event.step: event.value for event in events.Scalars("train/loss")}
    assert [event.step for event in events.Scalars("train/loss")] == list(range(1, 13))
    assert losses == {line["step"]: np.float32(line["loss"]) for line in run.lines("train")}


def test_without_event_file(tmp_path: Path) -> None:
    run = train(tmp_path, recipe(log={"tensorboard": False}))
    assert not list(run.folder.glob("events*"))


# ---- a terminal -----------------------------------------------------------------------------------------------------

class Terminal:
    """A run on a pseudo terminal; what it wrote."""

    def __init__(self, folder: Path, own: dict, workers: int = 1, columns: int = 100, term: str = "xterm", *flags: str):
        folder.mkdir(exist_ok=True)
        (folder / "recipe.yaml").write_text(json.dumps({"output": str(folder / "run"), **own}))
        self.master, slave = pty.openpty()
        self.resize(columns)
        port = free_port()
        self.processes = [
            subprocess.Popen([str(PROGRAM), "--config", str(folder / "recipe.yaml"), *flags], cwd=folder,
                             env=environment(TERM=term, **(launcher_variables(r, workers, port) if workers > 1 else {})),
                             stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, start_new_session=True)
            for r in range(workers)]
        os.close(slave)
        self.text = ""

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read_until(self, seconds: float, enough=lambda text: False) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not enough(self.text):
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.text += os.read(self.master, 65536).decode()
                except OSError:  # the other end is closed: all have ended
                    break

    def finish(self) -> list[int]:
        self.read_until(60)
        codes = [p.wait(30) for p in self.processes]
        os.close(self.master)
        return codes

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()


LONG = {"train": {"steps": 3000}, "log": {"every_steps": 100, "tensorboard": False},
        "eval": {"every_steps": 1000, "every_epochs": None}}


def shown(text: str) -> list[str]:
    """The lines that stay on the screen: carriage returns and erasures applied, as a terminal does."""
    lines = []
    for raw in text.replace("\r\n", "\n").split("\n"):
        screen = ""
        for part in re.split(r"(\r|\x1b\[K)", raw):
            if part == "\r":
                rest, screen = screen, ""
                hidden = rest
            elif part == "\x1b[K":
                hidden = ""
            elif part:
                screen += part
        lines.append(screen)
    return lines


@pytest.mark.parametrize("workers", [1, 2])
def test_bar_on_a_terminal(workers: int, tmp_path: Path) -> None:
    run = Terminal(tmp_path, recipe(**LONG), workers)
    assert run.finish() == [0] * workers, run.text
    draws = re.findall(r"\r([^\r\n]*?)\x1b\[K", run.text)
    bars = [draw for draw in draws if re.match(r"\[=* *\]  \d+/3000  left ", draw)]
    assert len(bars) >= 3, run.text
    assert all(len(bar) < 100 for bar in bars)
    assert any("loss " in bar and "samples/s" in bar for bar in bars)
    assert any("accuracy " in bar for bar in bars), bars
    lines = shown(run.text)
    # What stays: the lines around it, whole, and no bar.
    assert not any(re.match(r"\[=* ", line) for line in lines), lines
    assert sum(line.startswith("eval at step ") for line in lines) == 3
    assert not any(line.startswith("step ") for line in lines)
    assert any(line.startswith("done: 3000 updates") for line in lines)
    assert "loss" in (tmp_path / "run" / "run.log").read_text()


def test_bar_follows_the_width(tmp_path: Path) -> None:
    own = recipe(**{**LONG, "train": {"steps": 100000}})
    run = Terminal(tmp_path, own, columns=120)
    try:
        run.read_until(30, lambda text: text.count("\x1b[K") > 4)
        run.resize(30)
        before = len(run.text)
        run.read_until(10, lambda text: text[before:].count("\x1b[K") > 6)
        widths = [len(bar) for bar in re.findall(r"\r([^\r\n]*?)\x1b\[K", run.text[before:])]
        assert widths[-3:] and max(widths[-3:]) < 30, widths
        run.processes[0].send_signal(signal.SIGINT)
        assert run.finish() == [75]
        last = shown(run.text)
        assert any(line.startswith("decent-train: stopped after step") for line in last), last
        assert not any(re.match(r"\[=* |\d+/100000", line) for line in last), last
    finally:
        run.stop()


@pytest.mark.parametrize(("term", "flags", "settings", "bar", "plain"), [
    ("dumb", (), {}, False, True), ("xterm", ("--quiet",), {}, False, False),
    ("xterm", (), {"progress": "plain"}, False, True), ("xterm", (), {"progress": "off"}, False, False)])
def test_no_bar(term: str, flags: tuple, settings: dict, bar: bool, plain: bool, tmp_path: Path) -> None:
    own = recipe(**{**LONG, "train": {"steps": 200}, "log": {**LONG["log"], **settings}})
    run = Terminal(tmp_path, own, 1, 100, term, *flags)
    assert run.finish() == [0]
    assert ("\x1b[K" in run.text) == bar
    assert ("step " in run.text and "samples/s" in run.text.split("done:")[0]) == plain


def test_plain_where_stdout_is_a_file(tmp_path: Path) -> None:
    out = train(tmp_path, recipe(**{**LONG, "train": {"steps": 200}})).ended[0].out
    assert "\x1b" not in out and "\r" not in out
    assert_says(out, "step 100/200", "step 200/200", "done: 200 updates", "an update", "samples/s overall",
                "TorchScript", "model.pt")
    assert all(len(line) <= 80 for line in out.split("done:")[1].splitlines() if "/" not in line)


# ---- --dry-run ------------------------------------------------------------------------------------------------------

def dry_run(folder: Path, own: dict, *flags: str, workers: int = 1, local: int | None = None) -> str:
    ended = attempt(folder, own, "--dry-run", *flags, workers=workers, local=local)
    assert [e.code for e in ended] == [0] * workers, ended
    assert [bool(e.out) for e in ended] == [rank == 0 for rank in range(workers)]
    assert {path.name for path in folder.iterdir()} == {"recipe.yaml"}
    return ended[0].out


def test_dry_run_says_what_would_happen(tmp_path: Path) -> None:
    text = dry_run(tmp_path, recipe(parallel={"topology": "one-peer-exp"}, train={"steps": None, "epochs": 2}), workers=4)
    assert_says(text, "17610 parameters to train (68.8 KiB)", "largest: fc1.weight 8192", "buckets    1 of 68.9 KiB",
                "weights 68.9 KiB, gradients 68.9 KiB, exchange 137.8 KiB, optimizer 137.8 KiB",
                "one-peer-exp of 4 workers, 2 phases", "phase 0: {0 1} {2 3}", "phase 1: {0 2} {1 3}", "spectral gap 1.0000",
                "heard of everyone after 2 steps", "sent: 68.9 KiB a worker and step", "1442 samples to train on, 355",
                "90 of 32 samples, 45 an epoch (2 samples left out", "adamw, lr 0.001 at step 1", "nothing was written")


def test_dry_run_of_disconnected_workers(tmp_path: Path) -> None:
    phases = {"phases": [[{"ranks": [0, 1], "weight": 0.5}, {"ranks": [2], "weight": 1}]]}
    text = dry_run(tmp_path, recipe(parallel={"topology": phases, "gamma": 0.5}), workers=3)
    assert_says(text, "custom of 3 workers", "spectral gap 0.0000", "some workers never hear of others")


def test_dry_run_beside_a_run(tmp_path: Path) -> None:
    run = train(tmp_path, recipe())
    before = snapshot(run.folder)
    ended = run_alone("--config", tmp_path / "recipe.yaml", "--dry-run", cwd=tmp_path)
    assert ended.code == 0
    assert_says(ended.out, "note: ", "already holds a run")
    assert snapshot(run.folder) == before


@pytest.mark.parametrize("workers", [1, 3])
def test_dry_run_finds_mistakes(workers: int, tmp_path: Path) -> None:
    for name, own, text in (("loss", recipe(model={"loss": "mse"}), "do not fit the loss mse"),
                            ("size", recipe(data={"batch_size": 5000}), "5000"),
                            ("model", recipe(Path("nowhere.pt")), "nowhere.pt")):
        message = error_message(attempt(tmp_path / name, own, "--dry-run", workers=workers))
        assert_says(message, text)
