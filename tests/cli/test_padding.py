"""Pairs padded to the longest of a batch, of so many samples or of so many tokens: the batches of a PyTorch collate, bit for bit,
and runs on them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from program import ROOT
from runs import (Run, assert_same_run, assert_same_weights, assert_says, attempt, error_message, merged, recipe, refused, train,
                  write_recipe)
from translator import Translator

RUN = os.environ.get("DECENT_LOADER_RUN", ROOT / "build" / "bin" / "loader_run")
FIELDS = ["x", "x_mask", "y_in", "y_mask", "y"]
LENGTHS = [9, 12]  # one more than the longest of the texts has
PAIRS = 90

Pair = tuple[list[int], list[int]]


def collate(pairs: list[Pair], pad: int = 0, ignore: int = -100) -> dict[str, torch.Tensor]:
    """As the tutorials of PyTorch do it."""
    def padded(rows: list[list[int]], value: int) -> torch.Tensor:
        return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=value)

    sources, targets = [a for a, _ in pairs], [b for _, b in pairs]
    return {"x": padded(sources, pad), "x_mask": padded([[1] * len(a) for a in sources], 0).bool(),
            "y_in": padded([[1, *b] for b in targets], pad), "y_mask": padded([[1] * (len(b) + 1) for b in targets], 0).bool(),
            "y": padded([[*b, 2] for b in targets], ignore)}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Pair]]:
    """Ids, so that the samples are the file's; a model that knows 30 numbers."""
    folder = tmp_path_factory.mktemp("pairs")
    random = np.random.default_rng(5)
    pairs = [tuple(random.integers(4, 30, random.integers(1, longest)).tolist() for longest in LENGTHS) for _ in range(PAIRS)]
    (folder / "pairs.tsv").write_text("".join("\t".join(" ".join(map(str, text)) for text in pair) + "\n" for pair in pairs))
    torch.manual_seed(2)
    torch.jit.script(Translator(30)).save(str(folder / "model.pt"))
    return folder, pairs


def settings(folder: Path, pad: str, **changes: object) -> dict:
    source = {"format": "pairs", "path": str(folder / "pairs.tsv"), "tokens": "ids", "length": LENGTHS, "pad": pad}
    return merged(recipe(folder / "model.pt", model={"inputs": FIELDS[:-1]}, data={"train": source, "batch_size": 7},
                         train={"steps": 12}), changes)


def batches(folder: Path, recipe: dict, count: int, *worker: int) -> list[dict[str, torch.Tensor]]:
    folder.mkdir()
    done = subprocess.run([RUN, "batches", write_recipe(folder, recipe), str(count), *map(str, worker)], capture_output=True,
                          check=True, timeout=60)
    found, left = [], done.stdout
    while left:
        line, _, left = left.partition(b"\n")
        name, dtype, shape = line.decode().split(" ", 2)
        array = np.frombuffer(left, np.dtype(dtype), int(np.prod(json.loads(shape)))).reshape(json.loads(shape))
        left = left[array.nbytes:]
        found.append((name, torch.from_numpy(array.copy())))
    return [dict(found[i:i + len(FIELDS)]) for i in range(0, len(found), len(FIELDS))]


def assert_equal(ours: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> None:
    assert set(ours) == set(wanted)
    for name, tensor in wanted.items():
        assert ours[name].dtype == tensor.dtype and torch.equal(ours[name], tensor), name


def test_batches_are_those_of_a_collate(data: tuple[Path, list[Pair]], tmp_path: Path) -> None:
    folder, pairs = data
    ordered = settings(folder, "batch", data={"shuffle": False})
    loader = torch.utils.data.DataLoader(pairs, batch_size=7, collate_fn=collate, drop_last=True)
    wanted = [*loader, *loader]
    assert len({batch["x"].size(1) for batch in wanted}) > 1
    for ours, theirs in zip(batches(tmp_path / "one", ordered, len(wanted)), wanted, strict=True):
        assert_equal(ours, theirs)
    other = {"train": {"special": [33, 1, 2, 0], "ignore_index": -5}}
    ours, = batches(tmp_path / "special", merged(ordered, {"data": other}), 1)
    assert_equal(ours, collate(pairs[:7], 33, -5))


def test_workers_differ_in_length_and_threads_change_nothing(data: tuple[Path, list[Pair]], tmp_path: Path) -> None:
    folder, pairs = data
    for rank in (0, 1):
        one = batches(tmp_path / f"{rank}", settings(folder, "batch"), 12, rank, 2)
        for batch in one:
            assert batch["x"].size(1) == batch["x_mask"].sum(1).max() and batch["y"].size(1) == batch["y_mask"].sum(1).max()
        three = batches(tmp_path / f"{rank}-3", settings(folder, "batch", data={"threads": 3}), 12, rank, 2)
        for ours, wanted in zip(three, one, strict=True):
            assert_equal(ours, wanted)


@pytest.fixture(scope="module")
def undisturbed(data: tuple[Path, list[Pair]], tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("undisturbed") / "run", evaluated(data[0], "batch"), workers=2)


def evaluated(folder: Path, pad: str) -> dict:
    """On the same pairs, 11 in a batch."""
    base = settings(folder, pad)
    return merged(base, {"data": {"eval": base["data"]["train"], "eval_batch_size": 11}, "eval": {"every_steps": 6},
                         "checkpoint": {"every_steps": 6}})


def test_evaluation_counts_no_padding(data: tuple[Path, list[Pair]], undisturbed: Run) -> None:
    """As one sample after another, none of them padded."""
    model = torch.jit.load(undisturbed.folder / "model.pt")
    loss, right, tokens = 0.0, 0, 0
    for pair in data[1]:
        fields = collate([pair])
        output = model(*(fields[name] for name in FIELDS[:-1])).double()[0]
        loss += torch.nn.functional.cross_entropy(output, fields["y"][0], reduction="sum").item()
        right += int((output.argmax(-1) == fields["y"][0]).sum())
        tokens += output.size(0)
    assert undisturbed.evaluation["samples"] == PAIRS
    assert undisturbed.evaluation["loss"] == pytest.approx(loss / tokens, rel=1e-6)
    assert undisturbed.evaluation["accuracy"] == right / tokens


def test_runs_are_those_padded_to_a_length(data: tuple[Path, list[Pair]], undisturbed: Run, tmp_path: Path) -> None:
    """But for rounding: sums have more zeros in them."""
    fixed = train(tmp_path / "fixed", evaluated(data[0], "length"), workers=2)
    np.testing.assert_allclose(undisturbed.losses, fixed.losses, rtol=1e-5)
    for ours, theirs in zip(undisturbed.lines("eval"), fixed.lines("eval"), strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5) and ours["accuracy"] == theirs["accuracy"]


def test_threads_and_a_stop_change_no_run(data: tuple[Path, list[Pair]], undisturbed: Run, tmp_path: Path) -> None:
    changed = merged(evaluated(data[0], "batch"), {"data": {"threads": 3, "prefetch": 5}})
    assert_same_run(train(tmp_path / "threads", changed, workers=2), undisturbed)
    train(tmp_path / "stopped", changed, "--set", "train.steps=6", "--set", "schedule.t_max=12", workers=2)
    assert_same_weights(train(tmp_path / "stopped", changed, "--resume", "auto", workers=2), undisturbed)


def test_dry_run_and_evaluation_alone(data: tuple[Path, list[Pair]], undisturbed: Run, tmp_path: Path) -> None:
    alone = ["--eval-only", "--checkpoint", undisturbed.checkpoint(12)]
    for flags in (["--dry-run"], alone):
        ended, = attempt(tmp_path / flags[0], evaluated(data[0], "batch"), *flags)
        assert ended.code == 0 and ended.err == "", ended
    assert f"loss {undisturbed.evaluation['loss']:.4f}" in ended.out


# ---- batches measured in tokens -------------------------------------------------------------------------------------

TOKENS = 64


def length(pair: Pair) -> int:
    return max(len(pair[0]), len(pair[1]) + 1)


def batched(pairs: list[Pair]) -> list[list[Pair]]:
    """As fairseq's batch_by_size does it with multiples of 1, for the pairs in this order."""
    found = [[]]
    for pair in pairs:
        if (len(found[-1]) + 1) * max(map(length, [*found[-1], pair])) > TOKENS:
            found.append([])
        found[-1].append(pair)
    return found


def of_tokens(folder: Path, **changes: object) -> dict:
    return merged(settings(folder, "batch", data={"batch_tokens": TOKENS, "eval": None}), changes)


def test_batches_of_tokens_in_the_order_of_the_file(data: tuple[Path, list[Pair]], tmp_path: Path) -> None:
    folder, pairs = data
    wanted = batched(pairs)
    for ours, theirs in zip(batches(tmp_path / "batches", of_tokens(folder, data={"shuffle": False}), len(wanted)), wanted, strict=True):
        assert_equal(ours, collate(theirs))


def test_batches_of_tokens_from_parts_of_several_files(data: tuple[Path, list[Pair]], tmp_path: Path) -> None:
    folder, pairs = data
    lines = (folder / "pairs.tsv").read_text().splitlines(keepends=True)
    files = [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    for file, part in zip(files, (lines[:31], lines[31:])):
        file.write_text("".join(part))
    base = of_tokens(folder, data={"shuffle": False, "train": {"path": [str(file) for file in files]}})
    wanted = batched(pairs[:50])
    limited = merged(base, {"data": {"train": {"limit": 50}}})
    for ours, theirs in zip(batches(tmp_path / "limit", limited, len(wanted)), wanted, strict=True):
        assert_equal(ours, collate(theirs))
    kept, left = (merged(base, {"data": {"train": {"holdout": {"fraction": 0.3, "part": part}}}}) for part in ("train", "eval"))
    found = []
    for name, own, count in (("kept", kept, 63), ("left", left, 27)):
        rows = []
        for batch in batches(tmp_path / name, own, 40):
            assert len(batch["x"]) * max(batch["x"].size(1), batch["y"].size(1)) <= TOKENS
            rows += [tuple(row[row > 2].tolist()) for row in batch["x"]]
        found += rows[:count]  # of the first epoch
    assert sorted(found) == sorted(tuple(source) for source, _ in pairs)


def test_batches_of_tokens_by_length(data: tuple[Path, list[Pair]], tmp_path: Path) -> None:
    """Which pairs of one length share a batch is random, and so is the order of the batches; their sizes are not. In every epoch
    they are the same batches."""
    folder, pairs = data
    by_length = batched(sorted(pairs, key=length))
    count = len(by_length)
    both = batches(tmp_path / "batches", of_tokens(folder, data={"threads": 3}), 2 * count)
    rows = [sorted(zip(batch["x"].tolist(), batch["y"].tolist())) for batch in both]
    assert rows[:count] != rows[count:] and sorted(rows[:count]) == sorted(rows[count:])
    sizes = sorted((batch["x"].size(0), max(batch["x"].size(1), batch["y"].size(1))) for batch in both[:count])
    assert sizes == sorted((len(batch), max(map(length, batch))) for batch in by_length)
    seen = [tuple(number for number in row if number > 2) for batch in both[:count] for row in batch["x"].tolist()]
    assert sorted(seen) == sorted(tuple(source) for source, _ in pairs)


def test_runs_on_batches_of_tokens(data: tuple[Path, list[Pair]], tmp_path: Path) -> None:
    """The same with other threads, and resumed; and it is said how large batches are."""
    own = of_tokens(data[0], checkpoint={"every_steps": 6})
    run = train(tmp_path / "whole", own, workers=2)
    assert_says(run.ended[0].out, "12 updates of 2 x 64 tokens")
    count = len(batched(sorted(data[1], key=length)))
    line = run.lines("train")[-1]
    assert line["epoch"] == pytest.approx(12 / (count // 2))
    assert line["samples_per_s"] * line["step_ms"] / 1000 == pytest.approx(2 * PAIRS / count)
    changed = merged(own, {"data": {"threads": 3, "prefetch": 5}})
    train(tmp_path / "stopped", changed, "--set", "train.steps=6", "--set", "schedule.t_max=12", workers=2)
    assert_same_weights(train(tmp_path / "stopped", changed, "--resume", "auto", workers=2), run)
    for tokens in ("65", "null"):
        ended = attempt(tmp_path / "stopped", changed, "--resume", "auto", "--set", f"data.batch_tokens={tokens}", workers=2)
        assert_says(error_message(ended), f"data.batch_tokens was 64, is {tokens}")
    dry, = attempt(tmp_path / "dry", own, "--dry-run")
    assert dry.code == 0, dry
    assert_says(dry.out, f"12 of 1 batch, about {round(PAIRS / count)} samples, {count} an epoch (0 batches left out of each)")


def test_what_has_no_batches_of_tokens(data: tuple[Path, list[Pair]], tmp_path: Path) -> None:
    folder, pairs = data
    longest = max(map(length, pairs))
    first = next(i for i, pair in enumerate(pairs) if length(pair) == longest)
    cases = {
        "data.batch_tokens: the samples of data.train are all of one size (x int64[9], x_mask bool[9], y_in int64[12], y int64[12], "
        "y_mask bool[12]), for which data.batch_size says how large a batch is; texts of format pairs keep their lengths with `pad: "
        "batch`": settings(folder, "length", data={"batch_tokens": TOKENS, "eval": None}),
        f"data.batch_tokens: expected at least the tokens of the longest sample, got {longest - 1}; sample {first} ('{folder}/pairs.tsv'), "
        f"counted from 0, has {longest}": of_tokens(folder, data={"batch_tokens": longest - 1}),
        "data.batch_tokens: its batches are made of samples of similar lengths, while data.sampling draws samples by weights":
            of_tokens(folder, data={"sampling": {"weights": "2"}}),
        "data.batch_tokens: it takes the place of data.batch_size, whose hosts and ranks would not count":
            of_tokens(folder, data={"batch_size": {"default": 3, "ranks": {0: 4}}}),
        "the training data has 1 batch, but one update takes 2: one for each of 1 worker x grad_accumulation 2\nlower data.batch_tokens":
            of_tokens(folder, data={"batch_tokens": 10**6}, train={"grad_accumulation": 2}),
        "decent-train can do": of_tokens(folder, data={"batch_tokens": 10**10}),
    }
    for number, (message, own) in enumerate(cases.items()):
        own_folder = tmp_path / str(number)
        own_folder.mkdir()
        assert_says(refused(own_folder, own), message)


def test_gradients_of_batches_of_tokens_are_averaged(data: tuple[Path, list[Pair]], tmp_path: Path) -> None:
    """all_reduce of two workers, and one that accumulates the same batches: all of them weigh the same."""
    own = of_tokens(data[0], data={"shuffle": False}, train={"steps": 4}, parallel={"method": "all_reduce"})
    two = train(tmp_path / "two", own, workers=2)
    one = train(tmp_path / "one", merged(own, {"train": {"grad_accumulation": 2}}))
    np.testing.assert_allclose(two.losses, one.losses, rtol=1e-5)  # sums in another order
    count = len(batched(data[1]))
    assert count % 2 == 0
    three, = attempt(tmp_path / "three", merged(own, {"train": {"grad_accumulation": 3}}), "--dry-run")
    assert_says(three.out, f"data.shuffle is false: the last {count % 3} of {count} batches are never trained on, as an epoch is whole "
                "updates of 3 batches; another batch_tokens, or data.shuffle: true, uses them")
