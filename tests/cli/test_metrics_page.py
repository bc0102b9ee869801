"""docs/metrics.md names every field that runs write, and none besides."""

from __future__ import annotations

import re
from pathlib import Path

from gpus import FAKE_WHY_NOT, ONE_GPU
from program import ROOT
from runs import attempt, merged, recipe, train

PAGE = (ROOT / "docs" / "metrics.md").read_text()


def named(kind: str) -> set[str]:
    """The fields in the table of that kind."""
    section = PAGE.split(f"## Lines of kind `{kind}`")[1].split("## ")[0]
    return {name for row in re.findall(r"^\| (`.*?) \|", section, re.M) for name in re.findall(r"`(\w+)`", row)}


def test_every_field_is_named(tmp_path: Path) -> None:
    own = recipe(parallel={"grad_clip_norm": 1.0}, eval={"every_steps": 6}, checkpoint={"every_steps": 12})
    clipped = train(tmp_path / "clipped", own, workers=2)
    scaled = train(tmp_path / "scaled", recipe(amp={"dtype": "fp16"}))
    coded = train(tmp_path / "coded", recipe(parallel={"comm_dtype": "modulo4", "slices": 2}, optimizer={"name": "adamw"}), workers=2)
    # On other data, and with a checkpoint of another run.
    other = merged(own, {"data": {"eval": {**own["data"]["eval"], "limit": 20}}})
    for folder, checkpoint in (("clipped", "auto"), ("scaled", clipped.checkpoint(12))):
        ended = attempt(tmp_path / folder, other, "--eval-only", "--checkpoint", checkpoint)
        assert [each.code for each in ended] == [0], ended[0].err
    written: dict[str, set[str]] = {"train": set(), "eval": set(), "end": set()}
    early = train(tmp_path / "early", merged(own, {"train": {"stop": {"patience": 1, "min_delta": 1000}}, "eval": {"every_steps": 2}}))
    on_gpu = [] if FAKE_WHY_NOT else [train(tmp_path / "gpu", recipe(model={"device": "cuda"}), **ONE_GPU)]
    for run in (clipped, scaled, coded, early, *on_gpu):
        for line in run.metrics:
            written[line["kind"]] |= line.keys() - {"kind"}
    without_gpu = {"gpu_memory_mb"} if FAKE_WHY_NOT else set()
    assert written["train"] == named("train") - without_gpu
    assert written["eval"] == named("eval")
    of_end = PAGE.split("## Lines of kind `end`")[1].split("## ")[0]
    assert written["end"] and {field for field in written["end"] if f"`{field}`" not in of_end} == set()
