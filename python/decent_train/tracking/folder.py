"""The output folder of a run, read and never written to."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..printed_recipe import read_printed
from ..run_folder import is_held, is_run
from .errors import TrackingError

# What a run leaves at its end, and what tells how to use it.
_FILES = ("model.pt", "model.pt2", "model.onnx", "model.safetensors", "adapters.safetensors", "recipe.yaml",
          "data.json", "report.html")


class RunFolder:
    """What a run says about itself. The facts are those of the last refresh()."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.id = ""  # of the run; empty until it has begun
        self.name = ""
        self.starts: list[dict[str, Any]] = []
        self.settings: dict[str, str] = {}  # the recipe, keys with dots
        self.recipe = ""  # its text
        self._stamps: list[tuple[int, int, int] | None] = []

    def is_run(self) -> bool:
        return is_run(self.path)

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    def refresh(self) -> bool:
        """Reads recipe.yaml and run.json again if they have changed; returns whether they have. Raises TrackingError if
        one cannot be read.
        """
        stamps = [_stamp(self.path / name) for name in ("recipe.yaml", "run.json")]
        if stamps == self._stamps:
            return False
        facts = _json(self.path / "run.json")
        recipe = _text(self.path / "recipe.yaml")
        settings = flat(_recipe(recipe, self.path / "recipe.yaml"))
        self.starts = [each for each in facts.get("starts", []) if isinstance(each, dict)]
        self.recipe, self.settings = recipe, {key: _as_text(value) for key, value in settings.items()}
        self.name = self.settings.get("name") or self.path.resolve().name
        self.id = self._identify()
        self._stamps = stamps
        return True

    def forget(self) -> None:
        """The next refresh() reads everything."""
        self._stamps = []

    def _identify(self) -> str:
        """The run's own id; for a run that a program without ids began: of its first start and its place."""
        own = self.starts[0].get("run") if self.starts else None
        if isinstance(own, str) and own:
            return own
        if not self.starts and not self.recipe and not self.metrics.exists():
            return ""
        first = json.dumps(self.starts[0], sort_keys=True) if self.starts else self.recipe
        return hashlib.sha256(f"{self.path.resolve()}\n{first}".encode(errors="replace")).hexdigest()[:16]

    def start_times(self) -> list[tuple[int, float]]:
        """Of each start: the step after which it begins, and seconds since the epoch."""
        times = [(int(start.get("step", 0)), _seconds(start.get("time", ""))) for start in self.starts]
        if times:
            return times
        for name in ("recipe.yaml", "metrics.jsonl"):
            stamp = _stamp(self.path / name)
            if stamp is not None:
                return [(0, float(stamp[2] // 10**9))]
        return [(0, 0.0)]

    def facts(self) -> dict[str, str]:
        """What the last start said of itself: "device", "model", .."""
        if not self.starts:
            return {}
        last = self.starts[-1]
        lines = {f"{word}": str(text) for word, text in last.get("lines", [])}
        return {**lines, "program": str(last.get("program", "")), "starts": str(len(self.starts))}

    def starts_text(self) -> str:
        """A line for each start."""
        return "\n".join(_start_text(start) for start in self.starts)

    def lives(self) -> bool:
        """Whether a program holds the folder."""
        return is_held(self.path)

    def files(self) -> list[Path]:
        """The models of the run and what belongs to them, those that are there."""
        return [self.path / name for name in _FILES if (self.path / name).is_file()]


def _start_text(start: dict[str, Any]) -> str:
    changes = [f"; {topic}: {was or 'none'} -> {now or 'none'}" for topic, was, now in start.get("changed", [])]
    return f"{start.get('time')}: after step {start.get('step')}, workers: {start.get('workers')}" + "".join(changes)


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings with dots: {"optimizer": {"lr": 1}} gives {"optimizer.lr": 1}. A source of data is a setting of its own
    for each of its entries.
    """
    result: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            result.update(flat(value, f"{prefix}{key}."))
        else:
            result[f"{prefix}{key}"] = value
    return result


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _recipe(text: str, path: Path) -> dict[str, Any]:
    try:
        return read_printed(text)
    except ValueError as error:
        raise TrackingError(f"'{path}' is damaged: {error}") from error


def _json(path: Path) -> dict[str, Any]:
    text = _text(path)
    try:
        values = json.loads(text) if text else {}
    except ValueError as error:
        raise TrackingError(f"'{path}' is damaged: {error}") from error
    return values if isinstance(values, dict) else {}


def _text(path: Path) -> str:
    """Empty if there is no such file. The program renames whole files into place."""
    try:
        return path.read_bytes().decode("utf-8", errors="replace") if path.is_file() else ""
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise TrackingError(f"cannot read '{path}': {error.strerror}") from error


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _seconds(text: str) -> float:
    """Of a local time."""
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S"))
    except (ValueError, TypeError, OverflowError):
        return 0.0
