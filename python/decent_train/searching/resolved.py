"""The recipe of a search as the program understands it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..printed_recipe import read_printed
from ..program import TrainingError, run, settings
from ..metrics import measured
from .reader import nearest
from .sweep import Sweep


@dataclass(frozen=True)
class Resolved:
    """The recipe with the sweep's `set` and every default filled in."""

    keys: dict[str, Any]

    @property
    def digest(self) -> str:
        """The same for the same recipe, with the same files (by their paths), and a program with the same keys."""
        keys = {key: value for key, value in self.keys.items() if key != "output"}
        return hashlib.sha256(json.dumps(keys, sort_keys=True).encode()).hexdigest()


def resolve(sweep: Sweep) -> Resolved:
    """Has the program read the recipe, and try values of all keys of the space. Raises TrainingError (code 2) for a
    recipe or a key that is wrong, and where evaluations will not have the metric.
    """
    resolved = Resolved(read_printed(_print_config(sweep, {})))
    _check_metric(sweep, resolved)
    probes = {key: dimension.probes() for key, dimension in sweep.space.dimensions.items()}
    for i in range(max(map(len, probes.values()))):
        _print_config(sweep, {key: values[i] for key, values in probes.items() if i < len(values)})
    return resolved


def base_arguments(sweep: Sweep, values: Mapping[str, Any], output: object) -> list[object]:
    """The program's arguments for a trial with these values. A value of the space replaces one of `set`."""
    return ["--config", sweep.recipe, *settings(sweep.set), *settings(values), *settings({"output": str(output)})]


def _print_config(sweep: Sweep, values: Mapping[str, Any]) -> str:
    try:
        return run([*base_arguments(sweep, values, sweep.output), "--print-config"], cwd=sweep.folder)
    except TypeError as error:
        raise TrainingError(f"{sweep.document.name}: {error}", 2) from None
    except TrainingError as error:
        raise TrainingError(_placed(sweep, str(error)), error.code) from None


def _placed(sweep: Sweep, message: str) -> str:
    """The program's message, with the places of the keys of the sweep file that it names."""
    paths = [*(("space", key) for key in sweep.space.dimensions), *(("set", key) for key in sweep.set)]
    named = [path for path in paths if path[1] in message and path in sweep.document.places]
    where = "".join(f"\n{sweep.document.place(path)}: {'.'.join(path)} is written here" for path in named)
    return message + where


def _check_metric(sweep: Sweep, resolved: Resolved) -> None:
    recipe = resolved.keys
    if recipe["data"]["eval"] is None:
        raise TrainingError(f"{sweep.recipe}: a search compares evaluations, and this recipe has no data.eval", 2)
    valid = measured(recipe)
    if sweep.metric not in valid:
        place = sweep.document.place(("metric",))
        raise TrainingError(f"{place}: metric: evaluations of this recipe do not measure '{sweep.metric}' (see its "
                            f"eval.metrics); {nearest(sweep.metric, valid)}", 2)
