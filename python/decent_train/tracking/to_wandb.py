"""Runs at Weights & Biases, online or offline."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # read when wandb is imported

import wandb

from .errors import TrackingError, Unreachable
from .folder import RunFolder
from .ledger import Ledger
from .row import Row
from .tracker import Options
from .wandb_file import rows_in, wait_until_closed

Answer = TypeVar("Answer")

# Columns of each row: which line it is, and what is on the x axis. wandb's own step counts rows and can only rise, while
# steps of a run may be trained again by other workers.
_LINE, _STEP = "line", "step"
_OFFLINE = ("offline", "dryrun")
_EXIT_CODES = {"completed": 0, "running": 0, "stopped": 75, "failed": 1, "killed": 137}


class WandbTracker:
    """The rows say which lines they are. Offline they are read back from the files that earlier processes left (a
    process that was killed leaves a file that breaks off); online the server says which row was the last.
    """

    def __init__(self, folder: RunFolder, options: Options) -> None:
        base = options.dir or Path(os.environ.get("WANDB_DIR") or folder.path.resolve().parent)
        self._folder = folder
        self.sent = Ledger()
        quiet = wandb.Settings(silent=True, console="off", disable_git=True, disable_code=True,
                               disable_job_creation=True, x_disable_stats=True, x_disable_meta=True, init_timeout=30)
        is_offline = wandb.setup().settings.mode in _OFFLINE  # of WANDB_MODE, `wandb offline` or a settings file
        files = sorted((base / "wandb").glob(f"offline-run-*-{folder.id}/run-{folder.id}.wandb")) if is_offline else []
        for file in files:
            wait_until_closed(file)
        try:
            base.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TrackingError(f"cannot write to '{base}': {error.strerror or error}", 6) from error
        self._run = _asked(lambda: wandb.init(
            project=options.project, id=folder.id, name=folder.name, dir=str(base),
            resume=None if is_offline else "allow", config=self._config(), settings=quiet, reinit="create_new"))
        self._run.define_metric(_STEP, hidden=True)
        for kind in ("train", "eval", "eval_added", "resume", "end"):
            self._run.define_metric(f"{kind}/*", step_metric=_STEP)
        lines = _lines_in(files) if is_offline else _lines_at(self._run)
        self._count = 0  # of rows
        for line in lines:
            self.sent.note(line)
            self._count += 1

    def _config(self) -> dict[str, str]:
        facts = {f"run {word}": text for word, text in self._folder.facts().items()}
        return {**self._folder.settings, **facts, "run history": self._folder.starts_text(),
                "run folder": str(self._folder.path.resolve())}

    def send(self, rows: deque[Row]) -> None:
        while rows:
            row = rows[0]
            _asked(lambda: self._run.log({**row.values, _STEP: row.step, _LINE: json.dumps(row.identity),
                                          "_timestamp": row.time}, step=self._count, commit=True))
            rows.popleft()
            self._count += 1
            self.sent.note(row.identity)

    def describe(self) -> None:
        _asked(lambda: self._run.config.update(self._config(), allow_val_change=True))

    def tell(self, status: str) -> None:
        """wandb keeps no such thing while more may follow."""

    def finish(self, status: str, files: list[Path]) -> None:
        if files:
            artifact = wandb.Artifact(f"model-{self._folder.id}", type="model")
            for file in files:
                artifact.add_file(str(file))
            _asked(lambda: self._run.log_artifact(artifact))
        _asked(lambda: self._run.finish(exit_code=_EXIT_CODES[status]))


def _lines_in(files: list[Path]) -> Iterator[list]:
    for file in files:
        for row in rows_in(file):
            if _LINE in row:
                yield json.loads(json.loads(row[_LINE]))


def _lines_at(run: wandb.Run) -> Iterator[list]:
    if not run.resumed:
        return
    place = f"{run.entity}/{run.project}/{run.id}"
    rows = _asked(lambda: wandb.Api().run(place).scan_history(keys=[_LINE], page_size=10000))
    for row in rows:
        yield json.loads(row[_LINE])


def _asked(call: Callable[[], Answer]) -> Answer:
    try:
        return call()
    except wandb.errors.AuthenticationError as error:
        raise TrackingError(f"wandb refuses: {' '.join(str(error).split())}; log in with `wandb login`, or write to files "
                            "with WANDB_MODE=offline") from error
    except (wandb.errors.CommError, wandb.errors.Error) as error:
        raise Unreachable(f"wandb does not answer: {' '.join(str(error).split())}") from error
    except OSError as error:
        raise TrackingError(f"wandb cannot write: {error.strerror or error}", 6) from error
