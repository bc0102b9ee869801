"""What compare.py puts into docs: one table, what it says about the goals, and two pictures."""

from __future__ import annotations

import page
from comparison import DDP, LINKS, STEPS, TARGET, next_length
from comparison_rows import Row, rows
from losses import Losses
from programs import ROOT
from tables import number, table, two_digits
from timings import Timings

PLACE = "compare"
DRAWN = {200: "compare_200.png", 50: "compare_50.png"}  # by link: pictures in docs/, for the first number of workers
GOALS = {200: 6, 50: 15}  # by link: times DDP's time to the target, at least
ALONE_GOAL = 0.95  # of all_reduce's step over DDP's on one machine


def _link(mbit: int | None) -> str:
    return "one machine" if mbit is None else f"{mbit} Mbit/s"


def _times(row: Row, mbit: int | None) -> str:
    ms, to_target = row.ms(mbit), row.seconds(mbit)
    return "" if ms is None else f"{number(ms)} ms" + ("" if to_target is None else f"; **{number(to_target)} s**")


def _steps(row: Row) -> str:
    if row.trained is None or row.trained.target is None:
        return ""
    if not row.method.ends:
        return "never"
    if row.trained.length is None:
        return f"more than {max(row.trained.ended)}"
    known = next_length(row.trained.ended, row.trained.target) is None
    return f"{'' if known else 'at most '}{row.trained.length}"


def _cells(row: Row) -> list[str]:
    sent = row.timings[None].sent
    borrowed = f" (those of {row.method.losses_of})" if row.method.losses_of else ""
    loss = "" if row.trained is None else f"{row.trained.ended[STEPS]:.3f}"
    return [row.method.name, "" if row.trained is None else f"{row.trained.rate:g}", loss, _steps(row) + borrowed,
            "" if sent is None else f"{1e-6 * sent:.2f}", *(_times(row, mbit) for mbit in LINKS)]


def _table(made: dict[int, list[Row]], targets: dict[int, float | None]) -> str:
    lines = []
    for workers, of_these in made.items():
        target = targets[workers]
        goal = "" if target is None else f"*to {target:.3f}*"
        lines.append([f"**{workers} workers**", "", "", goal, *[""] * (1 + len(LINKS))])
        lines += [_cells(row) for row in of_these]
    return table(["", "learning rate", f"loss after {STEPS} steps", f"steps to {TARGET}'s loss",
                  "MB a step and worker", *(_link(mbit) for mbit in LINKS)], lines)


def _named(made: list[Row], name: str) -> Row | None:
    return next((row for row in made if row.method.name == name), None)


def _against_ddp(made: list[Row]) -> list[str]:
    """What the goals ask."""
    lines, ddp, ours = [], _named(made, DDP), _named(made, TARGET)
    if ddp is None or ours is None:
        return lines
    ratios = {mbit: [a / b for a, b in zip(ours.timings[mbit].ms, ddp.timings[mbit].ms)] for mbit in LINKS}
    if any(ratios.values()):
        lines.append(f"A step of {TARGET} over DDP's, round by round: "
                     + "; ".join(f"{_link(mbit)} {', '.join(map(two_digits, of))}" for mbit, of in ratios.items() if of)
                     + f"; the goal is at most 1.00, and {ALONE_GOAL:.2f} on one machine.")
    for mbit, goal in GOALS.items():
        reached = {row.method.name: s for row in made
                   if row.method.ours and row.method.name.startswith("gossip") and (s := row.seconds(mbit)) is not None}
        slow = ddp.seconds(mbit)
        if reached and slow:
            best = min(reached, key=reached.__getitem__)
            lines.append(f"At {_link(mbit)}, {best} reaches {TARGET}'s loss {slow / reached[best]:.1f} times "
                         f"sooner than DDP ({number(reached[best])} s and {number(slow)} s; the goal is {goal}).")
    return lines


def text(losses: Losses, timings: Timings, workers: tuple[int, ...]) -> str:
    made = {count: of_these for count in workers if (of_these := rows(losses, timings, count))}
    parts = [_table(made, {count: losses.target(count) for count in made})]
    for count, of_these in made.items():
        parts += [f"{count} workers: {line}" for line in _against_ddp(of_these)]
    dates, programs = (sorted(a | b) for a, b in zip(losses.made(), timings.made()))
    parts.append(f"*{', '.join(dates)}: {'; '.join(programs)}; `tools/bench/compare.py`.*")
    return "\n\n".join(parts)


def write(losses: Losses, timings: Timings, workers: tuple[int, ...]) -> None:
    import comparison_picture  # matplotlib is not needed where nothing is written

    page.write(PLACE, text(losses, timings, workers))
    first = workers[0]
    for mbit, name in DRAWN.items():
        comparison_picture.draw(rows(losses, timings, first), losses.target(first), mbit, first, ROOT / "docs" / name)
