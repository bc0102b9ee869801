"""The places for results in docs/performance.md, and reading results back from there."""

from __future__ import annotations

from pathlib import Path

from programs import ROOT

PAGE = ROOT / "docs" / "performance.md"


def _split(page: str, place: str) -> tuple[str, str, str]:
    """The text before a place, the text in it, and the text after it."""
    begin, end = f"<!-- {place}: begin -->\n", f"<!-- {place}: end -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"{PAGE} should have one '{begin.strip()}' and one '{end}'")
    head, rest = page.split(begin)
    text, tail = rest.split(end)
    return head + begin, text, end + tail


def write(place: str, text: str) -> None:
    head, _, tail = _split(PAGE.read_text(), place)
    PAGE.write_text(f"{head}\n{text}\n\n{tail}")


def first_column(place: str, title: str) -> dict[str, float]:
    """Row name -> the median in the first column of the table below the line that starts with `title`. Throws KeyError
    where the page has no such table (yet).
    """
    lines = iter(_split(PAGE.read_text(), place)[1].splitlines())
    if not any(line.startswith(title) for line in lines):
        raise KeyError(f"docs/performance.md has no table '{title}' in its place '{place}'")
    values = {}
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] and not cells[0].startswith("---"):
            values[cells[0]] = float(cells[1].split()[0])
        elif values and not line.startswith("|"):
            break
    return values
