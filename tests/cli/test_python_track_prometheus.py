"""decent-track --to prometheus: what a Prometheus server gets, read by prometheus_client's parser; and wrong commands."""

from __future__ import annotations

import math
import signal
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from ports import free_port
from program import Ended, run_commands
from runs import assert_says
from tracked import (Tensorboard, Trackio, add_lines, assert_has, command, end_group, end_line, eval_line, lines_of, made_run,
                     train_lines, variables)


class Prometheus(Tensorboard):
    name = "prometheus"
    port = 0

    @property
    def flags(self) -> list[object]:
        return ["--to", "prometheus", "--port", self.port]

    def samples(self) -> dict[tuple[str, str], float]:
        """(name, run) -> value."""
        from prometheus_client.parser import text_string_to_metric_families

        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            families = text_string_to_metric_families(answer.read().decode())
            return {(sample.name, sample.labels["run"]): sample.value for family in families for sample in family.samples}

    def wait_for(self, name: str, run: str, value: float) -> dict[tuple[str, str], float]:
        end = time.monotonic() + 60
        while True:
            try:
                samples = self.samples()
            except OSError:
                samples = {}
            if samples.get((name, run)) == value:
                return samples
            assert time.monotonic() < end, samples
            time.sleep(0.1)


@pytest.fixture
def prometheus(tmp_path: Path) -> Prometheus:
    place = Prometheus(tmp_path / "place")
    place.port = free_port()
    return place


def test_newest_figures_of_several_runs(prometheus: Prometheus, tmp_path: Path) -> None:
    one = made_run(tmp_path / "one", [*train_lines(1, 20), eval_line(20, 0.75)], "one")
    two = made_run(tmp_path / "two", [*train_lines(1, 5), {**train_lines(6, 6)[0], "loss": None}, end_line(6)], "two")
    serving = prometheus.start(one, two)
    try:
        samples = prometheus.wait_for("decent_train_step", "one", 20)
        assert samples["decent_train_train_loss", "one"] == 1 / 20 and samples["decent_train_eval_accuracy", "one"] == 0.75
        prometheus.wait_for("decent_train_step", "two", 6)
        add_lines(one, train_lines(21, 22))
        samples = prometheus.wait_for("decent_train_step", "one", 22)
        assert samples["decent_train_train_loss", "one"] == 1 / 22 and samples["decent_train_eval_accuracy", "one"] == 0.75
        assert math.isnan(samples["decent_train_train_loss", "two"]) and samples["decent_train_end_wall_s", "two"] == 12.5
        assert samples["decent_train_running", "one"] == 0  # nobody holds the folder
        assert serving.poll() is None
        serving.send_signal(signal.SIGINT)
        assert serving.communicate(timeout=20) == ("", "") and serving.returncode == 0
    finally:
        end_group(serving)


def test_port_that_is_taken(prometheus: Prometheus, tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", train_lines(1, 2))
    serving = prometheus.start(folder)
    try:
        prometheus.wait_for("decent_train_step", "hand", 2)
        assert_says(error(prometheus.run(folder)), f"cannot listen on 127.0.0.1:{prometheus.port}", "--port")
    finally:
        end_group(serving)


def error(ended: Ended, code: int = 2) -> str:
    """The one message."""
    assert ended.code == code and ended.out == "", ended
    lines = [line for line in ended.err.splitlines() if not line.startswith(("usage:", " "))]
    assert len(lines) == 1 and "error: " in lines[0], ended.err
    return lines[0]


@pytest.fixture
def place(tmp_path: Path) -> Tensorboard:
    return Tensorboard(tmp_path / "place")


def test_folders_that_are_no_runs(place: Tensorboard, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    good = made_run(tmp_path / "good", train_lines(1, 2))
    for wrong in (tmp_path / "empty", tmp_path / "missing"):
        assert_says(error(place.run(good, wrong)), f"'{wrong}' holds no run", "metrics.jsonl")
    assert not (place.folder / "store").exists()


def test_damaged_files(place: Tensorboard, tmp_path: Path) -> None:
    """Those of one run keep back no other."""
    bad, good = made_run(tmp_path / "bad", train_lines(1, 2), "bad"), made_run(tmp_path / "good", train_lines(1, 2), "good")
    (bad / "run.json").write_text('{"format": 1, "starts": [')
    assert_says(error(place.run(bad, good)), f"'{bad / 'run.json'}' is damaged")
    assert_has(place, lines_of(good), "good")
    (bad / "run.json").write_text("{}")
    (bad / "metrics.jsonl").write_text('{"kind":"train","step":1,"loss":1}\nnonsense\n[1]\n{"kind":"train","step":2,"loss":2}')
    ended = place.run(bad)
    assert ended.code == 0
    assert_says(ended.err, f"decent-track: warning: '{bad / 'metrics.jsonl'}' has lines that are damaged: 2")
    # The last line has no end, but is whole.
    assert place.points("bad") == {("train/loss", 1): [1.0], ("train/loss", 2): [2.0]}


def test_metrics_that_are_no_file(place: Tensorboard, tmp_path: Path) -> None:
    import os

    folder = made_run(tmp_path / "run", [])
    (folder / "metrics.jsonl").unlink()
    os.mkfifo(folder / "metrics.jsonl")
    assert_says(error(place.run(folder)), f"'{folder / 'metrics.jsonl'}' is not a file")


def test_half_a_line_is_not_sent(place: Tensorboard, tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", train_lines(1, 3))
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"kind":"train","step":4,"lo')
    place.send(folder)
    assert_has(place, train_lines(1, 3))
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('ss":0.25}\n')
    place.send(folder)
    assert_has(place, [*train_lines(1, 3), {"kind": "train", "step": 4, "loss": 0.25}])


def test_two_at_once(place: Tensorboard, tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", train_lines(1, 3))
    first = place.start(folder, "--follow")
    try:
        end = time.monotonic() + 60
        while not list((place.folder / "store").glob("*/events*")):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert_says(error(place.run(folder)), f"another decent-track (process {first.pid}) sends the run in '{folder}'")
    finally:
        end_group(first)
    place.send(folder)
    assert_has(place, lines_of(folder))


def test_places_that_cannot_be_written_to(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", train_lines(1, 3))
    (tmp_path / "file").write_text("")
    for name in ("tensorboard", "wandb", "trackio"):
        arguments = command(folder, "--to", name, "--dir", tmp_path / "file" / "store")
        assert_says(error(run_commands([arguments], [variables(tmp_path)], None)[0], 6), "cannot write", str(tmp_path / "file"))
    arguments = command(folder, "--to", "tensorboard", "--state", tmp_path / "file" / "state")
    assert_says(error(run_commands([arguments], [variables(tmp_path)], None)[0], 6), "--state DIR")


def test_wrong_options(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", train_lines(1, 3))
    cases = {("--to", "mlfow"): "mlflow", (): "--to", ("--to", "mlflow"): "--uri", ("--to", "prometheus", "--port", "70000"): "1 to 65535",
             ("--to", "tensorboard", "--beside", "-3"): "--beside", ("--to", "tensorboard", "--once", "--follow"): "not allowed"}
    for flags, text in cases.items():
        assert_says(error(run_commands([command(folder, *flags)], [variables(tmp_path)], None)[0]), text)


def test_package_that_is_not_installed(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", train_lines(1, 3))
    (tmp_path / "hidden" / "wandb").mkdir(parents=True)
    (tmp_path / "hidden" / "wandb" / "__init__.py").write_text("raise ImportError(\"No module named 'wandb'\")\n")
    paths = variables(tmp_path)
    paths["PYTHONPATH"] = f"{tmp_path / 'hidden'}:{paths['PYTHONPATH']}"
    ended = run_commands([command(folder, "--to", "wandb")], [paths], None)[0]
    assert_says(error(ended), "--to wandb needs the package wandb", "pip install 'decent-train[track]'")
    ended = run_commands([command(folder, "--to", "wandb", "--beside", "1000000000")], [paths], None)[0]
    assert ended.code == 2 and ended.err.startswith("decent-track: warning: --to wandb needs")


def test_from_python(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", [*train_lines(1, 3), end_line(3)])
    code = f"import decent_train; decent_train.track({str(folder)!r}, to='trackio', project='tests', dir={str(tmp_path / 'store')!r})"
    ended = run_commands([[sys.executable, "-c", code]], [variables(tmp_path)], None)[0]
    assert (ended.code, ended.out, ended.err) == (0, "", ""), ended
    assert_has(Trackio(tmp_path), lines_of(folder))


def test_nothing_leaves_the_machine(tmp_path: Path) -> None:
    """No name is looked up and no address but this machine's own is spoken to."""
    folder = made_run(tmp_path / "run", [*train_lines(1, 30), end_line(30)])
    guard = tmp_path / "guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_text(
        "import sys\n"
        "def look(event, arguments):\n"
        "    if event == 'socket.getaddrinfo' and arguments[0] not in ('127.0.0.1', 'localhost', None, ''):\n"
        "        sys.stderr.write(f'looked up {arguments}\\n')\n"
        "    if event == 'socket.connect' and isinstance(arguments[1], tuple) and arguments[1][0] != '127.0.0.1':\n"
        "        sys.stderr.write(f'connected to {arguments}\\n')\n"
        "sys.addaudithook(look)\n")
    for name in ("tensorboard", "wandb", "trackio"):
        paths = variables(tmp_path)
        paths["PYTHONPATH"] = f"{guard}:{paths['PYTHONPATH']}"
        ended = run_commands([command(folder, "--to", name, "--dir", tmp_path / name)], [paths], None)[0]
        assert (ended.code, ended.err) == (0, ""), ended
