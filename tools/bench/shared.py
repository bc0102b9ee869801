"""Steps of workers of one machine: what their exchange adds where it goes through shared memory, and through gloo.

All programs of a table alternate, in the settings of slow_modulo.py but without hosts and links. Times are means over
steps, as there; ratios are those of the means of one round, and the tables show their medians.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean

from programs import Model, alone, measure_ours, run_contender
from slow_modulo import NOTHING, SETTINGS, Setting
from tables import number, ratios, rounds_of, say, spread, table, two_digits

ON_THE_PAGE = (2, 4)  # numbers of workers; others can be measured
# Workers meet when a window ends, because the loss is averaged there. In long windows they drift as in a real run.
STEPS, WARM_UP, WINDOW = 64, 8, 8
SHARED, GLOO = "shared memory", "gloo"
BACKENDS = {SHARED: "auto", GLOO: "gloo"}
RING = {"topology": "ring"}
MODULO2 = {**RING, "comm_dtype": "modulo2"}
EXCHANGES = {"ring": RING, "complete": {"topology": "complete"},  # of more than two workers
             "ring, comm_dtype bf16": {**RING, "comm_dtype": "bf16"}, "ring, comm_dtype modulo2": MODULO2}
PEER = "decent-dp fused"
OF_NOTHING, OF_GLOO = 1.05, 1.00  # goals: at most
OF_PEER = {"short": 0.85}  # the same, by setting


@dataclass
class Results:
    """By contender: the mean step of each round, the share of it that rank 0 waited, what carried its exchange."""

    ms: dict[str, list[float]] = field(default_factory=dict)
    waiting_ms: dict[str, list[float]] = field(default_factory=dict)
    carrier: dict[str, str] = field(default_factory=dict)


def _named(exchange: str, carrier: str) -> str:
    return f"{exchange}, {carrier}"


def _recipes(workers: int) -> dict[str, dict]:
    """Contender -> section of its recipe. Contenders to be compared are neighbours in the order of a round."""
    sections = [(NOTHING, GLOO, alone(workers))]
    if workers == 2:
        ways = [("ring", SHARED, RING), ("ring", GLOO, RING), ("modulo2", SHARED, MODULO2)]
    else:
        ways = [(exchange, carrier, section) for exchange, section in EXCHANGES.items() for carrier in BACKENDS]
    sections += [(_named(exchange, carrier), carrier, section) for exchange, carrier, section in ways]
    return {name: {**section, "backend": BACKENDS[carrier]} for name, carrier, section in sections}


def _measure(title: str, model: Model, workers: int, rounds: int, folder: Path) -> Results:
    results = Results()

    def ours(name: str, parallel: dict) -> Callable[[], list[float]]:
        def run() -> list[float]:
            measured = measure_ours(model, workers, folder, {"parallel": parallel})
            results.waiting_ms.setdefault(name, []).append(mean(measured.waiting_ms))
            results.carrier[name] = measured.carrier
            return measured.step_ms

        return run

    programs = {name: ours(name, parallel) for name, parallel in _recipes(workers).items()}
    if workers == 2:
        programs[PEER] = lambda: run_contender(PEER, model, workers, folder)
    results.ms = rounds_of(programs, rounds, title, mean)
    return results


def _with_goal(values: list[float], goal: float | None) -> str:
    return spread(values, two_digits) + (f" (goal {goal:.2f})" if goal else "")


def _pair(setting: Setting, results: Results) -> str:
    """The table of two workers."""
    rows = []
    for name, ms in results.ms.items():
        default = name == _named("ring", SHARED)
        of_nothing, of_peer = (ratios(results.ms, name, base) for base in (NOTHING, PEER))
        rows.append([name, spread(ms), number(mean(results.waiting_ms[name])) if name != PEER else "",
                     "" if name == NOTHING else _with_goal(of_nothing, OF_NOTHING if default else None),
                     "" if name == PEER else _with_goal(of_peer, OF_PEER.get(setting.name) if default else None)])
    return table(["", "ms a step", "of it waiting for peers", f"times {NOTHING}", f"times {PEER}"], rows)


def _group(results: Results) -> str:
    """The table of more workers."""
    rows = [[NOTHING, spread(results.ms[NOTHING]), "", "", ""]]
    for exchange in EXCHANGES:
        shared, gloo = (_named(exchange, carrier) for carrier in (SHARED, GLOO))
        rows.append([exchange, spread(results.ms[shared]), spread(results.ms[gloo]),
                     _with_goal(ratios(results.ms, shared, gloo), OF_GLOO),
                     spread(ratios(results.ms, shared, NOTHING), two_digits)])
    return table(["", f"{SHARED}, ms a step", f"{GLOO}, ms a step", f"{SHARED} over {GLOO}",
                  f"{SHARED}, times {NOTHING}"], rows)


def _other_carriers(results: Results) -> str:
    """Notes on what the tables do not show although they claim to, for example if this machine cannot share memory."""
    others = [f"{name} by {carrier}" for name, carrier in results.carrier.items()
              if name != NOTHING and not name.endswith(f", {carrier}")]
    for other in others:
        say(f"warning: not what its name says: {other}")
    return f" **Exchanged otherwise than named: {'; '.join(others)}.**" if others else ""


def bench(setting: Setting, workers: int, rounds: int, folder: Path) -> str:
    model = replace(setting.model, steps=WARM_UP + STEPS, warm_up=WARM_UP, window=WINDOW)
    results = _measure(f"{setting.name}, {workers} workers", model, workers, rounds, folder)
    length = model.data.stem.removeprefix("passages_")
    rows = _pair(setting, results) if workers == 2 else _group(results)
    return (f"{model.name}, batch {model.batch_size} x {length} bytes a worker, {workers} workers:\n\n{rows}\n\n"
            f"Each time is the mean over {STEPS} steps of a round.{_other_carriers(results)}")


def place(setting: Setting, workers: int) -> str:
    """Of a table, on the page."""
    return f"shared {setting.name}, {workers} workers"


def sections(names: list[str], workers: list[int], rounds: int, folder: Path) -> Iterator[tuple[str, str]]:
    """Place and text of each table, by names of settings."""
    for setting in SETTINGS:
        for count in (n for n in workers if n > 1 and setting.name in names):
            yield place(setting, count), bench(setting, count, rounds, folder)
