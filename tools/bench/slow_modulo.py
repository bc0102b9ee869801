"""Steps over links on which float32 weights take longer than computing: two bits a weight, slices, DDP.

Two workers on two hosts as in slow.py, but all programs alternate whatever their link, and times are means over steps,
because a step that waits now and then for what others do not would not show in a median.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import network
import support
from hosts import Host, hosts
from programs import FILES, MODELS, Model, alone, parameters, run_contender, run_ours
from tables import in_turn, number, say, table

NOTHING = "no communication"
MODULO2 = {"topology": "ring", "comm_dtype": "modulo2"}
SLICED = {**MODULO2, "slices": 4}


@dataclass(frozen=True, eq=False)  # so that they can be keys
class Contender:
    name: str
    mbit: int
    parallel: dict | None  # section of the recipe; None: DDP
    steps: int = 22  # measured per round; more if a step is short
    goal: float | None = None  # at most, of its step over that without communication


@dataclass(frozen=True)
class Setting:
    name: str
    model: Model
    contenders: tuple[Contender, ...]


WINDOW, WARM_UP = 2, 4
LONG = replace(MODELS["gpt_11m"], warm_up=WARM_UP, window=WINDOW)
SETTINGS = (
    Setting("long", LONG, (
        Contender(NOTHING, 200, alone(2)),
        Contender("modulo2", 200, MODULO2, goal=1.20),
        Contender("modulo2, slices 4", 50, SLICED, goal=1.20),
        Contender("fp32", 200, {"topology": "ring"}),
    )),
    Setting("short", replace(LONG, data=FILES / "passages_128.safetensors", batch_size=1), (
        Contender(NOTHING, 200, alone(2), steps=64),
        Contender("modulo2", 200, MODULO2, steps=64, goal=1.30),
        Contender("modulo2, slices 4", 50, SLICED, steps=64, goal=1.30),
        Contender("DDP", 200, None),
        Contender("DDP", 50, None),
    )),
)
FASTER_THAN_DDP = {200: 8, 50: 30}  # goals of the short setting: at least, by link


@dataclass
class Result:
    """Of one contender: the mean step of each round, bytes a step that the first worker's host sent."""

    ms: list[float]
    sent: float


def _run(contender: Contender, model: Model, steps: int, folder: Path, pair: list[Host]) -> tuple[list[float], int]:
    """Milliseconds a step of each window, and bytes that the first worker's host sent, from start to end."""
    network.limit(pair, contender.mbit)
    before = network.sent_bytes(pair[0])
    measured = replace(model, steps=steps)
    if contender.parallel is None:
        windows = run_contender("DDP", measured, 2, folder, hosts=pair)
    else:
        windows = run_ours(measured, 2, folder, {"parallel": contender.parallel}, pair)
    return windows, network.sent_bytes(pair[0]) - before


def _measure(setting: Setting, rounds: int, folder: Path, pair: list[Host]) -> dict[Contender, Result]:
    # The start and end of a run send the same in both.
    of_short = {c: _run(c, setting.model, WARM_UP, folder, pair)[1] for c in setting.contenders}
    results = {c: Result([], 0) for c in setting.contenders}
    for number_of_round in range(rounds):
        for contender in in_turn(list(setting.contenders), number_of_round):
            windows, sent = _run(contender, setting.model, WARM_UP + contender.steps, folder, pair)
            result = results[contender]
            result.ms.append(mean(windows))
            result.sent = (sent - of_short[contender]) / contender.steps
            say(f"{setting.name}, round {number_of_round + 1}: {contender.name} at {contender.mbit} Mbit/s "
                f"{result.ms[-1]:.1f} ms, {1e-6 * result.sent:.2f} MB a step")
    return results


def _row(contender: Contender, results: dict[Contender, Result], rounds: int) -> list[str]:
    """Ratios are those of the means; in brackets are the smallest and the largest mean of a round."""
    nothing = next(result for c, result in results.items() if c.name == NOTHING)
    ddp = next((result for c, result in results.items() if c.parallel is None and c.mbit == contender.mbit), None)
    result = results[contender]
    ms = mean(result.ms)
    alone, goal = contender.name == NOTHING, contender.goal
    faster = "" if ddp is None or alone or contender.parallel is None else (
        f"{mean(ddp.ms) / ms:.1f}" + (f" (goal {FASTER_THAN_DDP[contender.mbit]})" if goal else ""))
    return [contender.name, "" if alone else str(contender.mbit), str(rounds * contender.steps),
            f"{number(ms)} ({number(min(result.ms))} to {number(max(result.ms))})",
            f"{ms / mean(nothing.ms):.2f}" + (f" (goal {goal:.2f})" if goal else ""), faster,
            "" if alone else f"{1e-6 * result.sent:.2f}"]


def _bandwidths(setting: Setting, pair: list[Host]) -> str:
    texts = []
    for mbit in sorted({contender.mbit for contender in setting.contenders}, reverse=True):
        network.limit(pair, mbit)
        measured = network.bandwidth(pair)
        texts.append(f"{8e-6 * measured.wire:.0f} Mbit/s with headers, {8e-6 * measured.payload:.0f} without, at {mbit}")
    return "A plain TCP transfer each way, both at once: " + "; ".join(texts)


def bench(setting: Setting, rounds: int, folder: Path) -> str:
    with hosts(2) as pair:
        bandwidths = _bandwidths(setting, pair)
        results = _measure(setting, rounds, folder, pair)
        control = network.congestion_control(pair[0])
    length = setting.model.data.stem.removeprefix("passages_")
    rows = table(["", "Mbit/s", "steps", "ms a step", "times no communication", "times DDP's step rate",
                  "MB a step and worker"], [_row(contender, results, rounds) for contender in setting.contenders])
    return (f"{setting.model.name}, batch {setting.model.batch_size} x {length} bytes a worker:\n\n{rows}\n\n"
            f"{bandwidths}. Weights in float32: {4e-6 * parameters(setting.model):.2f} MB. TCP's congestion control: "
            f"{control}.")
