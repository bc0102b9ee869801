"""train: starts the program on a recipe, shows how it goes on, and returns the run."""

from __future__ import annotations

import codecs
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from .checkpoint import Checkpoint
from .child import Child, Keys
from .printed_recipe import read_printed
from .program import TrainingError, error_of, program, run, settings, yaml_text
from .progress import Messages, View, view_for
from .runs import Run

Recipe = str | os.PathLike[str] | Mapping[str, object]

_STOPPED = 75  # exit code: stopped by a signal, after saving


class Stopped(KeyboardInterrupt):
    """Ctrl-C ended a training. The text says what was saved and how the training goes on.

    `run` is the run, or None if it was ended before it had written anything.
    """

    def __init__(self, message: str, run: Run | None) -> None:
        super().__init__(message)
        self.run = run


def train(recipe: Recipe, workers: int = 1, *, set: Mapping[str, object] | None = None,  # noqa: A002 - the flag's name
          resume: str | os.PathLike[str] | Run | Checkpoint | None = None, output: str | os.PathLike[str] | None = None,
          quiet: bool = False) -> Run:
    """Trains what a recipe says, with this number of workers on this machine, and returns the run when it has completed.

    recipe: the path of a recipe, or a recipe as a dictionary, whose relative paths are relative to the working folder. Such a
        recipe without a `name` is named after its model file. `run.recipe` of an earlier run is such a dictionary.
    set: keys of the recipe that are changed for this run, {"optimizer.lr": 1e-3} or {"optimizer": {"lr": 1e-3}}.
    resume: "auto" goes on from the newest whole checkpoint in the output folder, or starts afresh if there is none; the
        path of a checkpoint or of a run, a Checkpoint, or a Run goes on from there.
    output: the run's folder, in place of the recipe's, relative to the working folder.
    quiet: shows only warnings.

    Progress is shown as a bar in a terminal, as a display that changes in a notebook, and as lines elsewhere.

    Ctrl-C (in a notebook: interrupt the kernel) saves a checkpoint and raises Stopped, a KeyboardInterrupt; a second
    Ctrl-C ends the training at once. If this process ends, however it ends, the program saves a checkpoint and stops,
    too. Other threads go on while this function waits.

    Raises TrainingError with the program's message and exit code, TypeError for values that no recipe can hold, and
    FileNotFoundError if the program is not there.
    """
    with _recipe_file(recipe) as (file, given):
        flags = [str(file), "--workers", str(workers), *given, *settings(set or {})]
        if output is not None:
            flags += ["--set", f"output={yaml_text(os.fspath(output))}"]
        folder = Path(str(read_printed(run([*flags, "--print-config"]))["output"])).absolute()
        if resume is not None:
            flags += ["--resume", _place_of(resume)]
        return _supervise([*flags, *(["--quiet"] if quiet else [])], folder, view_for(quiet))


@contextmanager
def _recipe_file(recipe: Recipe) -> Iterator[tuple[Path, list[str]]]:
    """A file to name to the program, and flags that make up the rest: paths in --set are relative to the working folder."""
    if not isinstance(recipe, Mapping):
        if not isinstance(recipe, (str, os.PathLike)):
            raise TypeError(f"a recipe is a path or a dictionary, not {recipe!r}")
        yield Path(recipe), []
        return
    bases = recipe.get("extends")
    extended = {"extends": _absolute(bases)} if bases is not None else {}
    with tempfile.TemporaryDirectory(prefix="decent-train-") as folder:
        file = Path(folder, f"{_name_for(recipe)}.yaml")
        file.write_text(json.dumps(extended))
        try:
            yield file, settings({key: value for key, value in recipe.items() if key != "extends"})
        except TrainingError as error:  # the file is not the user's
            message = re.sub(rf"{re.escape(str(file))}(:\d+:\d+: )?", lambda at: "" if at[1] else "the recipe", str(error))
            raise TrainingError(message, error.code) from None


def _name_for(recipe: Mapping[str, object]) -> str:
    """The name of a recipe that has no file of its own and gives no name."""
    model = recipe.get("model")
    path = model.get("path") if isinstance(model, Mapping) else None
    return Path(path).stem or "run" if isinstance(path, (str, os.PathLike)) else "run"


def _absolute(paths: object) -> object:
    """As the text of a recipe whose folder is not the working folder. A path that begins with a variable stays as it is."""
    if isinstance(paths, (list, tuple)):
        return [_absolute(path) for path in paths]
    is_path = isinstance(paths, (str, os.PathLike)) and not str(paths).startswith("${")
    return str(Path(paths).absolute()) if is_path else paths


def _place_of(resume: str | os.PathLike[str] | Run | Checkpoint) -> str:
    return str(resume.folder) if isinstance(resume, Run) else os.fspath(resume)


def _supervise(flags: Sequence[str], folder: Path, view: View) -> Run:
    """Starts the program and waits for its end."""
    messages = Messages(view)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with Keys() as keys, Child([str(program()), *flags], view.stdout) as child:
        def tick() -> None:
            view.tick()
            if child.suspended < keys.ctrl_z:
                child.suspend()
            if child.asked < keys.ctrl_c:
                child.interrupt()
                if child.asked == 1:
                    view.say("stopping after a checkpoint; Ctrl-C again ends the training at once")

        code = child.wait(lambda text: view.out(decoder.decode(text)), messages.take, tick)
        view.close()
        interrupted = keys.ctrl_c > 0
    if code == 0 and not interrupted:
        return Run(folder)
    raise _error_of(code, messages.message(), folder, interrupted)


def _error_of(code: int, message: str, folder: Path, interrupted: bool) -> BaseException:
    error = error_of(code, message)
    if not interrupted:
        return error
    run_so_far = Run(folder) if Run.is_run(folder) else None
    if code == 0:
        return Stopped(f"the training had completed already: '{folder}'", run_so_far)
    if code == _STOPPED:
        return Stopped(f'{message} (train(.., resume="auto"))', run_so_far)
    return Stopped(f"the training was ended at once: {error}" if code < 0 else str(error), run_so_far)
