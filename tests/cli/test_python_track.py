"""decent-track: runs at TensorBoard, Trackio and wandb (offline), each read back with the tracker's own means."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from digits_runs import CONFIG
from program import run_alone
from started import Started
from tracked import (KILLS, LINES, Place, Tensorboard, Trackio, Wandb, add_lines, assert_has, end_group, end_line, eval_line,
                     lines_of, made_run, train_lines, write_lines, write_starts)

PLACES = (Tensorboard, Trackio, Wandb)


@pytest.fixture(params=PLACES, ids=lambda place: place.name)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return request.param(tmp_path / "place")


def test_run_of_the_program(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert run_alone("--config", CONFIG, "--set", "train.epochs=2", "--set", f"output={folder}").code == 0
    before = {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in folder.iterdir()}
    place.send(folder)
    assert_has(place, lines_of(folder), "digits")
    if place.has_files:
        names = {"model.pt", "model.safetensors", "recipe.yaml", "data.json", "report.html"}
        assert place.file_names("digits") == names & {file.name for file in folder.iterdir()} and "model.pt" in before
    place.send(folder)  # has nothing to add
    assert_has(place, lines_of(folder), "digits")
    assert before == {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in folder.iterdir()}


def test_many_lines(place: Place, tmp_path: Path) -> None:
    lines = train_lines(1, LINES) + [eval_line(LINES), end_line(LINES)]
    folder = made_run(tmp_path / "run", lines)
    begin = time.monotonic()
    place.send(folder)
    seconds = time.monotonic() - begin
    print(f"{place.name}: {len(lines)} lines in {seconds:.1f} s")
    assert_has(place, lines)


def test_numbers_that_are_not_finite(place: Place, tmp_path: Path) -> None:
    lines = train_lines(1, 3) + [eval_line(3), end_line(3, "failed")]
    lines[1] |= {"loss": None, "grad_norm": None}
    lines[3] |= {"accuracy": None}
    place.send(made_run(tmp_path / "run", lines))
    assert_has(place, lines)


def test_tracker_that_is_killed_goes_on(place: Place, tmp_path: Path) -> None:
    lines = train_lines(1, LINES) + [eval_line(LINES), end_line(LINES)]
    folder = made_run(tmp_path / "run", lines[:10])
    chance = random.Random(place.name)
    for kill in range(KILLS):
        tracking = place.start(folder, "--follow")
        first, last = len(lines_of(folder)), (kill + 1) * (LINES - 20) // KILLS
        for at in range(first, last, 100):
            add_lines(folder, lines[at:min(at + 100, last)])
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 3))
        tracking.kill()
        tracking.communicate()
    add_lines(folder, lines[len(lines_of(folder)):])
    place.send(folder)
    assert_has(place, lines)


def test_killed_and_resumed_run_is_followed(place: Place, tmp_path: Path) -> None:
    """As a living run, over its kill and its resume; then the tracker ends by itself."""
    same = ("--set", "log.every_steps=5", "--set", "checkpoint.every_steps=50", "--set", "schedule.name=constant")
    with Started(1, tmp_path, False, *same) as run:
        run.wait_until_it_trains()
        tracking = place.start(tmp_path / "run", "--follow")
        try:
            while not list((tmp_path / "run" / "checkpoints").glob("step-*[1-9]*")):
                time.sleep(0.02)
            time.sleep(3)
            run.processes[0].kill()
            run.processes[0].wait()
            time.sleep(1)
            last = lines_of_killed(tmp_path / "run")[-1]["step"]
            resumed = run_alone("--config", CONFIG, "--set", f"output={tmp_path / 'run'}", "--resume", "auto", *same,
                                "--set", f"train.steps={last // 5 * 5 + 100}")
            assert resumed.code == 0, resumed.err
            out, err = tracking.communicate(timeout=60)
            assert (tracking.returncode, out, err) == (0, "", "")
        finally:
            end_group(tracking)
    lines = lines_of(tmp_path / "run")
    assert lines[-1]["status"] == "completed" and lines[-1]["step"] > last
    assert_has(place, lines, "digits", times=False)


def lines_of_killed(folder: Path) -> list[dict]:
    *lines, _ = (folder / "metrics.jsonl").read_text().split("\n")
    return [json.loads(line) for line in lines]


def test_several_runs_at_once(place: Place, tmp_path: Path) -> None:
    names = ("one", "two", "three")
    folders = [made_run(tmp_path / name, [*train_lines(1, 10 * i), end_line(10 * i)], name) for i, name in enumerate(names, 1)]
    place.send(*folders, "--no-artifacts")
    if place.name == "wandb":  # whose files are those of all runs
        runs = {record.run.display_name for record in place.records() if record.HasField("run")}
        assert runs == set(names)
    else:
        for folder, name in zip(folders, names):
            assert_has(place, lines_of(folder), name)


def test_a_moved_run_is_the_same_run(tmp_path: Path) -> None:
    place = Tensorboard(tmp_path / "place")
    training = ("--config", CONFIG, "--resume", "auto", "--set", "checkpoint.every_steps=10", "--set", "schedule.name=constant")
    assert run_alone(*training, "--set", "train.steps=20", "--set", f"output={tmp_path / 'run'}").code == 0
    place.send(tmp_path / "run")
    first_end = lines_of(tmp_path / "run")[-1]
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    assert run_alone(*training, "--set", "train.steps=30", "--set", f"output={moved}").code == 0
    place.send(moved)
    assert (first_end["step"], lines_of(moved)[-1]["step"]) == (20, 30)
    assert_has(place, [*lines_of(moved), first_end], "digits")
    assert run_alone(*training, "--set", "train.steps=20", "--set", f"output={tmp_path / 'run'}").code == 0
    place.send(tmp_path / "run")
    assert len(list((place.folder / "store").iterdir())) == 2, "a run that has begun in the place of the first is another"


def test_run_that_is_started_afresh_is_another(tmp_path: Path) -> None:
    """In the same folder, while the first is followed."""
    place = Tensorboard(tmp_path / "place")
    folder = made_run(tmp_path / "run", train_lines(1, 20), "first")
    tracking = place.start(folder, "--follow")
    try:
        wait_until(lambda: bool(list((place.folder / "store").glob("first-*/events*"))))
        made_run(folder, [*train_lines(1, 5, shift=1), end_line(5)], "second", workers=2)
        assert tracking.communicate(timeout=60) == ("", "") and tracking.returncode == 0
    finally:
        end_group(tracking)
    assert_has(place, train_lines(1, 20), "first")
    assert_has(place, lines_of(folder), "second")


def test_looking_at_the_lock_keeps_no_run_from_starting(tmp_path: Path) -> None:
    from decent_train.tracking.folder import RunFolder

    seen, over = [], threading.Event()
    folder = RunFolder(tmp_path / "run")
    looking = threading.Thread(target=lambda: [seen.append(folder.lives()) for _ in iter(over.is_set, True)])
    looking.start()
    try:
        for i in range(4):
            ended = run_alone("--config", CONFIG, "--set", f"train.steps={10 * i + 10}", "--set", f"output={tmp_path / 'run'}",
                              "--resume", "auto")
            assert ended.code == 0, ended.err
    finally:
        over.set()
        looking.join()
    assert True in seen and False in seen and not folder.lives()
    assert not (tmp_path / "run" / ".lock").exists()


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_other_workers_train_steps_again(place: Place, tmp_path: Path) -> None:
    """What counts are the figures of the last workers. wandb and Trackio show those of both; TensorBoard forgets the first."""
    old, new = train_lines(1, 20), train_lines(11, 20, shift=0.5)
    resume = {"kind": "resume", "step": 10, "workers": 3, "before": 4, "lost": [2], "pause_s": 1.5}
    folder = made_run(tmp_path / "run", [*old, eval_line(20)], workers=4)
    place.send(folder)
    write_starts(folder, [(0, 4), (10, 3)])
    write_lines(folder, [*old[:10], resume, *new[:5]])
    place.send(folder)
    place.send(folder)
    add_lines(folder, [*new[5:], eval_line(20, 0.75), end_line(20)])
    place.send(folder)
    place.send(folder)
    gone = [] if place.name == "tensorboard" else [*old[10:], eval_line(20)]
    assert_has(place, [*old[:10], *gone, resume, *new, eval_line(20, 0.75), end_line(20)])


def test_evaluations_that_were_added(place: Place, tmp_path: Path) -> None:
    """--eval-only adds lines of steps that were passed long ago, of other data, and the same again."""
    lines = [*train_lines(1, 20), eval_line(20), end_line(20)]
    folder = made_run(tmp_path / "run", lines)
    place.send(folder)
    added = [eval_line(20, 0.25, source="other.npz"), eval_line(12, 0.125, checkpoint="elsewhere/step-00000012")]
    add_lines(folder, added)
    place.send(folder)
    place.send(folder)
    assert_has(place, [*lines, *added])


class Online:
    """What decent-track uses of a run at wandb's server, and of its API."""

    entity, project = "me", "tests"

    def __init__(self, **given: object) -> None:
        assert given["resume"] == "allow"
        self.id = str(given["id"])
        self.resumed = self.id in self.server
        self.rows = self.server.setdefault(self.id, [])
        self.config = SimpleNamespace(update=lambda values, allow_val_change: None)

    server: dict[str, list[dict]] = {}

    def define_metric(self, name: str, **_: object) -> None:
        assert name

    def log(self, row: dict, step: int, commit: bool) -> None:
        assert step == len(self.rows) and commit
        self.rows.append(row)

    def log_artifact(self, artifact: object) -> None:
        assert artifact is not None

    def finish(self, exit_code: int) -> None:
        assert exit_code == (0 if self.rows[-1]["line"].startswith('["end"') else 137)


def test_wandb_online_goes_on_from_the_servers_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server of wandb's can be had: its client is a stand-in that keeps rows as the server does."""
    import wandb

    import decent_train

    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(Online, "server", {})
    monkeypatch.setattr(wandb, "init", lambda **given: Online(**given))
    history = SimpleNamespace(run=lambda path: SimpleNamespace(
        scan_history=lambda keys, page_size: Online.server[path.split("/")[-1]]))
    monkeypatch.setattr(wandb, "Api", lambda: history)
    lines = train_lines(1, 5)
    folder = made_run(tmp_path / "run", lines)
    for later in ([], [eval_line(5), end_line(5)], []):
        lines += later
        add_lines(folder, later)
        decent_train.track(folder, to="wandb", project="tests", dir=tmp_path / "wandb")
        rows, = Online.server.values()
        assert [json.loads(row["line"])[:2] for row in rows] == [[line["kind"], line["step"]] for line in lines]
