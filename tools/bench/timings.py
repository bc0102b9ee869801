"""Steps of each method over links of several speeds, a host for each worker, and on one machine without a limit.

The methods alternate, and times are means over the steps of a round, as in slow_modulo.py and for its reasons. The
bytes of a step are those that the first worker's host sends; they are the same on all links.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import network
import support
from comparison import DECENT_DP, LINKS, METHODS, POWER_SGD, POWER_SGD_START, Method, parallel, topology
from hosts import Host, hosts
from programs import FILES, MODELS, Model, run_contender, run_ours, version_of_others, version_of_ours
from results import Results
from tables import NotHere, in_turn, say

LINK_NAMES = {"without" if mbit is None else str(mbit): mbit for mbit in LINKS}
COUNTED_AT = 1000
COUNTED_STEPS = 4  # as many as there are slices
MORE_STEPS = {DECENT_DP: 32}  # it ends without all or a part of its last exchange
MODEL = replace(MODELS["gpt_11m"], data=FILES / "shuffled_train.safetensors", batch_size=1)
WEIGHTS_MB, COMPUTE_S = 43.8, 0.3  # roughly: they only decide how many steps are measured
SECONDS, FEWEST, MOST = 10, 4, 64  # of a measurement
LONG_WINDOW, SHORT_WINDOW = 8, 2  # our workers meet when a window ends, so windows are long if steps are short


@dataclass(frozen=True)
class Timing:
    """For one method, number of workers and link: the mean step of each round, and bytes per step if counted."""

    ms: list[float]
    sent: float | None


def plan(method: Method, mbit: int | None) -> Model:
    """How many steps are measured, and how many come before these."""
    step_s = COMPUTE_S + (8 * method.sends * WEIGHTS_MB / mbit if mbit else 0)
    steps = min(max(round(SECONDS / step_s), FEWEST), MOST)
    window = LONG_WINDOW if steps >= 2 * LONG_WINDOW else SHORT_WINDOW
    warm_up = window
    if method.name == POWER_SGD:
        warm_up = POWER_SGD_START + SHORT_WINDOW
    window = max(window, method.period)
    if method.period > 1:
        warm_up = method.period
    return replace(MODEL, steps=warm_up + max(steps // window, 1) * window, warm_up=warm_up, window=window)


def _contender(method: Method, workers: int) -> str:
    """Its name for contender.py."""
    return f"{method.name}, {topology(workers)}" if method.name == DECENT_DP else method.name


def _run(method: Method, model: Model, on: list[Host], workers: int) -> tuple[list[float], int]:
    """Milliseconds a step of each window, and bytes that the first worker's host sent, from start to end."""
    before = network.sent_bytes(on[0]) if on else 0
    with TemporaryDirectory() as folder:
        if method.ours:
            windows = run_ours(model, workers, Path(folder), {"parallel": parallel(method, workers)}, on)
        else:
            windows = run_contender(_contender(method, workers), model, workers, Path(folder), hosts=on)
    return windows, network.sent_bytes(on[0]) - before if on else 0


def _by(method: Method) -> str:
    return version_of_ours() if method.ours else version_of_others()


def _identity(method: Method, workers: int, model: Model, **rest: object) -> dict:
    section = parallel(method, workers) if method.ours else {"contender": _contender(method, workers)}
    return {"parallel": section, "workers": workers, "model": model.name, "data": [model.data.name, model.batch_size],
            "steps": model.steps, "warm_up": model.warm_up, "window": model.window, **rest}


def _timed(method: Method, workers: int, mbit: int | None, number_of_round: int) -> tuple[str, dict]:
    """Name and identity of a result."""
    link = "one machine" if mbit is None else f"{mbit} mbit"
    return (f"{method.name}, {workers} workers, {link}, round {number_of_round + 1}",
            _identity(method, workers, plan(method, mbit), mbit=mbit, round=number_of_round))


def _time(method: Method, workers: int, mbit: int | None, on: list[Host]) -> dict:
    return {"ms": mean(_run(method, plan(method, mbit), on, workers)[0]), "program": _by(method)}


def _plan_to_count(method: Method) -> Model:
    period = max(method.period, MORE_STEPS.get(method.name, COUNTED_STEPS))
    return replace(MODEL, steps=2 * period, warm_up=period, window=period)


def _counted(method: Method, workers: int) -> tuple[str, dict]:
    return f"bytes, {method.name}, {workers} workers", _identity(method, workers, _plan_to_count(method), counted=True)


def _count(method: Method, workers: int, on: list[Host]) -> dict:
    """The bytes that a run sends, minus those of a run that ends after the warm-up."""
    model = _plan_to_count(method)
    sent, start = (_run(method, replace(model, steps=steps), on, workers)[1] for steps in (model.steps, model.warm_up))
    return {"sent": (sent - start) / (model.steps - model.warm_up), "program": _by(method)}


@contextmanager
def _on(mbit: int | None, workers: int) -> Iterator[list[Host]]:
    """A host for each worker; none where workers share this machine."""
    if mbit is None:
        yield []
        return
    if reason := network.why_not():
        raise NotHere(f"links of some speed need hosts on a slow link: {reason}")
    with hosts(workers) as made:
        network.limit(made, mbit)
        yield made


class Timings:
    """All measurements. Existing ones are not repeated."""

    def __init__(self, folder: Path) -> None:
        self._results = Results(folder / "timings")

    def count(self, names: list[str], workers: list[int]) -> None:
        """Counts bytes, on a machine that need not be quiet."""
        for count in workers:
            with _on(COUNTED_AT, count) as on:
                for method in (METHODS[name] for name in names):
                    found = self._results.get(*_counted(method, count), lambda: _count(method, count, on))
                    say(f"{method.name}, {count} workers: {1e-6 * found['sent']:.2f} MB a step")

    def measure(self, names: list[str], workers: list[int], links: list[str], rounds: int) -> None:
        for count in workers:
            for mbit in (LINK_NAMES[link] for link in links):
                with _on(mbit, count) as on:
                    for number_of_round in range(rounds):
                        self._round(names, count, mbit, number_of_round, on)

    def _round(self, names: list[str], workers: int, mbit: int | None, number_of_round: int, on: list[Host]) -> None:
        for method in (METHODS[name] for name in in_turn(names, number_of_round)):
            name, identity = _timed(method, workers, mbit, number_of_round)
            found = self._results.get(name, identity, lambda: _time(method, workers, mbit, on))
            say(f"{name}: {found['ms']:.1f} ms")

    def timing(self, method: Method, workers: int, mbit: int | None) -> Timing:
        """The existing results of rounds 1, 2, .."""
        ms: list[float] = []
        while (found := self._results.find(*_timed(method, workers, mbit, len(ms)))) is not None:
            ms.append(found["ms"])
        counted = self._results.find(*_counted(method, workers))
        return Timing(ms, counted["sent"] if counted else None)

    def made(self) -> tuple[set[str], set[str]]:
        return self._results.made()
