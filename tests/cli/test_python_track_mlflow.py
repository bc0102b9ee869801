"""decent-track and a real MLflow server: what its REST API and its page then have, and what comes of kills and outages."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Page
from digits_runs import CONFIG
from ports import free_port
from program import run_alone, run_commands
from report_pages import needs_chromium
from runs import assert_says
from started import Started
from tracked import (KILLS, LINES, Mlflow, add_lines, assert_has, command, end_group, end_line, eval_line, lines_of, made_run,
                     mlflow_server, train_lines, variables, write_lines, write_starts)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mlflow_server(tmp_path_factory.mktemp("mlflow"), workers=4 if LINES > 10000 else 1) as (address, _):
        yield address


@pytest.fixture
def place(server: str, tmp_path: Path, request: pytest.FixtureRequest) -> Mlflow:
    return Mlflow(tmp_path / "place", server, request.node.name)


def status(place: Mlflow, name: str = "hand") -> str:
    return place.mlflow_run(name)["info"]["status"]


def tags(place: Mlflow, name: str = "hand") -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in place.mlflow_run(name)["data"]["tags"]}


def test_run_of_the_program(place: Mlflow, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert run_alone("--config", CONFIG, "--set", "train.epochs=2", "--set", f"output={folder}").code == 0
    place.send(folder)
    place.send(folder)
    assert_has(place, lines_of(folder), "digits")
    parameters = {each["key"]: each["value"] for each in place.mlflow_run("digits")["data"]["params"]}
    assert (parameters["train.epochs"], parameters["optimizer.betas"], parameters["data.train.split"]) == ("2", "[0.9, 0.999]", "train")
    assert len(parameters) > 100  # more than a request holds
    assert status(place, "digits") == "FINISHED" and tags(place, "digits")["decent_train.folder"] == str(folder)
    names = {"model.pt", "model.safetensors", "recipe.yaml", "data.json", "report.html"}
    assert place.file_names("digits") == names & {file.name for file in folder.iterdir()}


@needs_chromium
def test_page_shows_the_run_and_a_chart(place: Mlflow, tmp_path: Path, page: Page) -> None:
    place.send(made_run(tmp_path / "run", [*train_lines(1, 200), eval_line(200), end_line(200)], "seen"))
    run = place.mlflow_run("seen")["info"]
    page.open(f"{place.address}/#/experiments/{run['experiment_id']}/runs/{run['run_id']}/model-metrics")
    # Single values are bars; a metric of several steps is a line, drawn once its chart is in sight.
    page.size(1600, 4000)
    lines = "[...document.querySelectorAll('.js-plotly-plot .scatterlayer path.js-line')].filter((line) => line.getTotalLength() > 100)"
    drawn = f"document.body.innerText.includes('train/loss_mean') && {lines}.length >= 8"
    deadline = time.monotonic() + 60
    while not page.run(drawn) and time.monotonic() < deadline:
        time.sleep(0.5)
    if shot := os.environ.get("DECENT_TRACK_PICTURE"):
        page.picture(Path(shot))
    assert page.run(drawn), page.run("document.body.innerText")
    assert "seen" in page.run("document.body.innerText")


def test_many_lines(place: Mlflow, tmp_path: Path) -> None:
    lines = train_lines(1, LINES) + [eval_line(LINES), end_line(LINES)]
    begin = time.monotonic()
    place.send(made_run(tmp_path / "run", lines))
    seconds = time.monotonic() - begin
    print(f"mlflow: {len(lines)} lines in {seconds:.1f} s")
    assert_has(place, lines)


def test_numbers_that_are_not_finite(place: Mlflow, tmp_path: Path) -> None:
    lines = train_lines(1, 3) + [eval_line(3), end_line(3, "failed")]
    lines[1] |= {"loss": None, "grad_norm": None}
    place.send(made_run(tmp_path / "run", lines))
    assert_has(place, lines)
    assert status(place) == "FAILED"


def test_tracker_that_is_killed_goes_on(place: Mlflow, tmp_path: Path) -> None:
    lines = train_lines(1, LINES) + [eval_line(LINES), end_line(LINES)]
    folder = made_run(tmp_path / "run", lines)
    chance = random.Random("mlflow")
    for _ in range(KILLS):
        tracking = place.start(folder)
        time.sleep(chance.uniform(1, 5))
        tracking.kill()
        tracking.communicate()
    place.send(folder)
    assert_has(place, lines)


def test_database_without_a_server(place: Mlflow, tmp_path: Path) -> None:
    """Killed in the middle of what the server would do."""
    import sqlite3

    count = LINES // 3
    lines = train_lines(1, count) + [end_line(count)]
    folder = made_run(tmp_path / "run", lines)
    database = tmp_path / "runs.db"
    arguments = command(folder, "--to", "mlflow", "--uri", f"sqlite:///{database}", "--no-artifacts")
    # MLflow makes its tables in many steps and cannot go on after a kill between them.
    other = made_run(tmp_path / "other", [end_line(1)], "other")
    assert run_commands([command(other, *arguments[4:])], [variables(tmp_path)], tmp_path)[0].code == 0
    chance = random.Random("database")
    for kill in range(KILLS + 1):
        tracking = subprocess.Popen(arguments, env=variables(tmp_path), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if kill < KILLS:
            time.sleep(chance.uniform(3, 9))
            tracking.kill()
        _, err = tracking.communicate(timeout=300)
    assert tracking.returncode == 0, err
    with sqlite3.connect(database) as store:
        rows = store.execute("SELECT key, step, COUNT(*), MIN(value) FROM metrics JOIN runs USING (run_uuid) "
                             "WHERE name = 'hand' GROUP BY key, step").fetchall()
    store.close()
    assert len(rows) == 8 * count + 1 and {row[2] for row in rows} == {1}
    losses = {step: value for key, step, _, value in rows if key == "train/loss"}
    assert losses == {line["step"]: line["loss"] for line in lines[:-1]}


def test_killed_run_that_is_resumed(place: Mlflow, tmp_path: Path) -> None:
    same = ("--set", "log.every_steps=5", "--set", "checkpoint.every_steps=50", "--set", "schedule.name=constant")
    with Started(1, tmp_path, False, *same) as run:
        run.wait_until_it_trains()
        tracking = place.start(tmp_path / "run")
        try:
            while not list((tmp_path / "run" / "checkpoints").glob("step-*[1-9]*")):
                time.sleep(0.02)
            deadline = time.monotonic() + 60
            while not has_begun(place):
                assert time.monotonic() < deadline
                time.sleep(0.2)
            assert status(place, "digits") == "RUNNING"
            run.processes[0].kill()
            run.processes[0].wait()
            out, err = tracking.communicate(timeout=60)
            assert (tracking.returncode, out, err) == (0, "", "")
        finally:
            end_group(tracking)
    assert status(place, "digits") == "KILLED"
    last = max(step for _, step in place.points("digits"))
    resumed = run_alone("--config", CONFIG, "--set", f"output={tmp_path / 'run'}", "--resume", "auto", *same, "--set",
                        f"train.steps={last // 5 * 5 + 100}")
    assert resumed.code == 0, resumed.err
    place.send(tmp_path / "run")
    assert_has(place, lines_of(tmp_path / "run"), "digits", times=False)
    assert status(place, "digits") == "FINISHED" and tags(place, "digits")["decent_train.starts"] == "2"
    assert "train.steps" in tags(place, "digits")["decent_train.changed"]


def has_begun(place: Mlflow) -> bool:
    try:
        return bool(place.points("digits"))
    except (OSError, ValueError):  # no experiment, no run yet
        return False


def test_other_workers_train_steps_again(place: Mlflow, tmp_path: Path) -> None:
    """Both values of a step are kept; those of the last workers have the later time."""
    old, new = train_lines(1, 20), train_lines(11, 20, shift=0.5)
    resume = {"kind": "resume", "step": 10, "workers": 3, "before": 4, "lost": [2], "pause_s": 1.5}
    folder = made_run(tmp_path / "run", old, workers=4)
    place.send(folder)
    write_starts(folder, [(0, 4), (10, 3)])
    write_lines(folder, [*old[:10], resume, *new[:5]])
    place.send(folder)
    place.send(folder)
    add_lines(folder, [*new[5:], end_line(20)])
    place.send(folder)
    assert_has(place, [*old, resume, *new, end_line(20)])
    run = place.mlflow_run()["info"]["run_id"]
    values = [each["value"] for each in sorted(place._history(run, "train/loss"), key=lambda each: each["timestamp"])
              if each["step"] == 15]
    assert values == [old[14]["loss"], new[4]["loss"]]


def test_server_that_is_away_for_a_while(tmp_path: Path) -> None:
    """Nothing is lost, and a run that goes on is not given up."""
    port = free_port()
    folder = made_run(tmp_path / "run", train_lines(1, 50))
    (tmp_path / "server").mkdir()
    with mlflow_server(tmp_path / "server", port) as (address, _):
        place = Mlflow(tmp_path / "place", address, "away")
        tracking = place.start(folder, "--follow", "--patience", 1)
        deadline = time.monotonic() + 60
        while not place_has(place, 50):
            assert time.monotonic() < deadline
            time.sleep(0.2)
    add_lines(folder, train_lines(51, 100))
    time.sleep(4)
    assert tracking.poll() is None
    with mlflow_server(tmp_path / "server", port):
        add_lines(folder, [*train_lines(101, 120), end_line(120)])
        out, err = tracking.communicate(timeout=120)
        assert (tracking.returncode, out) == (0, "")
        said = err.splitlines()
        assert len(said) == 2 and all(line.startswith("decent-track: warning: ") for line in said), err
        assert "does not answer" in said[0] and "answers again" in said[1]
        assert_has(place, lines_of(folder))


def place_has(place: Mlflow, step: int) -> bool:
    try:
        return ("train/loss", step) in place.points()
    except (OSError, ValueError):
        return False


def test_no_server(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", train_lines(1, 5))
    place = Mlflow(tmp_path / "place", f"http://127.0.0.1:{free_port()}", "none")
    ended = place.run(folder, "--patience", 1)
    assert ended.code == 3 and ended.out == "" and len(ended.err.splitlines()) == 2, ended
    assert_says(ended.err.splitlines()[1], "decent-track: error: MLflow at 'http://127.0.0.1:", "does not answer", "started again")


def test_beside_a_process(place: Mlflow, tmp_path: Path) -> None:
    """As the program starts it: the folder may come later, and what comes at the very end is sent."""
    other = subprocess.Popen(["sleep", "600"])
    tracking = place.start(tmp_path / "run", "--beside", other.pid)
    try:
        time.sleep(1)
        folder = made_run(tmp_path / "run", train_lines(1, 20))
        time.sleep(3)
        assert tracking.poll() is None
        add_lines(folder, [*train_lines(21, 30), end_line(30)])
        other.send_signal(signal.SIGKILL)  # nobody waits for it: a zombie
        assert tracking.communicate(timeout=60) == ("", "") and tracking.returncode == 0
    finally:
        other.kill()
        other.wait()
        end_group(tracking)
    assert_has(place, lines_of(folder))


def test_signals_end_it_with_all_sent(place: Mlflow, tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", train_lines(1, 40))
    for number in (signal.SIGTERM, signal.SIGINT):
        tracking = place.start(folder, "--follow")
        time.sleep(3)
        step = lines_of(folder)[-1]["step"]
        add_lines(folder, train_lines(step + 1, step + 20))
        tracking.send_signal(number)
        assert tracking.communicate(timeout=60) == ("", "") and tracking.returncode == 0
        assert_has(place, lines_of(folder))
