"""Runs at an MLflow server, or in a database of MLflow's."""

from __future__ import annotations

import functools
import json
import math
import os
import textwrap
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

# Short, as decent-track itself tries again; set before mlflow reads them.
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")

import mlflow
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.utils.credentials import get_default_host_creds
from mlflow.utils.rest_utils import http_request_safe

from .errors import TrackingError, Unreachable
from .folder import RunFolder
from .ledger import Ledger
from .row import Row
from .tracker import Options

Answer = TypeVar("Answer")
Point = tuple[str, float, int, int]  # name, value, time in ms, step

_RUN, _SENT, _FILES = "decent_train.run", "decent_train.sent", "decent_train.files"
# What a request may hold (MLflow's REST API): 1000 entries of all kinds, one of them the tag.
_METRICS, _PARAMS, _TAGS = 999, 100, 100
_MESSAGE_LENGTH = 300
_IN_FLIGHT = 5  # requests at a time, where a run is imported: a server has 4 processes unless told otherwise
_PARAM_LENGTH, _TAG_LENGTH = 6000, 5000
_STATUS = {"completed": "FINISHED", "failed": "FAILED", "stopped": "KILLED", "killed": "KILLED"}
# Of which the same request cannot come to good.
_FINAL = {"INVALID_PARAMETER_VALUE", "PERMISSION_DENIED", "UNAUTHENTICATED", "ENDPOINT_NOT_FOUND", "INVALID_STATE",
          "RESOURCE_DOES_NOT_EXIST", "BAD_REQUEST", "FEATURE_DISABLED"}


class MlflowTracker:
    """The server keeps a metric's value once for each key, value, step and time, all values of a request or none, and
    sets tags after them. The tag `decent_train.sent`, set with every request, says which lines the run has; where the
    server was killed in between, the lines are sent again with the same times and change nothing.
    """

    def __init__(self, folder: RunFolder, options: Options) -> None:
        uri = options.uri or os.environ.get("MLFLOW_TRACKING_URI")
        if not uri:
            raise TrackingError("which MLflow? Say it with --uri (http://127.0.0.1:5000, sqlite:////home/me/mlflow.db), "
                                "or in the environment variable MLFLOW_TRACKING_URI")
        self._folder, self._uri = folder, uri
        self._client = self._asked(lambda: mlflow.MlflowClient(tracking_uri=uri))
        experiment = self._experiment(options.project)
        mine, start = f"tags.`{_RUN}` = '{folder.id}'", round(folder.start_times()[0][1] * 1000)
        found = self._asked(lambda: self._client.search_runs([experiment], mine, max_results=1))
        run = found[0] if found else self._asked(lambda: self._client.create_run(
            experiment, start_time=start, tags={_RUN: folder.id}, run_name=folder.name))
        self._run, self._params, self._tags = run.info.run_id, dict(run.data.params), dict(run.data.tags)
        self.sent = _ledger_of(run, folder)
        self._server = get_default_host_creds(uri) if uri.startswith(("http://", "https://")) else None
        self._in_flight = 1 if self._server is None else _IN_FLIGHT
        self._pool = ThreadPoolExecutor(_IN_FLIGHT)
        self._last_time: float | None = None  # of a line
        self.tell("running")
        self.describe()

    def _experiment(self, name: str) -> str:
        found = self._asked(lambda: self._client.get_experiment_by_name(name))
        if found is None:
            try:
                return self._asked(lambda: self._client.create_experiment(name))
            except TrackingError:  # somebody else was faster
                found = self._asked(lambda: self._client.get_experiment_by_name(name))
        if found is None:
            raise TrackingError(f"MLflow at '{self._uri}' makes no experiment '{name}'")
        if found.lifecycle_stage != "active":
            raise TrackingError(f"the experiment '{name}' is deleted at '{self._uri}': restore it, or choose another "
                                "with --project NAME")
        return found.experiment_id

    def send(self, rows: deque[Row]) -> None:
        while rows:
            batches = _batches(rows, self._in_flight)
            taken = list(islice(rows, sum(count for count, _ in batches)))
            sent = self.sent.copy()
            for row in taken:
                sent.note(row.identity)
            tag = (_SENT, json.dumps(sent.to_json(), separators=(",", ":")))
            if len(tag[1]) > _TAG_LENGTH:  # MLflow would cut it without a word
                raise TrackingError(f"the tag {_SENT} of the run '{self._folder.name}' would be longer than {_TAG_LENGTH} "
                                    "characters: too many evaluations were added to the run")
            *first, (_, last) = batches
            # All but the last at the same time; the tag stands for all of them, so it comes when they are there.
            for done in [self._pool.submit(self._log, metrics) for _, metrics in first]:
                done.result()
            self._log(last, tag)
            self.sent, self._last_time = sent, taken[-1].time
            for _ in taken:
                rows.popleft()

    def _log(self, metrics: list[Point], *tags: tuple[str, str]) -> None:
        """A request of its own to a server, as the client's way there, over protocol buffers, takes six times as long.
        """
        if self._server is None:
            entries = [Metric(*each) for each in metrics]
            self._asked(lambda: self._client.log_batch(self._run, metrics=entries, tags=[RunTag(*tag) for tag in tags]))
            return
        body = {"run_id": self._run, "tags": [{"key": key, "value": value} for key, value in tags],
                "metrics": [{"key": key, "value": "NaN" if math.isnan(value) else value, "timestamp": time, "step": step}
                            for key, value, time, step in metrics]}
        self._asked(lambda: http_request_safe(self._server, "/api/2.0/mlflow/runs/log-batch", "POST", json=body))

    def describe(self) -> None:
        """Parameters of MLflow cannot change: a setting that did is in the tag `decent_train.changed`."""
        settings = {_name(key): value for key, value in self._folder.settings.items()}
        changed = {key: value for key, value in settings.items() if self._params.get(key, value) != value}
        new = [Param(key, value[:_PARAM_LENGTH]) for key, value in settings.items() if key not in self._params]
        tags = {f"decent_train.{_name(word)}": text for word, text in self._folder.facts().items()}
        tags["decent_train.folder"] = str(self._folder.path.resolve())
        tags["decent_train.history"] = self._folder.starts_text()
        tags |= {"decent_train.changed": json.dumps(changed, ensure_ascii=False)} if changed else {}
        entries = [RunTag(key, value[-_TAG_LENGTH:]) for key, value in tags.items()]
        for first in range(0, max(len(new), 1), _PARAMS):
            part = new[first:first + _PARAMS]
            self._asked(lambda: self._client.log_batch(self._run, params=part, tags=[] if first else entries[:_TAGS]))
        self._params.update((each.key, each.value) for each in new)

    def finish(self, status: str, files: list[Path]) -> None:
        stamps = json.dumps([[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files])[:_TAG_LENGTH]
        if files and self._tags.get(_FILES) != stamps:
            for file in files:
                self._asked(lambda: self._client.log_artifact(self._run, str(file)))
            self._asked(lambda: self._client.set_tag(self._run, _FILES, stamps))
            self._tags[_FILES] = stamps
        self.tell(status)

    def tell(self, status: str) -> None:
        if status == "running":
            self._asked(lambda: self._client.update_run(self._run, status="RUNNING"))
        else:
            end = None if self._last_time is None else round(self._last_time * 1000)
            self._asked(lambda: self._client.set_terminated(self._run, _STATUS[status], end_time=end))

    def _asked(self, call: Callable[[], Answer]) -> Answer:
        try:
            return call()
        except MlflowException as error:
            message = textwrap.shorten(str(error), _MESSAGE_LENGTH, placeholder=" ..")
            if error.error_code in _FINAL:
                raise TrackingError(f"MLflow at '{self._uri}' refuses: {message}") from error
            raise Unreachable(f"MLflow at '{self._uri}' does not answer: {message}") from error
        except OSError as error:
            raise Unreachable(f"MLflow at '{self._uri}' does not answer: {error}") from error
        except ImportError as error:
            raise TrackingError(f"'{self._uri}' needs more of MLflow than mlflow-skinny has ({error}): "
                                "pip install mlflow") from error
        except Exception as error:  # of the library under a database, which need not be there
            if not type(error).__module__.startswith("sqlalchemy"):
                raise
            message = textwrap.shorten(str(error), _MESSAGE_LENGTH, placeholder=" ..")
            raise TrackingError(f"MLflow cannot use '{self._uri}': {message}") from error


def _ledger_of(run: Any, folder: RunFolder) -> Ledger:
    tag = run.data.tags.get(_SENT)
    try:
        return Ledger.from_json(json.loads(tag)) if tag else Ledger()
    except (ValueError, KeyError, TypeError) as error:
        raise TrackingError(f"the tag {_SENT} of the run '{folder.name}' cannot be read: {error}") from error


def _batches(rows: deque[Row], most: int) -> list[tuple[int, list[Point]]]:
    """Rows from the left in as few requests as hold them: of each how many, and their metrics."""
    batches: list[tuple[int, list[Point]]] = [(0, [])]
    for row in rows:
        count, metrics = batches[-1]
        if count and len(metrics) + len(row.values) > _METRICS:
            if len(batches) == most:
                break
            count, metrics = 0, []
            batches.append((count, metrics))
        time = round(row.time * 1000)
        metrics += [(_name(name), value, time, row.step) for name, value in row.values.items()]
        batches[-1] = (count + 1, metrics)
    return batches


@functools.cache
def _name(text: str) -> str:
    """In the characters that MLflow allows."""
    return "".join(each if each.isalnum() or each in "_-. /:" else "_" for each in text)
