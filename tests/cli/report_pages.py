"""Pages of runs: how tests make them, open them and read them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from program import run_alone

if TYPE_CHECKING:
    from browser import Page

needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed; tools/setup --tests installs it")


def show(page: Page, file: Path) -> None:
    page.requests.clear()
    page.open(file.as_uri())
    assert page.console == []
    assert page.requests == [file.as_uri()]


def report(out: Path, *folders: Path) -> Path:
    ended = run_alone("--report", *folders, "--out", out)
    assert ended.code == 0 and ended.err == "", ended
    return out


def curve(page: Page, chart: str, number: int = 0) -> dict:
    return page.run(f"(() => {{ const {{name, xs, ys, own}} = document.getElementById('{chart}').chart.series[{number}]; "
                    "return {name, xs, ys: own ?? ys}; })()")


def made_by_hand(folder: Path, lines: list[dict] | str, recipe_text: str = "name: hand\n", log: str = "") -> Path:
    folder.mkdir()
    text = lines if isinstance(lines, str) else "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text)
    (folder / "recipe.yaml").write_text(recipe_text)
    if log:
        (folder / "run.log").write_text(log)
    return folder
