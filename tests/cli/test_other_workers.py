"""Runs that go on with other workers: a topology that does not fit their number, the line in metrics.jsonl, the page."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from program import Ended
from report_pages import made_by_hand, needs_chromium, report, show
from runs import Run, assert_says, attempt, error_message, merged, recipe, refused, train, write_recipe
from started import Started

if TYPE_CHECKING:
    from browser import Page

MACHINES = {"topology": "alternating-exp-ring"}  # for 2, 4, 8, .. machines
PAIRS = {"topology": {"phases": [[{"ranks": [0, 1], "weight": 0.5}, {"ranks": [2, 3], "weight": 0.5}],
                                 [{"ranks": [0, 3], "weight": 0.5}, {"ranks": [1, 2], "weight": 0.5}]]}}  # for 4 workers
REPLACED = "topology {} does not fit 3 workers: {} replaces it until it fits again (parallel.topology_otherwise)"


def until(steps: int, **parallel: object) -> dict:
    """A run that saves each 10 steps."""
    return recipe(train={"steps": steps}, checkpoint={"every_steps": 10, "keep": 99}, eval={"every_steps": 10}, parallel=parallel)


def on_two_machines(folder: Path, own: dict, *flags: object) -> Run:
    return train(folder, own, *flags, workers=4, local=2)


def manifest_of(checkpoint: Path) -> dict:
    return json.loads((checkpoint / "manifest.json").read_text())


def facts_of(checkpoint: Path) -> dict[str, str]:
    return manifest_of(checkpoint)["facts"]


def resumes_of(run: Run) -> list[dict]:
    return run.lines("resume")


def data_of(page: Path) -> dict:
    """What a page of one run holds."""
    (data,) = re.findall(r'id="data">(.*?)</script>', page.read_text(), re.S)
    return json.loads(data)["runs"][0]


def said(ended: list[Ended]) -> str:
    return "\n".join(each.out + each.err for each in ended)


# ---- topology_otherwise ---------------------------------------------------------------------------------------------


def test_a_topology_gives_way_and_comes_back(tmp_path: Path) -> None:
    """4 workers on two machines, 3 on one, 4 on two."""
    four = on_two_machines(tmp_path, until(10, **MACHINES))
    assert "the topology in effect" not in facts_of(four.checkpoint(10))
    three = train(tmp_path, until(20, **MACHINES), "--resume", "auto", workers=3)
    lines = three.ended[0].out.splitlines()
    (told,) = [line for line in lines if "replaces it" in line]
    assert REPLACED.format("alternating-exp-ring", "one-peer-exp") in told
    assert_says(three.ended[0].out, "topology one-peer-exp (2 phases)", "the checkpoint is of 4 workers, this run has 3")
    facts = facts_of(three.checkpoint(20))
    assert facts["the topology in effect"] == "one-peer-exp" and facts["parallel.topology"] == "alternating-exp-ring"
    start = json.loads((three.folder / "run.json").read_text())["starts"][-1]
    assert start["phases"] == [[[0, 1], [2]], [[0, 2], [1]]]
    assert ["the topology in effect", "", "one-peer-exp"] in start["changed"]
    again = on_two_machines(tmp_path, until(30, **MACHINES), "--resume", "auto")
    assert_says(again.ended[0].out, "topology alternating-exp-ring fits 4 workers again: one-peer-exp no longer replaces it",
                "topology alternating-exp-ring (2 phases)")
    facts = facts_of(again.checkpoint(30))
    assert "the topology in effect" not in facts and facts["the topology"] == facts_of(four.checkpoint(10))["the topology"]
    assert [line["step"] for line in again.lines("train")] == list(range(1, 31))


def test_it_stays_as_long_as_the_number_does(tmp_path: Path) -> None:
    """The same bits as a run that was not stopped."""
    for name in ("whole", "parts"):
        train(tmp_path / name, until(10, **PAIRS), workers=4)
    own = {**PAIRS, "topology_otherwise": "ring"}
    whole = train(tmp_path / "whole", until(30, **own), "--resume", "auto", workers=3)
    first = train(tmp_path / "parts", until(20, **own), "--resume", "auto", workers=3)
    second = train(tmp_path / "parts", until(30, **own), "--resume", "auto", workers=3)
    for run in (first, second):
        assert REPLACED.format("custom", "ring") in run.ended[0].out
    assert whole.metrics_without_times == second.metrics_without_times
    assert (whole.folder / "model.safetensors").read_bytes() == (second.folder / "model.safetensors").read_bytes()
    # With another one the groups of workers would be others.
    message = error_message(attempt(tmp_path / "parts", until(40, **PAIRS), "--resume", "auto", workers=3))
    assert_says(message, "the topology in effect was ring, is one-peer-exp, because parallel.topology does not fit these workers")


@pytest.mark.parametrize("parallel", [{"comm_dtype": "modulo2", "slices": 2}, {"comm_dtype": "bf16"}], ids=["modulo2", "bf16"])
def test_exchanges_go_by_it(parallel: dict, tmp_path: Path) -> None:
    on_two_machines(tmp_path, until(10, **MACHINES, **parallel))
    run = train(tmp_path, until(30, **MACHINES, **parallel), "--resume", "auto", workers=3)
    assert REPLACED.format("alternating-exp-ring", "one-peer-exp") in run.ended[0].out
    losses = [line["loss"] for line in run.lines("eval")]
    assert len(losses) == 3 and losses[-1] < losses[0]


def test_methods_without_a_topology_do_not_look(tmp_path: Path) -> None:
    own = {"method": "all_reduce", **PAIRS}
    train(tmp_path, until(10, **own), workers=4)
    run = train(tmp_path, until(20, **own), "--resume", "auto", workers=3)
    assert "replaces it" not in said(run.ended) and "the topology in effect" not in facts_of(run.checkpoint(20))


def test_dry_run_tells(tmp_path: Path) -> None:
    train(tmp_path, until(10, **PAIRS), workers=4)
    ended = attempt(tmp_path, until(20, **PAIRS), "--resume", "auto", "--dry-run", workers=3)
    assert [each.code for each in ended] == [0, 0, 0], said(ended)
    assert_says(ended[0].out, REPLACED.format("custom", "one-peer-exp"), "one-peer-exp of 3 workers")


def test_a_fresh_start_must_fit(tmp_path: Path) -> None:
    """Also where --resume auto finds nothing."""
    message = refused(tmp_path, until(10, **MACHINES), workers=3)
    assert_says(message, "topology alternating-exp-ring cannot do 3 workers with 3 per node")
    assert error_message(attempt(tmp_path, until(10, **MACHINES), "--resume", "auto", workers=3)) == message
    left = {path.name for path in (tmp_path / "run").glob("*")} - {".lock"}
    assert not left, left
    on_two_machines(tmp_path, until(10, **MACHINES), "--resume", "auto")


def test_none_of_both_fits(tmp_path: Path) -> None:
    train(tmp_path, until(10, **PAIRS), workers=4)
    own = {**PAIRS, "topology_otherwise": "alternating-exp-ring"}
    message = error_message(attempt(tmp_path, until(20, **own), "--resume", "auto", workers=3))
    assert_says(message, "parallel.topology: topology phase 0: rank 3 does not exist",
                "parallel.topology_otherwise does not fit either: topology alternating-exp-ring cannot do 3 workers")


# ---- the line in metrics.jsonl --------------------------------------------------------------------------------------


def test_a_line_says_how_many_go_on(tmp_path: Path) -> None:
    """Where it stands; as many workers write none; going back takes it away."""
    train(tmp_path, until(10), workers=2)
    train(tmp_path, until(20), "--resume", "auto", workers=3)
    train(tmp_path, until(30), "--resume", "auto", workers=3)
    run = train(tmp_path, until(40), "--resume", "auto", workers=1)
    first, second = ({"kind": "resume", "step": step, "workers": workers, "before": before, "lost": []}
                     for step, workers, before in ((10, 3, 2), (30, 1, 3)))
    assert resumes_of(run) == [first, second]
    for line in (first, second):
        place = run.metrics.index(line)
        assert all(before["step"] <= line["step"] for before in run.metrics[:place])
        assert all(after["step"] > line["step"] for after in run.metrics[place + 1:])
    run = train(tmp_path, until(40), "--resume", run.checkpoint(30), workers=3)
    assert resumes_of(run) == [first]
    run = train(tmp_path, until(40), "--resume", run.checkpoint(10), workers=1)
    assert resumes_of(run) == [{**first, "workers": 1}]
    assert [line["step"] for line in run.lines("train")] == list(range(1, 41))


@pytest.mark.parametrize("workers", [3, 4])
def test_a_line_says_who_was_lost(workers: int, tmp_path: Path) -> None:
    """And for how long nobody trained; the page has it. Another resume from there writes it anew."""
    own = recipe(train={"steps": 1000000}, checkpoint={"every_steps": 1000000}, parallel={"farewell_s": 20, "topology": "ring"})
    with Started(4, tmp_path, False, "--set", "log.every_steps=1", "--set", "parallel.farewell_s=20",
                 config=write_recipe(tmp_path, own)) as started:
        started.wait_until_it_trains()
        killed_at = time.time()
        os.kill(started.processes[2].pid, signal.SIGKILL)
        assert started.wait(30, without=2) == [3, 3, 3], started.said()
    (step,) = Run(tmp_path / "run", []).checkpoints
    checkpoint = Run(tmp_path / "run", []).checkpoint(step)
    manifest = manifest_of(checkpoint)
    assert manifest["lost"] == [2] and killed_at - 1 <= manifest["lost_at"] <= killed_at + 5
    own = merged(own, {"train": {"steps": step + 3}, "checkpoint": {"every_steps": None}})
    for _ in range(2):
        run = train(tmp_path, own, "--resume", checkpoint, workers=workers)
        (line,) = resumes_of(run)
        pause = line.pop("pause_s")
        assert line == {"kind": "resume", "step": step, "workers": workers, "before": 4, "lost": [2]}
        assert 0 < pause <= time.time() - manifest["lost_at"]
        assert [each["step"] for each in run.lines("train") if each["step"] > step] == [step + 1, step + 2, step + 3]
        (shown,) = data_of(run.folder / "report.html")["resumes"]
        assert shown == {"step": step, "workers": workers, "before": 4, "lost": [2], "pause_s": pause}


# ---- the page -------------------------------------------------------------------------------------------------------


@needs_chromium
def test_a_page_shows_changes_of_workers(page: Page, tmp_path: Path) -> None:
    """When, who, how many, how long. A line that says something else is counted as unread."""
    resumes = [{"step": 1, "workers": 3, "before": 5, "lost": [0, 4], "pause_s": 75}, {"step": 2, "workers": 4, "before": 3, "lost": []},
               {"step": 3, "workers": 4, "before": 3, "lost": "all"}]
    lines = [[{"kind": "train", "step": each["step"], "loss": 1}, {"kind": "resume", **each}] for each in resumes]
    folder = made_by_hand(tmp_path / "run", sum(lines, []))
    start = {"program": "p", "lines": [], "phases": [], "changed": []}
    starts = [{"time": f"2026-01-02 03:04:0{second}", "step": step, "workers": workers, **start}
              for second, (step, workers) in enumerate([(0, 5), (1, 4), (1, 3)])]
    (folder / "run.json").write_text(json.dumps({"format": 1, "starts": starts, "facts": {}, "defaults": {}}))
    show(page, report(tmp_path / "page.html", folder))
    rows = page.run("[...document.querySelectorAll('#resumes tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
    assert rows == [["2026-01-02 03:04:02", "1", "workers 0, 4", "5 → 3", "75.0 s"], ["–", "2", "–", "3 → 4", "–"]]
    assert_says(page.run("document.body.innerText"), "Changes of workers", "1 line could not be read")


@needs_chromium
def test_a_page_of_the_same_workers_has_no_such_table(page: Page, tmp_path: Path) -> None:
    show(page, report(tmp_path / "page.html", made_by_hand(tmp_path / "run", [{"kind": "train", "step": 1, "loss": 1}])))
    assert page.run("document.querySelector('#resumes')") is None and "Changes of workers" not in page.run("document.body.innerText")
