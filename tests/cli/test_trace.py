"""log.trace: a timeline of some steps, a file a worker (docs/recipe.md)."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from ports import free_port
from program import PROGRAM, environment, launcher_variables, run_alone
from runs import Run, assert_same_run, assert_says, attempt, error_message, merged, recipe, refused, train, write_recipe
from timeline import SLACK_US, Timeline, begin, end

SMALL_BUCKETS = 0.001  # MiB: three of digits_mlp's
FIRST, LAST = 2, 4


def settings(topology: str = "ring", trace: list[int] | None = None, **changes) -> dict:
    base = recipe(train={"steps": 7}, parallel={"topology": topology, "bucket_mb": SMALL_BUCKETS},
                  log={"trace": trace})
    return merged(base, changes)


def assert_within(inner: dict, outer: dict) -> None:
    assert begin(outer) <= begin(inner) and end(inner) <= end(outer) + SLACK_US, (inner, outer)


@pytest.fixture(scope="module", params=["ring", "complete", "one worker"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    alone = request.param == "one worker"
    topology = "ring" if alone else request.param
    folder = tmp_path_factory.mktemp(topology)
    return train(folder, settings(topology, [FIRST, LAST]), workers=1 if alone else 2)


@pytest.fixture
def timelines(run: Run) -> list[Timeline]:
    return [Timeline(run, rank) for rank in range(len(run.ended))]


# ---- what a trace holds --------------------------------------------------------------------------------------------

def test_exactly_the_steps_of_the_range(timelines: list[Timeline]) -> None:
    for timeline in timelines:
        assert timeline.steps == [FIRST, 3, LAST]
        others = {s["args"]["step"] for s in timeline.spans if not s["name"].startswith("batch of")}
        assert others == {FIRST, 3, LAST}


def test_every_step_has_its_parts(timelines: list[Timeline]) -> None:
    for timeline in timelines:
        assert len(timeline.buckets) > 2
        for step in timeline.steps:
            whole, backward = timeline.one(f"step {step}", step), timeline.one("backward", step)
            parts = [timeline.one(name, step) for name in ("data wait", "forward")] + [backward]
            for part in parts:
                assert_within(part, whole)
            assert all(end(a) <= begin(b) + SLACK_US for a, b in zip(parts, parts[1:]))
            for bucket in timeline.buckets:
                wait = timeline.one(f"wait bucket {bucket}", step)
                update = timeline.one(f"mix+update bucket {bucket}", step)
                assert_within(wait, backward)
                assert_within(update, backward)
                assert end(wait) <= begin(update) + SLACK_US


def test_exchanges(run: Run, timelines: list[Timeline]) -> None:
    """From the update to the moment when everything came, which is before it is mixed in the next step."""
    if len(timelines) == 1:
        assert timelines[0].named("exchange bucket 0") == []
        return
    for rank, timeline in enumerate(timelines):
        for step in timeline.steps:
            for bucket in timeline.buckets:
                exchange = timeline.one(f"exchange bucket {bucket}", step)
                assert exchange["args"]["bytes"] > 0
                assert exchange["args"]["peer"] == 1 - rank
                assert end(timeline.one(f"mix+update bucket {bucket}", step)) <= begin(exchange) + SLACK_US
                if step == LAST:
                    continue
                wait = timeline.one(f"wait bucket {bucket}", step + 1)
                assert end(exchange) <= end(wait) + SLACK_US
                assert end(exchange) <= begin(timeline.one(f"mix+update bucket {bucket}", step + 1))


def test_spans_of_a_lane_nest(timelines: list[Timeline]) -> None:
    for timeline in timelines:
        assert set(timeline.lanes.values()) >= {"training", "reading data"}
        for name in timeline.lanes.values():
            open_ends: list[float] = []
            for span in sorted(timeline.lane(name), key=lambda span: (begin(span), -span["dur"])):
                while open_ends and open_ends[-1] <= begin(span) + SLACK_US:
                    open_ends.pop()
                assert not open_ends or end(span) <= open_ends[-1] + SLACK_US, (name, span)
                open_ends.append(end(span))


def test_the_thread_that_reads(timelines: list[Timeline]) -> None:
    """Ahead of the steps, by data.prefetch and the one in hand."""
    for timeline in timelines:
        steps = [span["args"]["step"] for span in timeline.lane("reading data")]
        assert steps == sorted(set(steps)) and steps
        assert all(FIRST <= step <= LAST + 3 for step in steps)


def test_files_of_all_workers_fit_together(run: Run, timelines: list[Timeline]) -> None:
    assert sorted(path.name for path in run.folder.glob("trace*")) == [
        f"trace-rank-{rank:04}.json" for rank in range(len(timelines))]
    processes = [{event["pid"] for event in timeline.events} for timeline in timelines]
    assert processes == [{rank + 1} for rank in range(len(timelines))]
    names = [event["args"]["name"] for timeline in timelines for event in timeline.events
             if event["name"] == "process_name"]
    assert [name.split(" (")[0] for name in names] == [f"rank {rank}" for rank in range(len(timelines))]
    if len(timelines) == 1:
        return
    assert timelines[0].base_ns == timelines[1].base_ns
    for bucket in timelines[0].buckets:  # both ends of an exchange go on at the same time
        a, b = (timeline.one(f"exchange bucket {bucket}", 3) for timeline in timelines)
        assert begin(a) <= end(b) + 1000 and begin(b) <= end(a) + 1000


def test_time_of_day(run: Run, timelines: list[Timeline]) -> None:
    written = (run.folder / "trace-rank-0000.json").stat().st_mtime
    last = timelines[0].base_ns / 1e9 + end(timelines[0].spans[-1]) / 1e6
    assert written - 60 < last < written + 0.1


# ---- the run is the same -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("topology", ["ring", "complete"])
@pytest.mark.parametrize("workers", [2, 3])
def test_tracing_changes_nothing(workers: int, topology: str, tmp_path: Path) -> None:
    changes = {"eval": {"every_steps": 3}, "checkpoint": {"every_steps": 3}}
    traced = train(tmp_path / "traced", settings(topology, [1, 99], **changes), workers=workers)
    plain = train(tmp_path / "plain", settings(topology, **changes), workers=workers)
    assert_same_run(traced, plain)
    assert not list(plain.folder.glob("trace*"))
    assert Timeline(traced, workers - 1).steps == [1, 2, 3, 4, 5, 6, 7]


def test_evaluating_and_saving_are_shown(tmp_path: Path) -> None:
    changes = {"eval": {"every_steps": 3}, "checkpoint": {"every_steps": 2}, "data": {"prefetch": 0}}
    timeline = Timeline(train(tmp_path, settings("ring", [2, 3], **changes), workers=2), 1)
    assert len(timeline.named("evaluation")) == 1 and timeline.one("evaluation", 3)
    assert len(timeline.named("saving")) == 1 and timeline.one("saving", 2)
    for step in (2, 3):  # read by the training thread itself
        assert_within(timeline.one(f"batch of step {step}", step), timeline.one("data wait", step))


@pytest.mark.parametrize("changes", [{"parallel": {"grad_clip_norm": 1.0}}, {"train": {"grad_accumulation": 2}}],
                         ids=["clip", "accumulation"])
def test_other_ways_to_update(changes: dict, tmp_path: Path) -> None:
    timeline = Timeline(train(tmp_path, settings("ring", [2, 3], **changes), workers=2), 0)
    batches = changes.get("train", {}).get("grad_accumulation", 1)
    for step in (2, 3):
        counts = Counter(span["name"] for span in timeline.lane("training") if span["args"]["step"] == step)
        assert [counts[name] for name in ("data wait", "forward", "backward")] == [batches] * 3
        assert all(counts[f"{part} bucket {bucket}"] == 1 for part in ("wait", "mix+update")
                   for bucket in timeline.buckets)


# ---- ranges that the run does not reach, or has passed ---------------------------------------------------------------

def test_the_run_ends_within_the_range(tmp_path: Path) -> None:
    timeline = Timeline(train(tmp_path, settings("complete", [6, 50]), workers=2), 1)
    assert timeline.steps == [6, 7]
    assert all(timeline.one(f"exchange bucket {bucket}", 7) for bucket in timeline.buckets)


def test_a_range_beyond_the_last_step(tmp_path: Path) -> None:
    run = train(tmp_path, settings("ring", [8, 9]), workers=2)
    warnings = [line for ended in run.ended for line in ended.err.splitlines() if line]
    assert len(warnings) == 1
    assert_says(warnings[0], "log.trace", "8 to 9", "the last step, 7")
    assert not list(run.folder.glob("trace*"))


def test_resuming(tmp_path: Path) -> None:
    """Steps that are done are not traced; a file of an earlier part of the run is replaced."""
    def until(step: int) -> dict:
        return settings("ring", [2, 5], train={"steps": step}, checkpoint={"every_steps": 3})

    run = train(tmp_path, until(3))
    assert Timeline(run, 0).steps == [2, 3]
    train(tmp_path, until(6), "--resume", "auto")
    assert Timeline(run, 0).steps == [4, 5]
    file = run.folder / "trace-rank-0000.json"
    file.write_text("kept")
    train(tmp_path, until(9), "--resume", "auto")
    assert file.read_text() == "kept"


def start(config: Path, variables: dict[str, str]) -> subprocess.Popen:
    return subprocess.Popen([PROGRAM, "--config", config], env=variables, cwd=config.parent, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


def wait_for_lines(metrics: Path, lines: int) -> None:
    give_up = time.monotonic() + 60
    while not (metrics.exists() and metrics.read_text().count("\n") >= lines):
        assert time.monotonic() < give_up
        time.sleep(0.05)


def test_a_lost_worker_within_the_range(tmp_path: Path) -> None:
    """The threads that wait for exchanges change nothing of how it is told."""
    config = write_recipe(tmp_path, settings("ring", [1, 10**6], train={"steps": 10**6}))
    port = free_port()
    with (start(config, environment(**launcher_variables(0, 2, port))) as first,
          start(config, environment(**launcher_variables(1, 2, port))) as second):
        wait_for_lines(tmp_path / "run" / "metrics.jsonl", 5)
        second.kill()
        out, err = first.communicate(timeout=60)
    assert first.returncode == 3, out + err
    assert_says(err, "lost worker 1")
    assert err.count("error:") == 1


def test_a_signal_within_the_range(tmp_path: Path) -> None:
    config = write_recipe(tmp_path, settings("ring", [1, 10**6], train={"steps": 10**6}))
    metrics = tmp_path / "run" / "metrics.jsonl"
    with start(config, environment()) as process:
        wait_for_lines(metrics, 5)
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 75, err
    stopped = json.loads(metrics.read_text().splitlines()[-1])["step"]
    timeline = Timeline(tmp_path / "run", 0)
    assert timeline.steps == list(range(1, stopped + 1))
    assert timeline.one("saving", stopped)


# ---- mistakes --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("value", ["[5, 2]", "[0, 3]", "7", "[1, 2, 3]", "[1]", "[]", "true", "[1.5, 2]"])
def test_wrong_values(value: str, tmp_path: Path) -> None:
    assert_says(refused(tmp_path, recipe(), "--set", f"log.trace={value}"), "log.trace")


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    config = write_recipe(tmp_path, settings("ring", [1, 2]))
    assert run_alone("--config", config, "--dry-run", cwd=tmp_path).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.yaml"]


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """A folder stands in its place, which is found before training."""
    (tmp_path / "run" / "trace-rank-0001.json").mkdir(parents=True)
    ended = attempt(tmp_path, settings("ring", [2, 3]), "--quiet", workers=2)
    assert_says(error_message(ended, code=2), "trace-rank-0001.json", "is a folder", "rank 1")
