"""Whole trainings, for the loss of the averaged model. Links have no limit, because that would change no bit."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from comparison import (BETAS, EVALUATIONS, LENGTHS, METHODS, RATES, STEPS, TARGET, WARM_UP, WORKERS, Method, best_rate,
                        length_to, next_length, parallel, topology)
from programs import FILES, HERE, PROGRAM, run_workers, version_of_others, version_of_ours
from results import Results
from tables import say

TRAIN, EVAL = FILES / "shuffled_train.safetensors", FILES / "shuffled_eval.safetensors"
MODEL = FILES / "gpt_11m.pt"


def recipe(steps: int, rate: float) -> dict:
    """One passage of 128 bytes a worker and step."""
    data = {name: {"format": "safetensors", "path": str(path)} for name, path in (("train", TRAIN), ("eval", EVAL))}
    return {
        "model": {"path": str(MODEL)},
        "data": {**data, "batch_size": 1, "eval_batch_size": 16, "shuffle": False},
        "train": {"steps": steps},
        "optimizer": {"name": "adamw", "lr": rate, "betas": list(BETAS)},
        "schedule": {"name": "cosine_warmup", "warmup_steps": WARM_UP},
        "eval": {"every_steps": steps // EVALUATIONS},
        "checkpoint": {"every_steps": None, "every_epochs": None},
        "log": {"every_steps": 20, "tensorboard": False},
    }


def _train_ours(section: dict, workers: int, steps: int, rate: float) -> list[list[float]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config, output = folder / "recipe.yaml", folder / "run"
        config.write_text(json.dumps({**recipe(steps, rate), "parallel": section}))  # JSON is YAML
        run_workers([PROGRAM, "--config", config, "--set", f"output={output}"], workers, folder)
        lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    return [[line["step"], line["loss"]] for line in lines if line["kind"] == "eval"]


def _train_other(name: str, workers: int, steps: int, rate: float) -> list[list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, HERE / "contender_losses.py", name, MODEL, json.dumps(recipe(steps, rate))]
        return json.loads(run_workers(command, workers, Path(folder)).splitlines()[-1])


@dataclass(frozen=True)
class Trained:
    """The losses with which a method ends, and how long it must train to end at the target."""

    rate: float
    ended: dict[int, float]  # by steps
    curves: dict[int, list[list[float]]]  # by steps: [step, loss], ..
    target: float | None  # None where it is not known yet
    length: int | None  # None: none of the lengths reaches it


class Losses:
    """All trainings. Existing ones are not repeated."""

    def __init__(self, folder: Path, measuring: bool) -> None:
        self._results = Results(folder / "losses")
        self._measuring = measuring

    def curve(self, method: Method, workers: int, steps: int, rate: float) -> list[list[float]] | None:
        """[step, loss of the averaged model], ..; None if it does not exist and nothing is measured."""
        name = f"{method.name}, {workers} workers, {steps} steps, rate {rate:g}"
        section = parallel(method, workers) if method.ours else {"contender": method.name}
        identity = {**recipe(steps, rate), "parallel": section, "workers": workers}
        # Where the files lie does not matter.
        identity["model"], identity["data"] = MODEL.name, [TRAIN.name, EVAL.name, identity["data"]["batch_size"]]
        found = self._results.find(name, identity)
        if found is None and self._measuring:
            say(f"training: {name}")
            train = _train_ours if method.ours else _train_other
            what = section if method.ours else method.name
            by = version_of_ours() if method.ours else version_of_others()
            found = self._results.put(name, identity, {"curve": train(what, workers, steps, rate), "program": by})
            say(f"{name}: loss {found['curve'][-1][1]:.4f}")
        return found["curve"] if found else None

    def _end(self, method: Method, workers: int, steps: int, rate: float) -> float | None:
        curve = self.curve(method, workers, steps, rate)
        return curve[-1][1] if curve else None

    def rate(self, method: Method) -> float | None:
        """The method's best learning rate, with the first number of workers."""
        if not method.tuned:
            return self.rate(METHODS[method.losses_of or method.rate_of])
        ends = {rate: self._end(method, WORKERS[0], STEPS, rate) for rate in RATES}
        known = {rate: end for rate, end in ends.items() if end is not None}
        return best_rate(known) if len(known) == len(RATES) else None

    def target(self, workers: int) -> float | None:
        rate = self.rate(METHODS[TARGET])
        return None if rate is None else self._end(METHODS[TARGET], workers, STEPS, rate)

    def trained(self, method: Method, workers: int) -> Trained | None:
        """As far as it is known."""
        method = METHODS[method.losses_of] if method.losses_of else method
        rate = self.rate(method)
        if rate is None or self._end(method, workers, STEPS, rate) is None:
            return None
        target = self.target(workers)
        curves = {steps: self._known(method, workers, steps, rate) for steps in LENGTHS}
        curves = {steps: curve for steps, curve in curves.items() if curve}
        ended = {steps: curve[-1][1] for steps, curve in curves.items()}
        if self._measuring and method.ends and target is not None:
            while (steps := next_length(ended, target)) is not None:
                curves[steps] = self.curve(method, workers, steps, rate)
                ended[steps] = curves[steps][-1][1]
        return Trained(rate, ended, curves, target, None if target is None else length_to(ended, target))

    def _known(self, method: Method, workers: int, steps: int, rate: float) -> list[list[float]] | None:
        measuring, self._measuring = self._measuring, False
        try:
            return self.curve(method, workers, steps, rate)
        finally:
            self._measuring = measuring

    def measure(self, names: list[str], workers: list[int]) -> None:
        for count in workers:
            for method in (METHODS[name] for name in names if METHODS[name].losses_of is None):
                trained = self.trained(method, count)
                say(f"{method.name}, {count} workers: {trained.length if trained else 'not known yet'}")

    def made(self) -> tuple[set[str], set[str]]:
        return self._results.made()
