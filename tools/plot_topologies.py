#!/usr/bin/env python3
"""Makes docs/images/topologies/*.svg and fills in the table of docs/topologies.md:  python tools/plot_topologies.py

Pictures are those of the report pages that short runs of the built program leave, figures those that it prints with --dry-run:
nothing is drawn or computed here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/topologies.md"
PICTURES = ROOT / "docs/images/topologies"
CHAIN = ("{phases: [[{ranks: [0, 1], weight: 0.5}, {ranks: [2, 3], weight: 0.5}], "
         "[{ranks: [0], weight: 1}, {ranks: [1, 2], weight: 0.5}, {ranks: [3], weight: 1}]]}")

@dataclass(frozen=True)
class Case:
    """A topology with a number of workers. picture: the name of its picture's file, if it gets one."""

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
    """What the program says about it."""

    phases: int
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


def start(case: Case, *flags: object) -> str:
    """The program, as a user would start it."""
    machine = ["--set", f"parallel.local_world_size={case.per_machine}"] if case.per_machine else []
    return subprocess.run(
        [ROOT / "decent-train", ROOT / "configs/digits.yaml", "--workers", str(case.workers),
         "--set", f"parallel.topology={case.topology}", *machine, *flags],
        check=True, text=True, stdout=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}).stdout


def ask(case: Case) -> Told:
    out = start(case, "--dry-run")

    def one(pattern: str) -> str:
        found = re.search(pattern, out)
        assert found, f"the program did not print '{pattern}':\n{out}"
        return found[1]

    return Told(int(one(r"workers, (\d+) phase")), one(r"spectral gap (\S+)"), one(r"everyone has heard of everyone after (\d+)"),
                one(r"sent: (\S+ \S+) a worker"), one(r"weights (\S+ \S+),"))


def picture(case: Case) -> str:
    with tempfile.TemporaryDirectory() as folder:
        start(case, "--quiet", "--set", "train.steps=1", "--set", f"output={folder}/run")
        page = Path(folder, "run", "report.html").read_text()
    return json.loads(page.split('id="data">')[1].split("</script>")[0])["runs"][0]["topology"]["svg"]


def table(rows: list[tuple[Case, Told]]) -> str:
    lines = ["| topology | phases | spectral gap | everyone has heard of everyone after | sent a step |",
             "|---|---:|---:|---:|---:|"]
    for case, told in rows:
        lines.append(f"| {case.title()} | {told.phases} | {told.gap} | {told.heard} "
                     f"step{'s' if told.heard != '1' else ''} | {told.sent} |")
    return "\n".join(lines)


def main() -> None:
    rows = [(case, ask(case)) for case in CASES]
    for case in CASES:
        if case.picture:
            (PICTURES / f"{case.picture}.svg").write_text(picture(case))
    assert len({told.weights for _, told in rows}) == 1
    begin, end = "<!-- table: begin (tools/plot_topologies.py) -->\n", "<!-- table: end -->"
    head, rest = PAGE.read_text().split(begin)
    PAGE.write_text(head + begin + table(rows) + "\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
