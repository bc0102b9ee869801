"""Timelines that log.trace writes, a file a worker, taken apart."""

from __future__ import annotations

import json
from pathlib import Path

from runs import Run

SLACK_US = 0.002  # two roundings of what is added here; the file has whole nanoseconds


class Timeline:
    """Of one worker."""

    def __init__(self, run: Run | Path, rank: int) -> None:
        folder = run.folder if isinstance(run, Run) else run
        whole = json.loads((folder / f"trace-rank-{rank:04}.json").read_text())
        self.events = whole["traceEvents"]
        self.spans = [event for event in self.events if event["ph"] == "X"]
        self.base_ns = whole["baseTimeNanoseconds"]
        self.lanes = {event["tid"]: event["args"]["name"] for event in self.events if event["name"] == "thread_name"}

    def named(self, name: str, step: int | None = None) -> list[dict]:
        return [s for s in self.spans if s["name"] == name and step in (None, s["args"]["step"])]

    def one(self, name: str, step: int) -> dict:
        found = self.named(name, step)
        assert len(found) == 1, (name, step, found)
        return found[0]

    def lane(self, name: str) -> list[dict]:
        return [span for span in self.spans if self.lanes[span["tid"]] == name]

    @property
    def steps(self) -> list[int]:
        return sorted(s["args"]["step"] for s in self.lane("training") if s["name"] == f"step {s['args']['step']}")

    @property
    def buckets(self) -> list[int]:
        return sorted({span["args"]["bucket"] for span in self.spans if "bucket" in span["args"]})


def begin(span: dict) -> float:
    return span["ts"]


def end(span: dict) -> float:
    return span["ts"] + span["dur"]
