"""A search for the best values of recipe keys, and the command `decent-sweep`.

    decent-sweep sweep.yaml

    found = decent_train.search("sweep.yaml", trials=20)
    print(found, found.best.values)

Needs the packages optuna and PyYAML: pip install 'decent-train[search]'. docs/search.md has the keys of a sweep
file.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..program import TrainingError

if TYPE_CHECKING:
    from .results import Search

_HELP = """Trains a recipe with many values of some of its keys and finds the best ones. Each trial is a run folder.
A search that was stopped, or that is to have more trials, goes on by the same command."""
_EXAMPLE = """example of a sweep file:
  recipe: digits_cnn.yaml
  space:
    optimizer.lr: {log_uniform: [1e-4, 1e-1]}
    parallel.topology: {choice: [ring, complete]}
  metric: loss
  trials: 30
  halving: {reduction_factor: 3}

exit codes: those of decent-train; 75: stopped by a signal, everything is saved"""


def search(sweep: str | Path | Mapping[str, Any], *, quiet: bool = False, **overrides: Any) -> Search:
    """Trains the trials of a sweep that are not done yet, and returns what all of them have come to.

    `sweep` is a sweep file or a mapping of its keys; `overrides` replace keys. Progress is printed, a line for each
    trial, unless `quiet`. Ctrl-C has all trials saved; the same call goes on.

    Raises TrainingError with the exit code that the command would have: 2 for a wrong sweep or recipe, 75 after a
    signal, and a trial's own where the search cannot go on. A trial that diverges does not end the search. Raises
    ImportError if Optuna or PyYAML is not installed.
    """
    _require_packages()
    from .ladder import ladder_of
    from .ledger import opened
    from .lock import locked
    from .resolved import resolve
    from .results import best_line, result_of
    from .searcher import Searcher, check_folder, identity_of
    from .stop_signals import StopSignals
    from .sweep import read_sweep

    say: Callable[[str], None] = (lambda _: None) if quiet else (lambda text: print(text, flush=True))
    checked = read_sweep(sweep, overrides)
    check_folder(checked)
    resolved = resolve(checked)
    ladder = ladder_of(checked, resolved.keys) if checked.halving else None
    with StopSignals() as signals, locked(checked.output), opened(checked, identity_of(checked, resolved)) as ledger:
        Searcher(checked, resolved, ladder, ledger, say).run(signals)
        found = result_of(checked, ledger)
    say(f"\n{found}\n\n{best_line(found)}")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """The command `decent-sweep`."""
    parser = argparse.ArgumentParser(prog="decent-sweep", description=_HELP, epilog=_EXAMPLE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", metavar="SWEEP", help="the sweep file, YAML")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[],
                        help="replaces a key of the sweep file, VALUE is YAML; may repeat")
    parser.add_argument("--quiet", action="store_true", help="prints errors only")
    given = parser.parse_args(arguments)
    try:
        _require_packages()
        found = search(given.sweep, quiet=given.quiet, **dict(map(_override, given.set)))
    except (TrainingError, ImportError, OSError) as error:
        print(f"decent-sweep: error: {error}", file=sys.stderr)
        sys.exit(_code_of(error))
    except KeyboardInterrupt:
        sys.exit(130)
    if found.best is None:
        print("decent-sweep: error: no trial was completed", file=sys.stderr)
        sys.exit(5)


def _code_of(error: Exception) -> int:
    """The exit code. What cannot be read is a TrainingError, so any other error of a file is one of writing."""
    if isinstance(error, TrainingError):
        return error.code
    return 2 if isinstance(error, (ImportError, FileNotFoundError)) else 6


def _override(text: str) -> tuple[str, Any]:
    """Raises TrainingError (code 2) if the text is no KEY=VALUE."""
    from .sweep import KEYS
    from ..yaml_files import parse

    key, equals, value = text.partition("=")
    if not equals or key not in KEYS:
        raise TrainingError(f"--set {text}: must be KEY=VALUE with one of the keys {', '.join(KEYS)}", 2)
    return key, parse(value, f"--set {key}")


def _require_packages() -> None:
    for package, name in (("optuna", "optuna"), ("yaml", "PyYAML")):
        if importlib.util.find_spec(package) is None:
            raise ImportError(f"a search needs the package {name}: pip install 'decent-train[search]'")
