"""Runs that decent-track sends, and what the trackers then have, read with their own means."""

from __future__ import annotations

import glob
import json
import math
import os
import signal
import struct
import subprocess
import sys
import time
import urllib.parse
import urllib.request
import zlib
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ports import free_port
from program import Ended, ROOT, environment, run_commands
from runs import TIMES

LINES = int(os.environ.get("DECENT_TRACK_LINES", "600"))
KILLS = int(os.environ.get("DECENT_TRACK_KILLS", "2"))
PROJECT = "tests"
# (name, step) -> the values that a tracker has there.
Points = dict[tuple[str, int], list[float]]
_KINDS = ("train", "eval", "eval_added", "resume", "end")


def variables(state: Path, **extra: object) -> dict[str, str]:
    return environment(PYTHONPATH=ROOT / "python", XDG_STATE_HOME=state / "state", WANDB_MODE="offline", HF_HUB_OFFLINE=1,
                       MLFLOW_DISABLE_TELEMETRY="true", HOME=state, **extra)


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "decent_train.tracking", *map(str, arguments)]


class Place(ABC):
    """Where a test's runs go."""

    name = ""
    has_files = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def flags(self) -> list[object]:
        return ["--to", self.name, "--project", PROJECT, "--dir", self.folder / "store"]

    def run(self, *arguments: object, **extra: object) -> Ended:
        return run_commands([command(*arguments, *self.flags)], [variables(self.folder, **extra)], None)[0]

    def start(self, *arguments: object, **extra: object) -> subprocess.Popen:
        return subprocess.Popen(command(*arguments, *self.flags), env=variables(self.folder, **extra), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def send(self, *arguments: object, **extra: object) -> None:
        """It must go well and say nothing."""
        ended = self.run(*arguments, **extra)
        assert (ended.code, ended.out, ended.err) == (0, "", ""), ended

    @abstractmethod
    def points(self, name: str = "hand") -> Points:
        """What the tracker has of the run with this name."""

    def file_names(self, name: str = "hand") -> set[str]:
        raise NotImplementedError


class Tensorboard(Place):
    name = "tensorboard"
    has_files = False

    def points(self, name: str = "hand") -> Points:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        (folder,) = (self.folder / "store").glob(f"{name}-*")
        events = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
        return _collected((tag, each.step, each.value) for tag in events.Tags()["scalars"] for each in events.Scalars(tag))


class Trackio(Place):
    name = "trackio"

    def points(self, name: str = "hand") -> Points:
        code = ("import json, sys, trackio; from trackio.sqlite_storage import SQLiteStorage as S\n"
                f"(run,) = [run for run in trackio.Api().runs({PROJECT!r}) if run.name == {name!r}]\n"
                f"json.dump(S.get_logs({PROJECT!r}, run.name, max_points=None, run_id=run.id), sys.stdout)")
        rows = json.loads(self._asked(code))
        return _collected((key, row["step"], value) for row in rows for key, value in row.items() if _is_figure(key))

    def file_names(self, name: str = "hand") -> set[str]:
        code = ("import json, sys; from trackio.sqlite_storage import SQLiteStorage as S\n"
                f"(it,) = S.get_artifacts({PROJECT!r})\n"
                f"json.dump([e['path'] for e in S.get_artifact_manifest({PROJECT!r}, it['name'], 'latest')['manifest']], sys.stdout)")
        return set(json.loads(self._asked(code)))

    def _asked(self, code: str) -> str:
        return subprocess.run([sys.executable, "-c", code], env=variables(self.folder, TRACKIO_DIR=self.folder / "store"),
                              capture_output=True, text=True, check=True).stdout


class Wandb(Place):
    name = "wandb"

    def records(self) -> Iterator[Any]:
        for file in sorted(glob.glob(str(self.folder / "store" / "wandb" / "offline-run-*" / "*.wandb"))):
            yield from wandb_records(Path(file))

    def points(self, name: str = "hand") -> Points:
        found = []
        steps = []
        for record in self.records():
            if record.HasField("history"):
                row = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
                found += [(key, row["step"], value) for key, value in row.items() if _is_figure(key)]
                steps.append(row["_step"])
        assert steps == list(range(len(steps))), "wandb's own step counts the rows of all processes"
        return _collected(found)

    def file_names(self, name: str = "hand") -> set[str]:
        (artifact,) = [each.artifact for each in self.records() if each.HasField("artifact")][-1:]
        contents = artifact.manifest.contents
        return {each.path for each in contents} or set(json.loads(Path(artifact.manifest.manifest_file_path).read_text())["contents"])


class Mlflow(Place):
    name = "mlflow"

    def __init__(self, folder: Path, address: str, project: str) -> None:
        super().__init__(folder)
        self.address, self.project = address, project

    @property
    def flags(self) -> list[object]:
        return ["--to", "mlflow", "--project", self.project, "--uri", self.address]

    def ask(self, path: str, body: dict | None = None, **query: object) -> dict:
        address = f"{self.address}/api/2.0/mlflow/{path}?{urllib.parse.urlencode(query)}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def mlflow_run(self, name: str = "hand") -> dict:
        experiment = self.ask("experiments/get-by-name", experiment_name=self.project)["experiment"]["experiment_id"]
        runs = self.ask("runs/search", {"experiment_ids": [experiment]}).get("runs", [])
        (run,) = [run for run in runs if run["info"]["run_name"] == name]
        return run

    def points(self, name: str = "hand") -> Points:
        run = self.mlflow_run(name)
        return _collected((entry["key"], each.get("step", 0), each["value"]) for entry in run["data"].get("metrics", [])
                          for each in self._history(run["info"]["run_id"], entry["key"]))

    def _history(self, run: str, key: str) -> Iterator[dict]:
        token: dict = {}
        while True:
            answer = self.ask("metrics/get-history", run_id=run, metric_key=key, max_results=20000, **token)
            yield from answer.get("metrics", [])
            if not answer.get("next_page_token"):
                return
            token = {"page_token": answer["next_page_token"]}

    def file_names(self, name: str = "hand") -> set[str]:
        files = self.ask("artifacts/list", run_id=self.mlflow_run(name)["info"]["run_id"]).get("files", [])
        return {file["path"] for file in files}


@contextmanager
def mlflow_server(folder: Path, port: int | None = None, workers: int = 1) -> Iterator[tuple[str, subprocess.Popen]]:
    """The Flask form of the server under gunicorn: the other needs pandas, scikit-learn and more."""
    port = port or free_port()
    files = ["--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}", "--artifacts-destination", str(folder / "files")]
    with (folder / "server.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", str(workers),
             "--gunicorn-opts", "--timeout 120 --no-control-socket", *files], cwd=folder, stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, start_new_session=True,
            env=environment(MLFLOW_DISABLE_TELEMETRY="true", MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false", HOME=folder))
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_for(f"{address}/health", process, folder / "server.log")
        yield address, process
    finally:
        end_group(process, signal.SIGTERM)


def _wait_for(address: str, process: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(address, timeout=10):
                return
        except OSError:
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.2)


def end_group(process: subprocess.Popen, number: int = signal.SIGKILL) -> None:
    """Ends a process that leads a session, and its children."""
    try:
        os.killpg(process.pid, number)
        process.wait(20)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def wandb_records(file: Path) -> Iterator[Any]:
    """A .wandb file: LevelDB's log format with the CRC of zlib, in it records of wandb's protocol. The last record may have
    been cut off where its process was killed.
    """
    from wandb.proto.wandb_internal_pb2 import Record

    data = file.read_bytes()
    assert data[:4] == b":W&B"
    at, whole = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        crc, length, kind = struct.unpack_from("<IHB", data, at)
        part = data[at + 7:at + 7 + length]
        at += 7 + length
        if len(part) < length:
            return
        assert crc == zlib.crc32(bytes([kind]) + part), (file, at)
        whole = part if kind in (1, 2) else whole + part
        if kind in (1, 4):
            yield Record.FromString(whole)


def made_run(folder: Path, lines: list[dict], name: str = "hand", workers: int = 1) -> Path:
    """A run folder as the program leaves it, with these lines."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.yaml").write_text(f"name: {name}\nseed: 3\noptimizer: {{name: sgd, lr: 0.5, betas: [0.9, 0.999]}}\n")
    write_starts(folder, [(0, workers)])
    write_lines(folder, lines)
    return folder


def write_starts(folder: Path, starts: list[tuple[int, int]]) -> None:
    """`starts`: after which step, with how many workers."""
    entries = [{"time": f"2026-01-02 03:{minute:02}:05", "program": "0.1.0 (build 1)", "step": step, "workers": workers,
                "lines": [["device", "cpu"], ["workers", f"{workers}, 1 thread each"]], "phases": [], "changed": []}
               for minute, (step, workers) in enumerate(starts)]
    _replace(folder / "run.json", json.dumps({"format": 1, "starts": entries, "facts": {"the device": "cpu"}, "defaults": {}}))


def write_lines(folder: Path, lines: list[dict], rest: str = "") -> None:
    """As a resume does it: another file in the place of the old one."""
    _replace(folder / "metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines) + rest)


def add_lines(folder: Path, lines: list[dict]) -> None:
    with (folder / "metrics.jsonl").open("a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))


def _replace(file: Path, text: str) -> None:
    new = file.with_name(file.name + ".new")
    new.write_text(text)
    new.rename(file)


def train_lines(first: int, last: int, shift: float = 0.0) -> list[dict]:
    """The fields of the program's; `shift` tells the figures of other workers apart."""
    return [{"kind": "train", "step": step, "epoch": step / 64, "loss": 1 / step + shift, "loss_mean": 1.5 / step + shift,
             "lr": 0.5 / (1 + step), "samples_per_s": 100.0 + step, "step_ms": 2.0 + step % 3, "comm_wait_ms": 0.5,
             "data_wait_ms": 0.25} for step in range(first, last + 1)]


def eval_line(step: int, accuracy: float = 0.5, **more: object) -> dict:
    return {"kind": "eval", "step": step, "epoch": step / 64, "model": "average", "loss": 2 / (step + 1), "accuracy": accuracy,
            "samples": 355, "consensus_distance": 0.001, **more}


def end_line(step: int, status: str = "completed") -> dict:
    return {"kind": "end", "status": status, "step": step, "wall_s": 12.5}


def lines_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def expected(lines: list[dict]) -> Points:
    """The numbers of all lines, each once."""
    found = []
    for line in lines:
        kind = "eval_added" if "source" in line or "checkpoint" in line else line["kind"]
        for name, value in line.items():
            if name not in ("kind", "step") and (value is None or isinstance(value, (bool, int, float))):
                found.append((f"{kind}/{name}", line["step"], math.nan if value is None else value))
        if kind == "resume":
            found.append(("resume/lost", line["step"], len(line["lost"])))
    return _collected(found)


def assert_has(place: Place, lines: list[dict], name: str = "hand", times: bool = True) -> None:
    """Each number of each line, once and to the last digit; nothing else. Without `times`: those may be of another pass over
    the same steps.
    """
    have, want = place.points(name), expected(lines)
    assert have.keys() == want.keys(), sorted(have.keys() ^ want.keys(), key=str)[:20]
    twice = {key: values for key, values in have.items() if len(values) != len(want[key])}
    assert not twice, list(twice.items())[:10]
    exact = place.name != "tensorboard"  # whose scalars are float32
    for (figure, step), values in want.items():
        if times or figure.partition("/")[2] not in TIMES:
            for mine, its in zip(sorted(values), sorted(have[figure, step])):
                same = mine == its or math.isnan(mine) and math.isnan(its) or not exact and math.isclose(mine, its, rel_tol=2**-23)
                assert same, (figure, step, mine, its)


def _is_figure(name: str) -> bool:
    return name.partition("/")[0] in _KINDS and "/" in name


def _collected(found: Any) -> Points:
    points: Points = defaultdict(list)
    for name, step, value in found:
        points[name, step].append(float(value))
    return dict(points)
