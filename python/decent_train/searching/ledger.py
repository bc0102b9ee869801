"""The trials of a search in Optuna's storage."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

from ..program import TrainingError
from .samplers import Seeds
from .sweep import Sweep

STUDY = "search"  # the name of the one study in the storage
_RUNGS = "rungs"  # attribute of a trial: the steps of the evaluations of its rungs
_MESSAGE = "message"  # attribute of a trial: why it failed


class Ledger:
    """The study of a search. Every change is in its file when a call returns, so that a search that is killed goes on.

    Optuna's own `ask` draws with the state that a sampler has in memory. Here each trial is drawn in a copy of the
    study, by a sampler that is made from the seed and the trial's number: a search that was stopped goes on with the
    same trials.
    """

    def __init__(self, sweep: Sweep, study: optuna.Study, storage: optuna.storages.BaseStorage) -> None:
        self._sweep = sweep
        self._study = study
        self._storage = storage
        # Nobody else writes (lock.py), and the storage would read every unfinished trial again for each question.
        self._trials = study.get_trials(deepcopy=False)

    # ---- what is there --------------------------------------------------------------------------

    def trials(self) -> list[FrozenTrial]:
        """All trials, by number."""
        return list(self._trials)

    def rungs(self, trial: FrozenTrial) -> list[int]:
        """The steps of the evaluations at which this trial has been compared, or waits to be."""
        return trial.user_attrs.get(_RUNGS, [])

    def message(self, trial: FrozenTrial) -> str:
        return trial.user_attrs.get(_MESSAGE, "")

    def attribute(self, name: str) -> Any:
        """What the study remembers under this name; None where there is nothing."""
        return self._study.user_attrs.get(name)

    def remember(self, name: str, value: Any) -> None:
        self._study.set_user_attr(name, value)

    # ---- what happens ---------------------------------------------------------------------------

    def ask(self) -> int:
        """Draws the parameters of a new trial. Returns its number."""
        number = len(self._trials)
        drawn = self._draw(number)
        self._study.add_trial(create_trial(state=TrialState.RUNNING, params=drawn.params,
                                           distributions=drawn.distributions, system_attrs=drawn.system_attrs))
        self._trials = self._study.get_trials(deepcopy=False)
        return number

    def report(self, number: int, step: int, value: float) -> None:
        """Notes the metric of the evaluation of this step."""
        self._storage.set_trial_intermediate_value(self._id(number), step, value)
        self._read(number)

    def should_prune(self, number: int) -> bool:
        return self._study.pruner.prune(self._study, self._trials[number])

    def reach(self, number: int, step: int) -> None:
        """Notes that the trial has come to its next rung with the evaluation of this step."""
        self._note(number, _RUNGS, [*self.rungs(self._trials[number]), step])

    def complete(self, number: int, value: float) -> None:
        self._study.tell(number, value)
        self._read(number)

    def prune(self, number: int) -> None:
        """Its value is that of its last evaluation."""
        self._study.tell(number, state=TrialState.PRUNED)
        self._read(number)

    def fail(self, number: int, message: str) -> None:
        self._note(number, _MESSAGE, message)
        self._study.tell(number, state=TrialState.FAIL)
        self._read(number)

    def _note(self, number: int, name: str, value: Any) -> None:
        self._storage.set_trial_user_attr(self._id(number), name, value)
        self._read(number)

    def _read(self, number: int) -> None:
        self._trials[number] = self._storage.get_trial(self._id(number))

    def _id(self, number: int) -> int:
        return self._trials[number]._trial_id

    # ---- drawing --------------------------------------------------------------------------------

    def _draw(self, number: int) -> FrozenTrial:
        sampler = self._sweep.sampler
        grid = self._sweep.space.grid() if sampler.name == "grid" else {}
        seeds = Seeds(self._sweep.seed, trial_seed(self._sweep.seed, number), grid)
        copy = optuna.create_study(direction=self._sweep.direction, sampler=sampler.sampler(seeds))
        copy.add_trials(map(self._as_seen, self._trials))
        copy.ask(self._sweep.space.distributions())
        return copy.get_trials(deepcopy=False)[number]

    def _as_seen(self, trial: FrozenTrial) -> FrozenTrial:
        """The trial as the sampler sees it.

        With halving all trials are seen by the evaluation of their first rung, the only one that all of them have:
        where a trial stands by now must not count for or against its parameters. A failed trial, which Optuna leaves
        out, is seen as one that was pruned before it had any value, which Optuna takes for the worst.
        """
        state, value, reported = trial.state, trial.value, trial.intermediate_values
        if self._sweep.halving is not None and self.rungs(trial):
            state, value = TrialState.COMPLETE, reported[self.rungs(trial)[0]]
        if state == TrialState.FAIL or (value is not None and math.isnan(value)):
            state, value, reported = TrialState.PRUNED, None, {}
        return create_trial(state=state, value=value, params=trial.params, distributions=trial.distributions,
                            system_attrs=trial.system_attrs, intermediate_values=reported)


def trial_seed(seed: int, number: int) -> int:
    """The seed of a trial's sampler, below 2^32."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:4], "big")


def storage_of(output: Path) -> Path:
    """The file of Optuna's storage in the folder of a search."""
    return output / "search.db"


def storage_address(path: Path) -> str:
    """As SQLAlchemy writes it, in which some characters of a path have another meaning."""
    import sqlalchemy

    return sqlalchemy.URL.create("sqlite", database=str(path)).render_as_string()


@contextmanager
def opened(sweep: Sweep, identity: Mapping[str, Any]) -> Iterator[Ledger]:
    """The ledger in the search's folder, which is made if it is not there.

    Raises TrainingError: code 2 if the trials there are those of another sweep (if `identity`, what decides which
    trials a search has, differs from the stored one), 4 if the storage is damaged, and in the body 6 if it cannot be
    written.
    """
    path = storage_of(sweep.output)
    with _quiet():
        storage, study = _open(sweep, path)
        try:
            ledger = Ledger(sweep, study, storage)
            _check_identity(sweep, ledger, identity)
            yield ledger
        except optuna.exceptions.StorageInternalError as error:
            raise TrainingError(f"cannot write '{path}': {error.__cause__ or error}", 6) from None
        finally:
            storage.remove_session()
            storage.engine.dispose()


def _open(sweep: Sweep, path: Path) -> tuple[optuna.storages.RDBStorage, optuna.Study]:
    """Raises TrainingError (code 4) if the file is no storage of Optuna's."""
    try:
        storage = optuna.storages.RDBStorage(storage_address(path), engine_kwargs={"connect_args": {"timeout": 60}})
        # Its sampler is never asked (see Ledger).
        study = optuna.create_study(storage=storage, study_name=STUDY, direction=sweep.direction, load_if_exists=True,
                                    sampler=optuna.samplers.RandomSampler(),
                                    pruner=sweep.pruner.pruner() if sweep.pruner else optuna.pruners.NopPruner())
    except Exception as error:  # of Optuna, Alembic, SQLAlchemy or SQLite
        raise TrainingError(f"'{path}' cannot be used as Optuna's storage: {str(error).splitlines()[0]}", 4) from None
    return storage, study


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's own lines."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _check_identity(sweep: Sweep, ledger: Ledger, identity: Mapping[str, Any]) -> None:
    stored = ledger.attribute("sweep")
    if stored is None or not ledger.trials():
        return ledger.remember("sweep", dict(identity))
    changed = [f"  {key}: was {stored.get(key)}, is {value}" for key, value in identity.items()
               if stored.get(key) != value]
    if changed:
        raise TrainingError(f"{sweep.document.name}: the search in '{sweep.output}' has trials of another sweep. Undo "
                            "the change, or choose another output. These differ:\n" + "\n".join(changed), 2)
