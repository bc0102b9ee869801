"""The command decent-track."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

from .claim import Claim
from .errors import TrackingError
from .feed import Mode, Plan
from .follow import TRACKERS, follow_all, tracker_class, warn
from .process import Process
from .tracker import Options

_BESIDE_WAITS_S = 120  # for the tracking process of a run's start before

_EPILOG = """\
examples:
  decent-track runs/digits --to mlflow --uri http://127.0.0.1:5000
  decent-track runs/* --to tensorboard
  decent-track runs/digits --to prometheus --port 9464
What each tracker gets, and how it goes on after a stop: docs/track.md"""


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0 all is sent; 2 the user has to do something; 3 the tracker does not answer; 6 something
    cannot be written.
    """
    options = _parser().parse_args(arguments)
    prefix = "warning" if options.beside is not None else "error"
    try:
        _run(options)
    except TrackingError as error:
        with suppress(OSError):
            print(f"decent-track: {prefix}: {error}", file=sys.stderr, flush=True)
        return error.code
    return 0


def _run(options: argparse.Namespace) -> None:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: _stop(stop))
    serves = options.to == "prometheus"
    place = Options(options.project, options.uri, options.dir and options.dir.absolute(), options.host, options.port)
    beside = None if options.beside is None else Process(options.beside)
    mode = Mode.FOREVER if serves and beside is None else Mode(options.mode)
    tracker = tracker_class(options.to)
    waits = 0 if beside is None else _BESIDE_WAITS_S

    def claim(folder):  # noqa: ANN001, ANN202
        return None if serves else Claim(folder, options.to, place, options.state, waits)

    plan = Plan(tracker, place, mode, options.artifacts, beside, options.patience, warn, claim)
    follow_all(options.folders, plan, stop)


def _stop(stop: threading.Event) -> None:
    """A second signal ends the process at once."""
    stop.set()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="decent-track", epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        description="Sends the figures, settings and models of runs to a tracker. A run that goes on is followed to its "
                    "end. A run is only read; what a tracker has got it does not get again.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="the output folder of a run")
    parser.add_argument("--to", required=True, choices=TRACKERS, help="the tracker")
    parser.add_argument("--project", default="decent-train", metavar="NAME",
                        help="mlflow's experiment, the project of wandb or trackio (default: decent-train)")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--once", dest="mode", action="store_const", const="once", default="default",
                       help="send what there is now, even if the run goes on")
    modes.add_argument("--follow", dest="mode", action="store_const", const="follow",
                       help="follow until the run has completed, over stops, kills and resumes")
    modes.add_argument("--beside", type=_positive, metavar="PID",
                       help="follow until this process has ended; errors are warnings")
    parser.add_argument("--no-artifacts", dest="artifacts", action="store_false", help="send no models and other files")
    parser.add_argument("--uri", metavar="URI", help="mlflow: the server or database (default: MLFLOW_TRACKING_URI)")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="tensorboard, wandb: where their files go (default: "
                        "beside the run's folder); trackio: its store")
    parser.add_argument("--host", default="127.0.0.1", help="prometheus: the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=os.environ.get("DECENT_TRACK_PORT", "9464"),
                        help="prometheus: the port to listen on (default: DECENT_TRACK_PORT, or 9464)")
    parser.add_argument("--patience", type=float, default=60, metavar="SECONDS",
                        help="how long to try to reach the tracker when no more is to come (default: 60)")
    parser.add_argument("--state", type=Path, metavar="DIR",
                        help="where decent-track keeps its locks (default: $XDG_STATE_HOME/decent-train/track)")
    return parser


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no process id")
    return int(text)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is no port: 1 to 65535")
    return int(text)
