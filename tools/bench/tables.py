"""Rounds of measurements, and the tables that show them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median


class NotHere(Exception):
    """What this machine cannot measure, and why."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def number(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def two_digits(value: float) -> str:
    return f"{value:.2f}"


def spread(values: list[float], show: Callable[[float], str] = number) -> str:
    return f"{show(median(values))} ({show(min(values))} to {show(max(values))})"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def in_turn(names: list[str], number_of_round: int) -> list[str]:
    """The names in an order that turns around from round to round."""
    return names[:: 1 if number_of_round % 2 == 0 else -1]


def rounds_of(programs: dict[str, Callable[[], list[float]]], rounds: int, title: str,
              middle: Callable[[list[float]], float] = median) -> dict[str, list[float]]:
    """Each program's median, or another middle, of each round."""
    results: dict[str, list[float]] = {name: [] for name in programs}
    for number_of_round in range(rounds):
        for name in in_turn(list(programs), number_of_round):
            results[name].append(middle(programs[name]()))
            say(f"{title}, round {number_of_round + 1}: {name} {results[name][-1]:.1f} ms")
    return results


def ratios(results: dict[str, list[float]], name: str, base: str) -> list[float]:
    return [a / b for a, b in zip(results[name], results[base])]
