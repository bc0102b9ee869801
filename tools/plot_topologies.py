#!/usr/bin/env python3
"""Draws docs/images/topologies/*.svg and fills in the table of docs/topologies.md:  python tools/plot_topologies.py

Phases and figures are those that the built program prints with --dry-run: nothing is computed here.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/topologies.md"
PICTURES = ROOT / "docs/images/topologies"
CHAIN = ("{phases: [[{ranks: [0, 1], weight: 0.5}, {ranks: [2, 3], weight: 0.5}], "
         "[{ranks: [0], weight: 1}, {ranks: [1, 2], weight: 0.5}, {ranks: [3], weight: 1}]]}")

# Colours that can be read on white and on black.
WORKER, EDGE, TEXT = "#2f81c7", "#d9782d", "#808a96"
WIDTH, HEIGHT, RADIUS, DOT, CAPTION = 220, 190, 66, 15, 30
BOX, GAP = 37, 22  # of a machine: half of a side, and between its edge and the next machine's


@dataclass(frozen=True)
class Case:
    """A topology with a number of workers. picture: the name of its file, where it gets one."""

    topology: str
    workers: int
    picture: str | None = None
    per_machine: int | None = None
    name: str = ""

    def title(self) -> str:
        machines = f"{self.workers // self.per_machine} machines of {self.per_machine}" if self.per_machine else ""
        return f"{self.name or self.topology}, {machines or f'{self.workers} workers'}"


@dataclass(frozen=True)
class Told:
    """What the program says of it."""

    phases: list[list[list[int]]]
    gap: str
    heard: str
    sent: str
    weights: str


CASES = [
    Case("complete", 4, "complete-4"), Case("complete", 8, "complete-8"), Case("complete", 5),
    Case("ring", 4, "ring-4"), Case("ring", 8, "ring-8"), Case("ring", 5, "ring-5"),
    Case("one-peer-exp", 4, "one-peer-exp-4"), Case("one-peer-exp", 8, "one-peer-exp-8"),
    Case("one-peer-exp", 5, "one-peer-exp-5"),
    Case("alternating-exp-ring", 4, None, 2),
    Case("alternating-exp-ring", 8, "alternating-exp-ring-4x2", 2),
    Case("alternating-exp-ring", 8, "alternating-exp-ring-2x4", 4),
    Case(CHAIN, 4, "chain-4", name="phases of your own (a chain)"),
]


def ask(case: Case) -> Told:
    """--dry-run, as a user would."""
    flags = ["--set", f"parallel.topology={case.topology}"]
    if case.per_machine:
        flags += ["--set", f"parallel.local_world_size={case.per_machine}"]
    out = subprocess.run(
        [ROOT / "decent-train", ROOT / "configs/digits.yaml", "--workers", str(case.workers), "--dry-run", *flags],
        check=True, text=True, stdout=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}).stdout
    phases = [[[int(rank) for rank in edge.split()] for edge in re.findall(r"\{([\d ]+)\}", line)]
              for line in re.findall(r"phase \d+: (.*)", out)]
    assert "more" not in out.split("spectral gap")[0].split("topology")[-1], "the program left phases out"

    def one(pattern: str) -> str:
        found = re.search(pattern, out)
        assert found, f"the program did not print '{pattern}':\n{out}"
        return found[1]

    return Told(phases, one(r"spectral gap (\S+)"), one(r"everyone has heard of everyone after (\d+)"),
                one(r"sent: (\S+ \S+) a worker"), one(r"weights (\S+ \S+),"))


Point = tuple[float, float]


def around(number: int, count: int, radius: float, centre: Point) -> Point:
    """On a circle; of an even count, 0 and 1 are at the top, and of two, 0 is on the left."""
    turn = number / count - (0.25 if count == 2 else 0.5 / count if count % 2 == 0 else 0)
    angle = 2 * math.pi * turn - math.pi / 2
    return round(centre[0] + radius * math.cos(angle), 1), round(centre[1] + radius * math.sin(angle), 1)


def places(case: Case, centre: Point) -> list[Point]:
    """Where each worker is."""
    if not case.per_machine:
        return [around(rank, case.workers, RADIUS, centre) for rank in range(case.workers)]
    spots = {2: [(-18, 0), (18, 0)], 4: [(-18, -18), (18, -18), (18, 18), (-18, 18)]}[case.per_machine]
    return [(x + dx, y + dy) for x, y in boxes(case, centre) for dx, dy in spots]


def boxes(case: Case, centre: Point) -> list[Point]:
    """The middle of each machine."""
    machines = case.workers // case.per_machine
    radius = (BOX + GAP / 2) * (1 if machines == 2 else math.sqrt(2))
    return [around(number, machines, radius, centre) for number in range(machines)]


def worker(rank: int, at: Point, alone: bool) -> str:
    x, y = at
    look = f'fill="none" stroke="{WORKER}" stroke-width="2" stroke-dasharray="4 3"' if alone else f'fill="{WORKER}"'
    ink = WORKER if alone else "#ffffff"
    return (f'<circle cx="{x}" cy="{y}" r="{DOT}" {look}/>'
            f'<text x="{x}" y="{y + 5}" fill="{ink}" font-weight="600">{rank}</text>')


def line(a: Point, b: Point, width: int) -> str:
    return f'<line x1="{a[0]}" y1="{a[1]}" x2="{b[0]}" y2="{b[1]}" stroke="{EDGE}" stroke-width="{width}"/>'


def averaging(phase: list[list[int]], case: Case, at: list[Point], centre: Point) -> list[str]:
    """A line for two workers, an area for more. Areas that meet have one colour, hence the group."""
    pairs, areas, frames = [], [], []
    for edge in phase:
        if case.per_machine:
            machines = [boxes(case, centre)[n] for n in sorted({rank // case.per_machine for rank in edge})]
            areas += [line(a, b, 30) for a, b in zip(machines, machines[1:])]
            for x, y in machines:
                shape = f'x="{x - BOX}" y="{y - BOX}" width="{2 * BOX}" height="{2 * BOX}" rx="12"'
                areas.append(f'<rect {shape} fill="{EDGE}"/>')
                frames.append(f'<rect {shape} fill="none" stroke="{TEXT}" stroke-width="2"/>')
        elif len(edge) == 2:
            pairs.append(line(at[edge[0]], at[edge[1]], 5))
        elif len(edge) > 2:
            path = "M" + " L".join(f"{at[rank][0]} {at[rank][1]}" for rank in edge) + " Z"
            areas.append(f'<path d="{path}" fill="{EDGE}" stroke="{EDGE}" stroke-width="46" stroke-linejoin="round"/>')
    group = ['<g opacity="0.45">', *areas, "</g>"] if areas else []
    return group + frames + pairs


def height_of(case: Case) -> int:
    """Two machines are side by side; all else is as high as it is wide."""
    return 2 * BOX + 20 if case.per_machine and case.workers == 2 * case.per_machine else HEIGHT


def panel(number: int, phase: list[list[int]], case: Case, left: float, top: float) -> list[str]:
    height = height_of(case)
    centre = (left + WIDTH / 2, top + height / 2)
    at = places(case, centre)
    lines = averaging(phase, case, at, centre)
    lines += [worker(rank, at[rank], len(edge) == 1) for edge in phase for rank in edge]
    lines.append(f'<text x="{centre[0]}" y="{top + height + 16}" fill="{TEXT}">phase {number}</text>')
    return lines


def picture(case: Case, told: Told) -> str:
    columns = min(5, len(told.phases))
    rows = math.ceil(len(told.phases) / columns)
    row = height_of(case) + CAPTION
    width, height = columns * WIDTH, rows * row
    body = []
    for number, phase in enumerate(told.phases):
        body += panel(number, phase, case, number % columns * WIDTH, number // columns * row)
    said = "; ".join(f"phase {number}: " + " ".join("{" + " ".join(map(str, edge)) + "}" for edge in phase)
                     for number, phase in enumerate(told.phases))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" font-family="system-ui, -apple-system, Segoe UI, DejaVu Sans, sans-serif" font-size="15" '
        'text-anchor="middle">',
        f"<title>{case.title()}</title>", f"<desc>{said}</desc>", *body, "</svg>", ""])


def table(rows: list[tuple[Case, Told]]) -> str:
    lines = ["| topology | phases | spectral gap | everyone has heard of everyone after | sent a step |",
             "|---|---:|---:|---:|---:|"]
    for case, told in rows:
        lines.append(f"| {case.title()} | {len(told.phases)} | {told.gap} | {told.heard} "
                     f"step{'s' if told.heard != '1' else ''} | {told.sent} |")
    return "\n".join(lines)


def main() -> None:
    rows = [(case, ask(case)) for case in CASES]
    for case, told in rows:
        if case.picture:
            (PICTURES / f"{case.picture}.svg").write_text(picture(case, told))
    assert len({told.weights for _, told in rows}) == 1
    begin, end = "<!-- table: begin (tools/plot_topologies.py) -->\n", "<!-- table: end -->"
    head, rest = PAGE.read_text().split(begin)
    PAGE.write_text(head + begin + table(rows) + "\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
