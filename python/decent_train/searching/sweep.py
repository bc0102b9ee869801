"""The sweep file: what is searched, how, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..program import TrainingError, settings
from ..yaml_files import Document, read
from ..metrics import HIGHER, LOWER, direction_of
from .reader import Reader, is_integer, nearest, shown
from .samplers import PRUNERS, SAMPLERS, Chosen, read_chosen
from .space import Space, note_grid_problems, read_space

KEYS = ("recipe", "space", "metric", "direction", "trials", "seed", "sampler", "pruner", "halving", "output", "workers",
        "parallel", "threads", "set")
TRIALS = 30  # where the file does not say
_HALVING_KEYS = ("reduction_factor", "rungs")


@dataclass(frozen=True)
class Halving:
    """Successive halving: at each rung the best 1 / reduction_factor of the trials go on."""

    reduction_factor: int
    rungs: int | list[int] | None  # where they are, or at most how many; None: as many as the trials are enough for


@dataclass(frozen=True)
class Sweep:
    """A checked sweep file. docs/search.md has the meaning of every key."""

    document: Document
    folder: Path  # relative paths of the space and of `set` start here
    recipe: Path
    space: Space
    metric: str
    direction: str  # minimize | maximize
    trials: int
    seed: int
    sampler: Chosen
    pruner: Chosen | None
    halving: Halving | None
    output: Path
    workers: int
    parallel: int | None  # None: as the cores allow
    threads: int | None  # of each worker; None: as the cores allow
    set: dict[str, Any]

    @property
    def minimizes(self) -> bool:
        return self.direction == "minimize"


def read_sweep(sweep: str | Path | Mapping[str, Any], overrides: Mapping[str, Any]) -> Sweep:
    """The sweep of a file or a mapping, with some keys replaced. Relative paths start at the folder of the
    file, those of a mapping, and `output`, at the working folder. Raises TrainingError (code 2) with all that
    is wrong.
    """
    if isinstance(sweep, Mapping):
        document, folder, stem = Document(dict(sweep), "the sweep"), Path.cwd(), "search"
    else:
        document, folder, stem = read(sweep), Path(sweep).absolute().parent, Path(sweep).stem
    if not isinstance(document.value, dict):
        raise TrainingError(f"{document.name}: a sweep must be a mapping of these keys: {', '.join(KEYS)}", 2)
    return _checked(_overridden(document, overrides), folder, stem, "recipe" in overrides)


def _overridden(document: Document, overrides: Mapping[str, Any]) -> Document:
    """The places of replaced keys go: their values do not stand in the file."""
    places = {path: place for path, place in document.places.items() if not path or path[0] not in overrides}
    return Document({**document.value, **overrides}, document.name, places)


def _checked(document: Document, folder: Path, stem: str, recipe_is_from_here: bool) -> Sweep:
    reader = Reader(document)
    reader.known((), KEYS)
    recipe = _recipe(reader, Path.cwd() if recipe_is_from_here else folder)
    space = read_space(reader) if "space" in document.value else Space({})
    for key in ("recipe", "space"):
        if document.value.get(key) is None:
            reader.wrong((), f"the key '{key}' is missing")
    if "output" in space.dimensions:
        reader.wrong(("space", "output"), "every trial has a folder of its own in the search's output")
    metric = reader.text(("metric",), "loss")
    sampler = read_chosen(reader, ("sampler",), SAMPLERS, "tpe")
    pruner = read_chosen(reader, ("pruner",), PRUNERS, None)
    halving = _halving(reader)
    if pruner is not None and halving is not None:
        reader.wrong(("pruner",), "is of no use with halving, which ends trials at its rungs: leave one of them out")
    if sampler is not None and sampler.name == "grid":
        note_grid_problems(reader, space)
    made = Sweep(document=document, folder=folder, recipe=recipe, space=space, metric=metric,
                 direction=_direction(reader, metric), trials=0, seed=reader.integer(("seed",), 0, 0),
                 sampler=sampler, pruner=pruner, halving=halving, output=_output(reader, stem),
                 workers=reader.integer(("workers",), 1, 1), parallel=_parallel(reader),
                 threads=reader.integer(("threads",), 1), set=_set(reader, space))
    trials = reader.integer(("trials",), 1)
    reader.finish()
    return Sweep(**{**made.__dict__, "trials": _trials(trials, made)})


def _recipe(reader: Reader, folder: Path) -> Path:
    value = reader.at(("recipe",))
    if value is None or isinstance(value, (str, Path)):
        return folder / (value or "")
    reader.wrong(("recipe",), f"must be the path of a recipe, not {shown(value)}")
    return folder


def _output(reader: Reader, stem: str) -> Path:
    value = reader.at(("output",))
    return value.absolute() if isinstance(value, Path) else Path(reader.text(("output",), f"runs/{stem}")).absolute()


def _direction(reader: Reader, metric: str) -> str:
    known = direction_of(metric)
    given = reader.one_of(("direction",), ("minimize", "maximize"), known)
    if given is None and reader.at(("direction",)) is None:
        reader.wrong(("metric",), f"'{metric}' is no metric of the program (for another figure of an evaluation, write "
                                  f"direction: minimize or maximize); {nearest(metric, [*LOWER, *HIGHER])}")
    return given or "minimize"


def _halving(reader: Reader) -> Halving | None:
    if reader.at(("halving",)) is None:
        return None
    reader.known(("halving",), _HALVING_KEYS)
    if not isinstance(reader.at(("halving",)), dict):
        return None
    factor = reader.integer(("halving", "reduction_factor"), 2, 3)
    rungs = reader.at(("halving", "rungs"))
    if isinstance(rungs, list):
        if not (rungs and all(is_integer(rung) and rung >= 1 for rung in rungs) and rungs == sorted(set(rungs))):
            reader.wrong(("halving", "rungs"), "must be integers >= 1 that grow, as in [2, 6]")
        return Halving(factor, rungs)
    return Halving(factor, reader.integer(("halving", "rungs"), 1))


def _parallel(reader: Reader) -> int | None:
    if reader.at(("parallel",)) in (None, "auto"):
        return None
    if isinstance(reader.at(("parallel",)), str):
        reader.wrong(("parallel",), f"must be auto or an integer >= 1, not {shown(reader.at(('parallel',)))}")
        return None
    return reader.integer(("parallel",), 1)


def _set(reader: Reader, space: Space) -> dict[str, Any]:
    if reader.at(("set",)) is None:
        return {}
    values = reader.mapping(("set",))
    try:
        keys = {flag.partition("=")[0] for flag in settings(values)[1::2]}
    except TypeError as error:
        reader.wrong(("set",), str(error))
        return {}
    for key in keys & {*space.dimensions, "output"}:
        reader.wrong(("set",), f"'{key}' is chosen by the search: leave it out of set")
    return values


def _trials(given: int | None, sweep: Sweep) -> int:
    """A grid has as many trials as it has points, unless fewer are asked for."""
    if sweep.sampler.name != "grid":
        return given or TRIALS
    points = 1
    for values in sweep.space.grid().values():
        points *= len(values)
    return min(given or points, points)
