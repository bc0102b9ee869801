"""What mixing with codes and making the next ones adds to an update, on one thread and without a network."""

from __future__ import annotations

import subprocess
from statistics import mean, stdev

from programs import BUILD, environment
from tables import number, table

THOUSANDS = 10942  # parameters: those of gpt_11m
ROUNDS_OF_ROUNDS = 40  # an update takes some ms, so that many fit into one round of the other measurements
WITHOUT = "no mixing"


def bench(rounds: int) -> str:
    program = [BUILD / "bin" / "bench_coding", str(THOUSANDS), str(rounds * ROUNDS_OF_ROUNDS)]
    out = subprocess.run(program, check=True, capture_output=True, text=True,
                         env={**environment(), "OMP_NUM_THREADS": "1"}).stdout
    times: dict[str, list[float]] = {}
    for line in out.splitlines():
        name, ms = line.split("\t")
        times.setdefault(name, []).append(float(ms))
    rows = []
    for name, ms in times.items():
        more = [a - b for a, b in zip(ms, times[WITHOUT])]
        error = stdev(more) / len(more) ** 0.5
        rows.append([name, number(mean(ms)), "" if name == WITHOUT else f"{mean(more):.2f} (± {error:.2f})"])
    return (f"{len(times[WITHOUT])} updates of {1e-3 * THOUSANDS:.1f} million parameters each, 1 thread:\n\n"
            + table(["", "ms an update", "more than without mixing, ms (± its standard error)"], rows))
