"""parallel.method: what a recipe may ask of it, that copies trained by all_reduce are the same bits, and that workers train alone
with none.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from methods import ALL, WAYS, by, distances, files_of
from program import run_alone
from runs import (DIGITS_CNN, DIGITS_MLP, NO_EVALUATION, assert_same_run, assert_same_weights, assert_says, attempt, merged,
                  message_of_odd_worker, refused, train, write_recipe)
from shared import train_gloo, train_shared
from tensors import differing, same_bits, write_safetensors
from timeline import SLACK_US, Timeline, end

METHODS = ("gossip", "all_reduce", "none")
UNIT = 2.0**-24  # the relative error of one rounding to float32


# ---- recipes -------------------------------------------------------------------------------------------------------

def place_of(folder: Path, key: str) -> str:
    """FILE:LINE of a key, which stands once in the recipe."""
    config = folder / "recipe.yaml"
    lines = [i + 1 for i, line in enumerate(config.read_text().splitlines()) if f'"{key}"' in line]
    assert len(lines) == 1
    return f"{config}:{lines[0]}:"


@pytest.mark.parametrize("values", [{"comm_dtype": "modulo2"}, {"comm_dtype": "modulo4"}, {"slices": 4},
                                    {"comm_dtype": "modulo2", "slices": 2}], ids=str)
def test_what_is_only_for_weights(values: dict, tmp_path: Path) -> None:
    own = by("all_reduce", parallel=values)
    message = refused(tmp_path, own)
    for key, value in values.items():
        assert_says(message, place_of(tmp_path, key), f"parallel.{key}", value, "parallel.method: all_reduce")
    for method in ("none", "gossip"):
        ended = run_alone("--config", tmp_path / "recipe.yaml", "--set", f"parallel.method={method}", "--print-config")
        assert (ended.code, ended.err) == (0, "")


def test_unknown_method(tmp_path: Path) -> None:
    message = refused(tmp_path, by("allreduce"))
    assert_says(message, place_of(tmp_path, "method"), "parallel.method", "did you mean 'all_reduce'", *METHODS)


@pytest.mark.parametrize("method", METHODS)
def test_printed_recipe_is_the_same_again(method: str, tmp_path: Path) -> None:
    config = write_recipe(tmp_path, by(method))
    printed = run_alone("--config", config, "--print-config")
    assert printed.code == 0 and f"  method: {method}\n" in printed.out
    (tmp_path / "again.yaml").write_text(printed.out)
    assert run_alone("--config", tmp_path / "again.yaml", "--print-config").out == printed.out


@pytest.mark.parametrize(("method", "text"), [("all_reduce", "all-reduce of gradients"), ("none", "each trains alone")])
def test_dry_run_says_the_method(method: str, text: str, tmp_path: Path) -> None:
    ended = attempt(tmp_path, by(method), "--dry-run", workers=2)
    assert [e.code for e in ended] == [0, 0] and "".join(e.err for e in ended) == "", ended
    assert f"method     2 workers, {text}\n" in ended[0].out
    assert "topology" not in ended[0].out
    assert {path.name for path in tmp_path.iterdir()} == {"recipe.yaml"}


def test_dry_run_tells_the_bytes_of_gradients(tmp_path: Path) -> None:
    """Half as many in bfloat16. Small buckets have a number for each parameter, too."""
    sent = {}
    for dtype in ("fp32", "bf16"):
        ended = attempt(tmp_path / dtype, by("all_reduce", parallel={"comm_dtype": dtype, "bucket_mb": 25}), "--dry-run", workers=2)
        found = re.search(r"sent: ([\d.]+) KiB a worker and step", ended[0].out)
        assert found, ended[0].out
        sent[dtype] = float(found[1])
    assert sent["fp32"] == pytest.approx(56554 * 4 / 1024, rel=0.05) and sent["bf16"] == pytest.approx(sent["fp32"] / 2, rel=0.05)


def test_keys_that_have_no_meaning_are_checked(tmp_path: Path) -> None:
    own = by("all_reduce", train={"steps": 4})
    with_them = merged(own, {"parallel": {"gamma": 0.3, "topology": "ring", "modulo_range": 7}})
    assert_same_run(train(tmp_path / "a", own, workers=2), train(tmp_path / "b", with_them, workers=2))
    wrong = merged(own, {"parallel": {"gamma": 3, "topology": "rign", "modulo_range": -1}})
    message = refused(tmp_path / "c", wrong)
    assert_says(message, "parallel.gamma", "did you mean 'ring'", "parallel.modulo_range")


def test_workers_with_different_methods(tmp_path: Path) -> None:
    message = message_of_odd_worker(tmp_path, by("all_reduce"), by("none"))
    assert_says(message, "rank 1", "parallel.method is none, on rank 0 all_reduce")


def test_one_worker_is_the_same_by_every_method(tmp_path: Path) -> None:
    runs = [train(tmp_path / method, by(method)) for method in METHODS]
    for run in runs[1:]:
        assert_same_run(runs[0], run)


# ---- all_reduce: the same bits everywhere --------------------------------------------------------------------------

@pytest.mark.parametrize(("way", "workers"), [(way, workers) for way in WAYS for workers in (2, 3, 4)] if ALL else
                         [("fp32", 3), ("bf16", 3), ("fp16", 2)])
def test_evaluations_and_checkpoints_change_nothing(way: str, workers: int, tmp_path: Path) -> None:
    """And at each of them all copies are one."""
    own = merged(by("all_reduce", train={"steps": 14}), WAYS[way])
    never = train(tmp_path / "never", own, workers=workers)
    often = train(tmp_path / "often", merged(own, {"eval": {"every_steps": 3}, "checkpoint": {"every_steps": 5}}), workers=workers)
    assert_same_weights(often, never)
    assert [line["loss"] for line in often.lines("train")] == [line["loss"] for line in never.lines("train")]
    assert len(distances(often)) >= 4 and set(distances(often)) == {0.0}


@pytest.mark.parametrize("way", [way for way in WAYS if way != "clip"] if ALL else ["fp32", "bf16"])
def test_same_bits_by_gloo(way: str, tmp_path: Path) -> None:
    """Of two numbers there is one sum. A norm is one of many, in an order that depends on who adds up what."""
    own = by("all_reduce", eval={"every_steps": 6}, **WAYS[way])
    shared, gloo = (of(tmp_path / of.__name__, own, workers=2) for of in (train_shared, train_gloo))
    assert_same_run(shared, gloo)
    assert set(distances(gloo)) == {0.0}


@pytest.mark.parametrize("workers", [3, 4] if ALL else [3])
def test_sums_as_near_to_gloo_as_rounding(workers: int, tmp_path: Path) -> None:
    """Gloo adds up in an order of its own. With a smooth model and a smooth optimizer that stays small."""
    own = by("all_reduce", DIGITS_MLP, optimizer={"name": "sgd", "lr": 0.02}, eval={"every_steps": 6})
    shared, gloo = (of(tmp_path / of.__name__, own, workers=workers) for of in (train_shared, train_gloo))
    np.testing.assert_allclose(shared.losses, gloo.losses, rtol=1e-6)
    assert set(distances(shared) + distances(gloo)) == {0.0}


@pytest.mark.parametrize("method", ["all_reduce", "none"])
def test_reading_ahead_changes_nothing(method: str, tmp_path: Path) -> None:
    runs = [train(tmp_path / str(ahead), by(method, data={"prefetch": ahead}), workers=2) for ahead in (0, 2)]
    assert_same_run(*runs)


def test_random_numbers_of_the_model_are_the_same_again(model, data, tmp_path: Path) -> None:
    own = by("all_reduce", model("dropout_norm"), data("blob"), eval={"every_steps": 4})
    runs = [train(tmp_path / name, own, workers=3) for name in ("first", "second")]
    assert_same_run(*runs)
    assert set(distances(runs[0])) == {0.0}


@pytest.mark.parametrize("name", ["mlp64", "tied64", "recurrent64"] if ALL else ["tied64"])
def test_float64_is_averaged_in_float64(name: str, model, data, tmp_path: Path) -> None:
    """One worker with the same samples in each step differs by the order of sums alone."""
    own = by("all_reduce", model(name), data("blob64"), data={"shuffle": False}, parallel={"bucket_mb": 0.0003})
    three, one = train(tmp_path / "three", own, workers=3), train(tmp_path / "one", merged(own, {"data": {"batch_size": 24}}))
    np.testing.assert_allclose(three.losses, one.losses, rtol=1e-12)
    for name, weight in one.weights.items():
        np.testing.assert_allclose(three.weights[name], weight, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["stopped", "stopped_by_data"] if ALL else ["stopped_by_data"])
def test_weight_that_backward_needs_after_its_gradient(name: str, model, data, tmp_path: Path) -> None:
    """No update inside backward may take it away."""
    own = by("all_reduce", model(name), data("blob"), parallel={"bucket_mb": 0.0001})
    assert_says(refused(tmp_path / "refused", merged(own, {"parallel": {"update": "in_backward"}})), "parallel.update: after_backward")
    runs = [train(tmp_path / update, merged(own, {"parallel": {"update": update}}), workers=2) for update in ("auto", "after_backward")]
    assert_same_weights(*runs)


def test_parameter_that_nobody_uses_is_left_and_warned_of_once(model, data, tmp_path: Path) -> None:
    own = by("all_reduce", model("unused"), data("blob"), optimizer={"weight_decay": 0.5, "param_groups": [{"match": "*"}]})
    run = train(tmp_path, own, workers=3)
    import torch

    start = {name: t.numpy() for name, t in torch.jit.load(str(model("unused"))).state_dict().items()}
    assert set(run.weights) - set(differing(start, run.weights)) == {"extra.weight", "extra.bias"}
    said = "".join(e.err for e in run.ended).splitlines()
    assert len(said) == 1 and said[0].startswith("warning: "), said
    assert_says(said[0], "'extra.weight', 'extra.bias'")


def test_parameters_that_someone_uses_are_not_warned_of(model, data, tmp_path: Path) -> None:
    """In each step each of two workers takes the other branch; by one worker alone half of them are not used."""
    own = by("all_reduce", model("branching64"), data("signs64"), data={"shuffle": False}, eval={"every_steps": 4})
    run = train(tmp_path / "two", own, workers=2)
    assert "".join(e.err for e in run.ended) == "" and set(distances(run)) == {0.0}
    assert "warning: " in train(tmp_path / "one", own).ended[0].err


def test_trace_shows_every_sum(tmp_path: Path) -> None:
    """Of each bucket, inside the backward of its own step; in bfloat16 half the bytes, but for a number for each parameter."""
    sent = {}
    for dtype in ("fp32", "bf16"):
        run = train(tmp_path / dtype, by("all_reduce", parallel={"comm_dtype": dtype}, log={"trace": [2, 3]}), workers=2)
        timelines = [Timeline(run, rank) for rank in (0, 1)]
        for timeline in timelines:
            for step, bucket in itertools.product((2, 3), range(3)):
                within = timeline.one("backward", step)
                parts = [timeline.one(f"{name} bucket {bucket}", step) for name in ("all-reduce", "wait", "update")]
                begins = [span["ts"] for span in (within, *parts)]
                assert begins == sorted(begins) and end(parts[-1]) <= end(within) + SLACK_US
        sent[dtype] = sum(span["args"].get("bytes", 0) for span in timelines[0].spans)
    assert sent["bf16"] == pytest.approx(sent["fp32"] / 2, rel=0.01) and sent["fp32"] == pytest.approx(2 * 56554 * 4, rel=0.01)


# ---- none ----------------------------------------------------------------------------------------------------------

def images(samples: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(4)
    y = random.integers(10, size=samples)
    x = random.normal(size=(samples, 1, 8, 8)) + random.normal(size=(10, 1, 8, 8))[y]
    return {"x": x.astype(np.float32), "y": y}


@pytest.mark.parametrize(("workers", "way"), [(2, "fp16"), (3, "fp32"), (4, "accumulation")] if ALL else [(3, "fp32")])
def test_none_is_so_many_trainings(workers: int, way: str, tmp_path: Path) -> None:
    """Bit for bit, each on its own samples, over the end of an epoch; what is evaluated is the average."""
    batches = WAYS[way].get("train", {}).get("grad_accumulation", 1)
    arrays, per_epoch = images(200 * batches), 200 // (8 * workers)
    write_safetensors(tmp_path / "all.safetensors", arrays)
    steps = per_epoch + 3
    own = by("none", DIGITS_CNN, tmp_path / "all.safetensors", data={"shuffle": False}, eval={"every_steps": 4},
             checkpoint={"every_steps": steps})
    own = merged(own, {**WAYS[way], "train": {"steps": steps, "grad_accumulation": batches}})
    together = train(tmp_path / "together", own, workers=workers)
    files, alone = files_of(together, steps), []
    for rank in range(workers):
        rows = slice(rank, per_epoch * 8 * workers * batches, workers)
        path = tmp_path / f"{rank}.safetensors"
        write_safetensors(path, {name: np.ascontiguousarray(array[rows]) for name, array in arrays.items()})
        source = {"format": "safetensors", "path": str(path)}
        alone.append(train(tmp_path / str(rank), merged(own, {"data": {"train": source}})))
        assert differing(files[rank], files_of(alone[-1], steps)[0]) == []
    np.testing.assert_allclose(together.losses, np.mean([run.losses for run in alone], axis=0), rtol=1e-15)
    check_average(together.weights, files)
    squares = [sum(np.sum((tensors[name] - np.mean([f[name].astype(np.float64) for f in files], axis=0)) ** 2)
                   for name in tensors if name.startswith("model.")) for tensors in files]
    assert together.evaluation["consensus_distance"] == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-5)
    assert together.evaluation["consensus_distance"] > 0.01


def check_average(weights: dict[str, np.ndarray], files: list[dict[str, np.ndarray]]) -> None:
    """Sums and one product of parameters are rounded; buffers are added up in float64 and rounded once."""
    for name, average in weights.items():
        kind = "model" if f"model.{name}" in files[0] else "buffer"
        values = [tensors[f"{kind}.{name}"] for tensors in files]
        exact = np.mean([value.astype(np.float64) for value in values], axis=0)
        if kind == "buffer":
            assert same_bits(average, exact.astype(average.dtype)), name
        else:
            assert (np.abs(average - exact) <= len(files) * UNIT * np.mean(np.abs(values), axis=0)).all(), name


def test_none_evaluates_and_goes_on(tmp_path: Path) -> None:
    runs = [train(tmp_path / name, by("none", eval=evaluation), workers=3)
            for name, evaluation in (("never", NO_EVALUATION), ("often", {"every_steps": 3}))]
    assert_same_weights(*runs)
    assert list(runs[0].losses) == list(runs[1].losses)
    apart = distances(runs[1])
    assert len(apart) == 4 and apart == sorted(apart) and apart[0] > 0  # nothing brings them together
