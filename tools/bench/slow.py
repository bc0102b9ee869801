"""Two workers on two hosts with a slow link between them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import network
import support
from hosts import Host, hosts
from programs import OURS, Model, alone, parameters, run_contender, run_ours
from tables import NotHere, in_turn, number, ratios, say, spread, table, two_digits

LINKS = {"1 Gbit/s": 1000, "200 Mbit/s": 200}
BF16 = "decent-train, comm_dtype bf16"
PARALLEL = {OURS: {"topology": "ring"}, BF16: {"topology": "ring", "comm_dtype": "bf16"}}
PROGRAMS = (*PARALLEL, "decent-dp fused", "DDP")


@dataclass
class Results:
    """Of each round, by program where it is one's."""

    bandwidth: list[network.Bandwidth] = field(default_factory=list)
    ms: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in PROGRAMS})
    sent: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in PROGRAMS})  # bytes a step
    busy_ms: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in PARALLEL})

    def network_ms(self, name: str) -> list[float]:
        """The time that the bytes of a step take on the link."""
        return [1e3 * sent / bandwidth.wire for sent, bandwidth in zip(self.sent[name], self.bandwidth)]

    def over_the_greater(self, name: str) -> list[float]:
        return [ms / max(parts) for ms, *parts in zip(self.ms[name], self.busy_ms[name], self.network_ms(name))]


def _run(name: str, model: Model, folder: Path, pair: list[Host]) -> tuple[list[float], int]:
    """Milliseconds a step of each window, and bytes that the first worker's host sent, from start to end."""
    before = network.sent_bytes(pair[0])
    if name in PARALLEL:
        windows = run_ours(model, 2, folder, {"parallel": PARALLEL[name]}, pair)
    else:
        windows = run_contender(name, model, 2, folder, hosts=pair)
    return windows, network.sent_bytes(pair[0]) - before


def _busy(rate: float, model: Model, folder: Path, pair: list[Host]) -> list[float]:
    """Milliseconds a step of workers that exchange nothing while others send `rate` bytes a second each way."""
    with network.traffic(pair, rate):
        return run_ours(model, 2, folder, {"parallel": alone(2)}, pair)


def _measure(title: str, model: Model, pair: list[Host], rounds: int, folder: Path) -> Results:
    results = Results()
    short = replace(model, steps=model.warm_up)  # the start and end of a run send the same in both
    of_short = {name: _run(name, short, folder, pair)[1] for name in PROGRAMS}
    for number_of_round in range(rounds):
        results.bandwidth.append(network.bandwidth(pair))
        say(f"{title}: {8e-6 * results.bandwidth[-1].wire:.1f} Mbit/s")
        for name in in_turn(list(PROGRAMS), number_of_round):
            windows, sent = _run(name, model, folder, pair)
            results.ms[name].append(median(windows))
            results.sent[name].append((sent - of_short[name]) / (model.steps - short.steps))
            say(f"{title}, round {number_of_round + 1}: {name} {results.ms[name][-1]:.1f} ms, "
                f"{1e-6 * results.sent[name][-1]:.2f} MB a step")
        for name in PARALLEL:
            rate = results.sent[name][-1] / results.ms[name][-1] * 1e3
            results.busy_ms[name].append(median(_busy(rate, model, folder, pair)))
            say(f"{title}, round {number_of_round + 1}: {name} without exchange, {8e-6 * rate:.0f} Mbit/s each way "
                f"by others: {results.busy_ms[name][-1]:.1f} ms")
    return results


def _megabytes(values: list[float]) -> str:
    return spread([1e-6 * value for value in values], two_digits)


def _tables(title: str, results: Results, weights: int) -> str:
    of_all = table(["", "ms a step", "times decent-train's", "MB a step and worker", "of the weights in float32"],
                   [[name, spread(ms), spread(ratios(results.ms, name, OURS), two_digits),
                     _megabytes(results.sent[name]), f"{median(results.sent[name]) / weights:.3f}"]
                    for name, ms in results.ms.items()])
    of_ours = table(["", "ms a step", "compute, network busy, ms", "bytes / bandwidth, ms", "step over the greater"],
                    [[name, spread(results.ms[name]), spread(results.busy_ms[name]), spread(results.network_ms(name)),
                      spread(results.over_the_greater(name), two_digits)] for name in PARALLEL])
    wire, payload = ([8e-6 * getattr(b, what) for b in results.bandwidth] for what in ("wire", "payload"))
    return (f"{title} (a plain TCP transfer each way, both at once: {spread(wire)} Mbit/s with headers, "
            f"{spread(payload)} without):\n\n{of_all}\n\n{of_ours}")


def check() -> None:
    """Throws NotHere if this machine cannot make hosts."""
    if reason := network.why_not():
        raise NotHere(f"slow needs hosts on a slow link: {reason}")


def bench(model: Model, rounds: int, folder: Path) -> str:
    weights = 4 * parameters(model)
    parts = []
    for link, mbit in LINKS.items():
        title = f"{model.name}, {link}"
        with hosts(2) as pair:
            network.limit(pair, mbit)
            control = network.congestion_control(pair[0])
            parts.append(_tables(title, _measure(title, model, pair, rounds, folder), weights))
    return "\n\n".join((*parts, f"Weights in float32: {1e-6 * weights:.2f} MB. TCP's congestion control: {control}."))
