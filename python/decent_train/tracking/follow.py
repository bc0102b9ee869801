"""Follows runs: reads what they write and sends it."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from ..run_folder import SIGNS_OF_A_RUN
from .claim import Claim
from .errors import TrackingError
from .feed import Feed, Mode, Plan
from .folder import RunFolder
from .tracker import Options, Tracker

# Name -> the module, its class, the package that it needs.
TRACKERS = {
    "mlflow": ("to_mlflow", "MlflowTracker", "mlflow-skinny"),
    "wandb": ("to_wandb", "WandbTracker", "wandb"),
    "trackio": ("to_trackio", "TrackioTracker", "trackio"),
    "tensorboard": ("to_tensorboard", "TensorboardTracker", "tensorboard"),
    "prometheus": ("to_prometheus", "PrometheusTracker", "prometheus-client"),
}
_POLL_S = 0.5


def track(folders: str | Path | Iterable[str | Path], to: str, *, project: str = "decent-train", uri: str | None = None,
          dir: str | Path | None = None, follow: bool = False, artifacts: bool = True) -> None:
    """Sends the runs in these folders to a tracker ("mlflow", "wandb", "trackio", "tensorboard") and returns when they
    are sent: all there is of a run that is over; a run that goes on is followed to its end, with `follow` over stops
    and resumes, too. `uri` and `dir` as --uri and --dir of decent-track. Raises TrackingError.
    """
    paths = [Path(folders)] if isinstance(folders, (str, Path)) else [Path(folder) for folder in folders]
    if to == "prometheus":
        raise TrackingError("a server for Prometheus stays: start it with decent-track FOLDER --to prometheus")
    options = Options(project=project, uri=uri, dir=None if dir is None else Path(dir))
    tracker = tracker_class(to)
    follow_all(paths, Plan(tracker, options, Mode.FOLLOW if follow else Mode.DEFAULT, artifacts, say=warn,
                           claim=lambda folder: Claim(folder, to, options)))


def tracker_class(name: str) -> Callable[[RunFolder, Options], Tracker]:
    """Raises TrackingError if there is no such tracker, or if its package is not installed."""
    if name not in TRACKERS:
        raise TrackingError(f"unknown tracker '{name}': one of {', '.join(TRACKERS)}")
    module, class_name, package = TRACKERS[name]
    try:
        return getattr(importlib.import_module(f".{module}", __package__), class_name)
    except ImportError as error:
        raise TrackingError(f"--to {name} needs the package {package} ({error}): pip install {package}, or "
                            "pip install 'decent-train[track]'") from error


def follow_all(folders: list[Path], plan: Plan, stop: threading.Event | None = None) -> None:
    """Returns when all runs are sent, or once `stop` is set and all that is there by then is sent. A run that cannot be
    sent does not keep back the others. Raises TrackingError for the first that could not.
    """
    stop = stop or threading.Event()
    feeds = [Feed(folder, plan) for folder in folders]
    for feed in feeds:
        if plan.beside is None and not feed.folder.is_run():
            raise TrackingError(f"'{feed.folder.path}' holds no run: it has none of "
                                f"{', '.join(SIGNS_OF_A_RUN)}")
    errors: list[TrackingError] = []
    going = list(feeds)
    try:
        while going and not stop.is_set():
            moved = [_tried(feed, feed.work, errors) for feed in going]
            going = [feed for feed, each in zip(going, moved) if each is not None and not feed.is_done]
            if not any(moved):
                stop.wait(_POLL_S)
        for feed in going:
            _tried(feed, feed.end, errors)
    finally:
        for feed in feeds:
            feed.close()
    for error in errors[1:]:
        warn(str(error))
    if errors:
        raise errors[0]


def warn(text: str) -> None:
    """Beside a run, whoever read stderr may have ended."""
    with suppress(OSError):
        print(f"decent-track: warning: {text}", file=sys.stderr, flush=True)


def _tried(feed: Feed, call: Callable[[], bool | None], errors: list[TrackingError]) -> bool | None:
    """None if it failed."""
    try:
        return bool(call())
    except TrackingError as error:
        errors.append(error)
        return None
