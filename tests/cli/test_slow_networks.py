"""Codes of a few bits, slices, and the learning rate that goes with them: what is sent and said, and resuming."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from program import run_each
from runs import (DIGITS_MLP, Run, assert_same_run, assert_same_weights, assert_says, attempt, merged, recipe, refused, train,
                  write_recipe)

MODULO = {"topology": "ring", "comm_dtype": "modulo2", "slices": 3, "bucket_mb": 0.02}  # several buckets
AVERAGE = "all workers start from the average of their weights"


def settings(parallel: dict | None = None, **changes: object) -> dict:
    base = recipe(DIGITS_MLP, parallel={**MODULO, **(parallel or {})}, optimizer={"lr": 0.003}, train={"steps": 24},
                  schedule={"name": "cosine_warmup", "warmup_steps": 3}, eval={"every_steps": 8})
    return merged(base, changes)


# ---- the same bits --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("workers", "parallel"), [
    (2, {}), (3, {"comm_dtype": "modulo4", "slices": 1}), (3, {"topology": "complete", "gamma": 0.5}),
    (2, {"comm_dtype": "fp32"}), (3, {"comm_dtype": "bf16", "slices": 2})], ids=str)
def test_resumes_bit_for_bit(workers: int, parallel: dict, tmp_path: Path) -> None:
    """From every place in a round of slices, as after a crash; the codes are made again from the same weights."""
    whole = settings(parallel, checkpoint={"every_steps": 1, "keep": 99})
    undisturbed = train(tmp_path / "whole", whole, workers=workers)
    for step in (1, 9, 10, 11, 23):
        folder = tmp_path / str(step)
        ended = train(tmp_path / "whole", whole, "--resume", undisturbed.checkpoint(step), "--set", f"output={folder}",
                      workers=workers).ended
        again = Run(folder, ended)
        assert AVERAGE not in ended[0].out
        assert_same_weights(undisturbed, again)
        later = [line for line in undisturbed.metrics_without_times if line["step"] > step or line["kind"] == "end"]
        assert again.metrics_without_times == later


@pytest.mark.parametrize("schedule", [{"name": "constant"}, {"name": "cosine_warmup", "t_max": 20}], ids=str)
def test_more_steps_at_the_same_rates(schedule: dict, tmp_path: Path) -> None:
    """The learning rate of each step is what it was, so that copies are as near as they were."""
    whole = settings(schedule=schedule, checkpoint={"every_steps": 8})
    undisturbed = train(tmp_path / "whole", whole, workers=2)
    train(tmp_path / "parts", merged(whole, {"train": {"steps": 8}}), workers=2)
    resumed = train(tmp_path / "parts", whole, "--resume", "auto", workers=2)
    assert AVERAGE not in resumed.ended[0].out
    assert_same_run(undisturbed, resumed)


def test_evaluating_and_reading_ahead_change_nothing(tmp_path: Path) -> None:
    plain = train(tmp_path / "plain", settings(eval={"every_steps": None}), workers=2)
    for name, changes in (("evaluated", {"eval": {"every_steps": 1}}), ("read", {"data": {"prefetch": 0}})):
        other = train(tmp_path / name, settings(**changes), workers=2)
        assert_same_weights(plain, other)
        assert [line["loss"] for line in plain.lines("train")] == [line["loss"] for line in other.lines("train")]


# ---- a resume that changes what is sent ----------------------------------------------------------------------------

def far_apart(folder: Path, **changes: object) -> Run:
    """Little mixing: copies drift apart step by step."""
    return train(folder, settings({"gamma": 0.05, **changes}, train={"steps": 16}, schedule={"name": "constant"},
                                  eval={"every_steps": 1}, checkpoint={"every_steps": 16}), workers=2)


@pytest.mark.parametrize(("changes", "told"), [
    ({"parallel": {"slices": 2}}, "parallel.slices"),
    ({"parallel": {"modulo_range": 200}}, "parallel.modulo_range"),
    ({"parallel": {"comm_dtype": "modulo4"}}, "parallel.comm_dtype"),
    ({"parallel": {"gamma": 0.04}}, "parallel.gamma"),
    ({"schedule": {"name": "cosine_warmup"}}, "the learning rates"),
    ({"optimizer": {"param_groups": [{"match": "*", "lr_scale": 0.9}]}}, "optimizer.param_groups"),
    ({}, ""),
    ({"parallel": {"comm_dtype": "bf16"}}, ""),
], ids=str)
def test_starts_from_the_average(changes: dict, told: str, tmp_path: Path) -> None:
    """One step after the average copies are apart by less than two of 16 steps have brought them; without it, by more than
    before the last of them.
    """
    distances = [line["consensus_distance"] for line in far_apart(tmp_path).lines("eval")]
    more = merged(settings({"gamma": 0.05}, train={"steps": 17}, schedule={"name": "constant"}, eval={"every_steps": 1}), changes)
    dry = attempt(tmp_path, more, "--dry-run", "--resume", "auto", workers=2)[0].out
    resumed = train(tmp_path, more, "--resume", "auto", workers=2)
    said = re.findall(f"{AVERAGE}.*", resumed.ended[0].out)
    assert [line.partition("have changed: ")[2] for line in said] == ([told] if told else [])
    assert re.findall(f"{AVERAGE}.*", dry) == said
    distance = resumed.evaluation["consensus_distance"]
    assert distance < distances[1] if told else distance > distances[-2]


def test_starts_from_the_average_of_another_comm_dtype(tmp_path: Path) -> None:
    """And that average is the one of the checkpoint: at a vanishing learning rate nothing moves after it."""
    before = far_apart(tmp_path, comm_dtype="fp32", slices=1).evaluation
    still = settings({"gamma": 0.05, "slices": 1}, train={"steps": 18}, schedule={"name": "constant"}, eval={"every_steps": 17},
                     optimizer={"lr": 1e-30})
    resumed = train(tmp_path, still, "--resume", "auto", workers=2)
    assert_says(resumed.ended[0].out, f"{AVERAGE}", "have changed: parallel.comm_dtype, the learning rates")
    first = [line for line in resumed.lines("eval") if line["step"] == 17][0]
    assert first["consensus_distance"] == 0  # equal copies, and lr below the weights' last bits
    assert first["loss"] == pytest.approx(before["loss"], rel=1e-6)  # the average of the same replicas


def test_other_numbers_of_workers_start_from_equal_copies(tmp_path: Path) -> None:
    half = settings(train={"steps": 8}, checkpoint={"every_steps": 8})
    train(tmp_path, half, workers=2)
    resumed = train(tmp_path, settings({"slices": 2}), "--resume", "auto", workers=3)
    assert AVERAGE not in resumed.ended[0].out
    assert len(resumed.lines("train")) == 24


# ---- what is refused and said ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["sgd", "rmsprop", "radam"])
def test_refuses_steps_that_the_learning_rate_does_not_bound(name: str, tmp_path: Path) -> None:
    message = refused(tmp_path, settings(optimizer={"name": name}))
    assert re.search(r"recipe\.yaml:\d+:\d+: parallel\.comm_dtype: modulo2 .* the steps of " + name, message), message
    assert_says(message, "adamw, adam, accum_adam, accum_adamw, lion, adagrad, nadam, nadamw", "comm_dtype: bf16", "parallel.slices")
    train(tmp_path / "slices", settings({"comm_dtype": "fp32"}, optimizer={"name": name}), workers=2)


def sent(text: str) -> tuple[float, str]:
    """KiB a worker and step, and what follows."""
    found = re.search(r"sent: ([\d.]+) KiB a worker and step(.*)", text)
    assert found, text
    return float(found[1]), found[2]


# Of 32 bits a weight: 2 (or 4) bits, and 8 for a 16th (an 8th) of the weights; to each other member of an edge.
@pytest.mark.parametrize(("parallel", "workers", "share"), [
    ({"comm_dtype": "modulo2", "slices": 1}, 2, (2 * 15 + 8) / 16 / 32),
    ({"comm_dtype": "modulo4", "slices": 1}, 2, (4 * 7 + 8) / 8 / 32),
    ({"comm_dtype": "modulo2", "topology": "complete", "slices": 1}, 3, 2 * (2 * 15 + 8) / 16 / 32),
    ({"comm_dtype": "fp32", "slices": 2}, 2, 1 / 2),
    ({"comm_dtype": "bf16", "slices": 4}, 2, 1 / 8),
], ids=str)
def test_bytes_and_seconds(parallel: dict, workers: int, share: float, tmp_path: Path) -> None:
    """--dry-run and the first lines of the run say the same."""
    weights = 68.9  # KiB, see test_display.py; two digits are shown
    own = settings({**parallel, "bucket_mb": 25, "link_mbit": 10}, train={"steps": 2})
    dry = attempt(tmp_path, own, "--dry-run", workers=workers)[0].out
    kib, rest = sent(dry)
    assert kib == pytest.approx(share * weights, abs=0.1)
    assert "everyone has heard of everyone after %d step" % parallel["slices"] in dry  # a phase lasts as many
    seconds = re.fullmatch(r", ([\d.e-]+) s at 10 Mbit/s", rest)
    assert seconds and float(seconds[1]) == pytest.approx(kib * 1024 * 8 / 10e6, rel=0.05)
    assert sent(train(tmp_path, own, workers=workers).ended[0].out) == (kib, rest)


def traced_bytes(folder: Path, parallel: dict) -> int:
    """What the first worker sent in 15 steps, with 3 slices 5 rounds."""
    run = train(folder, settings({"bucket_mb": 25, **parallel}, train={"steps": 17}, log={"trace": [2, 16]}), workers=2)
    events = json.loads((run.folder / "trace-rank-0000.json").read_text())["traceEvents"]
    return sum(event.get("args", {}).get("bytes", 0) for event in events)


def test_what_is_sent(tmp_path: Path) -> None:
    """As the traces have it."""
    whole, slices, codes = (traced_bytes(tmp_path / name, {"comm_dtype": comm_dtype, "slices": count})
                            for name, comm_dtype, count in (("whole", "fp32", 1), ("slices", "fp32", 3), ("codes", "modulo2", 3)))
    assert whole == 3 * slices > 0
    # 2 bits of 32 for all, 6 more for a 16th, but for parts of 32 elements, in which 16 parts cannot be the same.
    assert codes / slices == pytest.approx((2 + 6 / 16) / 32, rel=0.05)


def test_links_may_differ(tmp_path: Path) -> None:
    config = write_recipe(tmp_path, settings(train={"steps": 2}))
    ended = run_each([["--config", config, "--set", f"parallel.link_mbit={speed}"] for speed in (10, 200)])
    assert [e.code for e in ended] == [0, 0], ended
    assert "at 10 Mbit/s" in ended[0].out


@pytest.mark.parametrize(("parallel", "factor"), [({"comm_dtype": "fp32"}, "1.6"), ({"comm_dtype": "modulo2"}, "4")], ids=str)
def test_note_on_large_edges(parallel: dict, factor: str, tmp_path: Path) -> None:
    """Of five: an all-reduce sends 2 * 4/5 of the weights, codes go to each of the four others."""
    for topology, noted in (("complete", True), ("one-peer-exp", False)):
        own = settings({**parallel, "topology": topology})
        ended = attempt(tmp_path / topology, own, "--dry-run", workers=5)
        assert [e.code for e in ended] == [0] * 5, ended
        notes = [line for line in ended[0].out.splitlines() if line.startswith("note: ")]
        assert len(notes) == noted
        if noted:
            assert_says(notes[0], "edge of 5", f"{factor} times", "one-peer-exp")


# ---- the learning rate ----------------------------------------------------------------------------------------------

def test_lr_scaling(tmp_path: Path) -> None:
    """Four workers and sqrt are twice the learning rate, before the schedule."""
    scaled = settings(optimizer={"lr_scaling": "sqrt"}, log={"progress": "off"})
    run = train(tmp_path / "scaled", scaled, workers=4)
    assert_same_run(run, train(tmp_path / "doubled", settings(optimizer={"lr": 0.006}), workers=4))
    told = "lr 0.006 (0.003 x sqrt(4) workers)"
    assert told in run.ended[0].out
    assert told in attempt(tmp_path / "dry", scaled, "--dry-run", workers=4)[0].out
    assert [line["lr"] for line in run.lines("train")][3] == 0.006  # the first after the warm-up


# ---- copies too far apart -------------------------------------------------------------------------------------------

def test_wrap_share(tmp_path: Path) -> None:
    run = train(tmp_path / "well", settings({"slices": 1}), workers=2)
    shares = [line["wrap_share"] for line in run.lines("train")[1:]]  # the first step does not mix
    assert "wrap_share" not in run.lines("train")[0]
    assert shares and all(0 <= share <= 0.05 for share in shares) and run.ended[0].err == ""
    assert b"train/wrap_share" in next(run.folder.glob("events.out.tfevents.*")).read_bytes()
    plain = train(tmp_path / "plain", settings({"comm_dtype": "fp32"}), workers=2)
    assert len(plain.lines("train")) == 1 + len(shares) and all("wrap_share" not in line for line in plain.lines("train"))


def test_a_range_is_unused_without_modulo(tmp_path: Path) -> None:
    plain, ranged = (train(tmp_path / name, settings({"comm_dtype": "bf16", **parallel}), workers=2)
                     for name, parallel in (("plain", {}), ("ranged", {"modulo_range": 0.5})))
    assert_same_run(plain, ranged)


def test_warns_of_copies_too_far_apart(tmp_path: Path) -> None:
    """The warning stands once, with the first line that has too many."""
    run = train(tmp_path, settings({"modulo_range": 0.01, "slices": 1}), workers=2)
    high = [line for line in run.lines("train") if line.get("wrap_share", 0) > 0.05]
    assert len(high) > 1
    assert run.ended[0].err.count("warning: ") == 1
    assert_says(run.ended[0].err, f"step {high[0]['step']}: ", "parallel.modulo_range", "modulo4", "slices", "optimizer.lr")
