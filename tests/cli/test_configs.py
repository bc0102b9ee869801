"""The recipes in configs/ learn what their headers say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from program import ROOT, run_alone
from runs import Run

# Recipe, and the accuracy that every seed of a few reached with room to spare.
LEARNS = {"breast_cancer": 0.96}


@pytest.mark.parametrize("name", LEARNS)
def test_learns(name: str, tmp_path: Path) -> None:
    ended = run_alone("--config", ROOT / "configs" / f"{name}.yaml", "--workers", 2, "--quiet", "--set", f"output={tmp_path}/run",
                      cwd=tmp_path)
    assert ended.code == 0, ended.err
    last = [line for line in Run(tmp_path / "run", [ended]).metrics if line["kind"] == "eval"][-1]
    assert last["accuracy"] >= LEARNS[name]


def test_every_recipe_is_listed() -> None:
    page = (ROOT / "configs" / "README.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)\.yaml`", page, re.M))
    assert listed == {path.stem for path in (ROOT / "configs").glob("*.yaml")}


def test_the_table_is_what_the_page_says() -> None:
    lines = (ROOT / "configs" / "data" / "breast_cancer.csv").read_text().splitlines()
    assert len(lines) == 570 and lines[0].endswith(",diagnosis")
    words = [line.rsplit(",", 1)[1] for line in lines[1:]]
    assert (words.count("malignant"), words.count("benign")) == (212, 357)  # as UCI's page says
