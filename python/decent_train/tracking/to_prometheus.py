"""The newest figures of runs, for Prometheus to ask for."""

from __future__ import annotations

import functools
import re
import time
from collections import deque
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, start_http_server

from .errors import TrackingError
from .folder import RunFolder
from .ledger import Ledger
from .row import Row
from .tracker import Options

_LABELS = ("run", "id")


class PrometheusTracker:
    """Holds nothing: Prometheus keeps the history of what it has asked for. All runs of the process share one server.
    """

    def __init__(self, folder: RunFolder, options: Options) -> None:
        self.sent = Ledger()
        self._folder = folder
        self._labels = (folder.name, folder.id)
        self._gauges = _exporter(options.host, options.port)
        self._set("running", 1, "whether the run goes on")
        self.describe()

    def send(self, rows: deque[Row]) -> None:
        newest = {name: (value, row) for row in rows for name, value in row.values.items()}
        for name, (value, row) in newest.items():
            self._set(name, value, f"{name.partition('/')[2]} of the newest line of kind {row.kind}")
        steps = [row.step for row in rows if row.kind in ("train", "eval", "end")]
        if steps:
            self._set("step", steps[-1], "updates done")
            self._set("last_line_timestamp_seconds", time.time(), "when the newest line was read")
        while rows:
            self.sent.note(rows.popleft().identity)

    def describe(self) -> None:
        self._set("starts", len(self._folder.starts), "how often the run was started")

    def finish(self, status: str, files: list[Path]) -> None:
        self.tell(status)

    def tell(self, status: str) -> None:
        self._set("running", float(status == "running"), "whether the run goes on")

    def _set(self, name: str, value: float, meaning: str) -> None:
        self._gauges(name, meaning).labels(*self._labels).set(value)


@functools.cache
def _exporter(host: str, port: int):  # noqa: ANN202 - a function from a name and its meaning to a gauge
    registry = CollectorRegistry()
    try:
        start_http_server(port, host, registry)
    except OSError as error:
        raise TrackingError(f"cannot listen on {host}:{port}: {error.strerror or error}; choose another with "
                            "--port") from error
    known: dict[str, Gauge] = {}

    def gauge(name: str, meaning: str) -> Gauge:
        full = "decent_train_" + re.sub(r"[^a-zA-Z0-9_]", "_", name)
        if full not in known:
            known[full] = Gauge(full, meaning, _LABELS, registry=registry)
        return known[full]

    return gauge
