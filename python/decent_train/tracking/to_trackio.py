"""Runs in Trackio's local store; `trackio sync` sends it on to a Space."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import sys
from collections import deque
from contextlib import redirect_stdout
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .errors import TrackingError, Unreachable
from .folder import RunFolder
from .ledger import Ledger
from .row import Row
from .tracker import Options

# A column of each row that says which line it is.
_LINE = "line"


def _choose(folder: Path | None) -> None:
    """Trackio reads the folder of its store when it is imported, once for a process."""
    if folder is None:
        return
    if "trackio" in sys.modules and os.environ.get("TRACKIO_DIR") != str(folder):
        raise TrackingError("Trackio is loaded already, with another folder: use a process of its own for each, or set "
                            "TRACKIO_DIR before the first")
    os.environ["TRACKIO_DIR"] = str(folder)


class TrackioTracker:
    """A row of the store has all figures of a line and an id that is the line's: a second row with the id is not taken.
    """

    def __init__(self, folder: RunFolder, options: Options) -> None:
        _choose(options.dir)
        from trackio.sqlite_storage import SQLiteStorage

        self._store, self._folder, self._project = SQLiteStorage, folder, options.project
        self.sent = Ledger()
        self._generation = 0  # how often later lines have replaced earlier ones
        self._files = ""
        try:
            SQLiteStorage.validate_project_name(options.project)
        except ValueError as error:
            raise TrackingError(f"--project {options.project}: {error}") from error
        self._asked(self._read)
        self.describe()

    def _read(self) -> None:
        path = self._store.init_db(self._project)
        with sqlite3.connect(path) as store:
            query = ("SELECT json_extract(metrics, '$.line') FROM metrics WHERE run_id = ? AND log_id LIKE '%]' "
                     "ORDER BY id")
            for (line,) in store.execute(query, (self._folder.id,)):
                identity = json.loads(line)
                self.sent.note(identity)
                self._generation += _replaces(identity)
        store.close()

    def send(self, rows: deque[Row]) -> None:
        taken, generation = list(rows), self._generation
        metrics: list[dict[str, Any]] = []
        ids = []
        for row in taken:
            generation += _replaces(row.identity)
            line = json.dumps(row.identity)
            metrics.append({**row.values, _LINE: line})
            ids.append(f"{self._folder.id} {generation} {line}")
        times = [datetime.fromtimestamp(row.time, timezone.utc).isoformat() for row in taken]
        self._asked(lambda: self._store.bulk_log(
            self._project, self._folder.name, metrics, steps=[row.step for row in taken], timestamps=times, log_ids=ids,
            run_id=self._folder.id))
        self._generation = generation
        for row in taken:
            rows.popleft()
            self.sent.note(row.identity)

    def describe(self) -> None:
        """A row without figures brings the settings; it is there once, too."""
        first = self._folder.start_times()[0][1]
        self._asked(lambda: self._store.bulk_log(
            self._project, self._folder.name, [{_LINE: "start"}], steps=[0], log_ids=[f"{self._folder.id} start"],
            timestamps=[datetime.fromtimestamp(first, timezone.utc).isoformat()], run_id=self._folder.id,
            config={**self._folder.settings, **{f"run {word}": text for word, text in self._folder.facts().items()},
                    "run history": self._folder.starts_text(), "run folder": str(self._folder.path.resolve()),
                    "_Created": datetime.fromtimestamp(first, timezone.utc).isoformat(), "_Username": None,
                    "_Group": None}))

    def tell(self, status: str) -> None:
        """Trackio keeps no such thing while more may follow."""

    def finish(self, status: str, files: list[Path]) -> None:
        if files:
            self._asked(lambda: self._log_files(files))

    def _log_files(self, files: list[Path]) -> None:
        """The same files make no new version."""
        from trackio import Artifact
        from trackio.run import Run

        artifact = Artifact(name=f"model-{self._folder.id}", type="model")
        for file in files:
            artifact.add_file(file)
        with redirect_stdout(io.StringIO()):
            run = Run(url=None, project=self._project, client=None, name=self._folder.name, run_id=self._folder.id)
            run.log_artifact(artifact)
            run.finish()

    def _store_path(self) -> Path:
        return self._store.get_project_db_path(self._project)

    def _asked(self, call: Any) -> None:
        try:
            call()
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise Unreachable(f"Trackio's store '{self._store_path()}' is used by another program: {error}") from error
            raise TrackingError(f"Trackio's store '{self._store_path()}' cannot be written to: {error}", 6) from error
        except sqlite3.DatabaseError as error:
            raise TrackingError(f"Trackio's store '{self._store_path()}' is damaged: {error}") from error
        except OSError as error:
            raise TrackingError(f"cannot write to Trackio's store '{self._store_path()}': {error.strerror or error}",
                                6) from error


def _replaces(identity: list[Any]) -> bool:
    return isinstance(identity[-1], dict)
