"""data.sampling: which samples a run draws, told by a model whose loss is the mean of their numbers."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from runs import Run, assert_same_run, assert_same_weights, assert_says, message_of_odd_worker, merged, recipe, refused, train
from tensors import write_safetensors

SAMPLES = 64
RARE = 8  # samples of class 1; the others have class 0
BITS = 2**64 - 1
BALANCED = [1 / (SAMPLES - RARE)] * (SAMPLES - RARE) + [1 / RARE] * RARE
# Some never, most of different weights, one more often than all others together.
UNEVEN = [0.0, 0.0, *(0.1 * i for i in range(1, SAMPLES - 2)), 300.0]


# ---- the draws as lib/decent/data/weighted_order.h defines them ------------------------------------------------------

def mixed(key: int, index: int) -> int:
    """SplitMix64."""
    z = (key + (index + 1) * 0x9E3779B97F4A7C15) & BITS
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & BITS
    z = (z ^ z >> 27) * 0x94D049BB133111EB & BITS
    return z ^ z >> 31


def whole(weights: list[float]) -> list[int]:
    def exponent(x: float) -> int:
        return math.frexp(x)[1] - 1

    largest = exponent(max(weights))
    scale = 61 - exponent(sum(math.ldexp(weight, -largest) for weight in weights)) - largest
    return [max(1, round(math.ldexp(weight, scale))) if weight else 0 for weight in weights]


def exponential(key: int) -> float:
    numbers = (mixed(key, index) for index in range(10**6))
    whole_part = 0
    while True:
        first = last = next(numbers)
        length = 1
        while (following := next(numbers)) < last:
            last, length = following, length + 1
        if length % 2:
            return whole_part + (first >> 11) * 2.0**-53
        whole_part += 1


def drawn(weights: list[float], replacement: bool, epoch: int, seed: int = 0) -> list[int]:
    """The samples of an epoch."""
    weights = whole(weights)
    key = mixed(mixed(mixed(0, seed), epoch), int.from_bytes(b"sampling", "big"))
    if replacement:
        ends = list(accumulate(weights))
        return [bisect_right(ends, mixed(key, position) * ends[-1] >> 64) for position in range(len(weights))]
    return sorted((i for i, weight in enumerate(weights) if weight), key=lambda i: (exponential(mixed(key, i)) / weights[i], i))


def expected_losses(weights: list[float], replacement: bool, batches: list[tuple[int, int, int]]) -> list[float]:
    """The mean of the samples' numbers; a batch is (epoch, first position, samples)."""
    return [float(np.mean(drawn(weights, replacement, epoch)[first:first + count])) for epoch, first, count in batches]


# ---- runs ------------------------------------------------------------------------------------------------------------

class Numbers(torch.nn.Module):
    """Its loss is the mean of the samples' numbers, exactly: small integers, and powers of two of them in a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.one).mean()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("numbers")
    torch.jit.script(Numbers()).save(str(path / "numbers.pt"))
    write(path / "data.safetensors")
    return path


def write(file: Path, **changes: np.ndarray) -> None:
    numbers = np.arange(SAMPLES)
    write_safetensors(file, {"x": numbers.astype(np.float32), "y": (numbers >= SAMPLES - RARE).astype(np.int64),
                             "w": np.array(UNEVEN), **changes})


def source(file: Path) -> dict:
    return {"format": "safetensors", "path": str(file)}


def settings(folder: Path, sampling: dict | None, **changes: object) -> dict:
    # The learning rate is too small to change a weight.
    return merged(recipe(folder / "numbers.pt", folder / "data.safetensors", model={"loss": "output"},
                         data={"batch_size": 1, "eval": None, "sampling": sampling},
                         optimizer={"name": "sgd", "lr": 1e-30}), changes)


CASES = {
    "weights": ({"weights": "w"}, UNEVEN, True),
    "weights, each once": ({"weights": "w", "replacement": False}, UNEVEN, False),
    "classes": ({"weights": "class_balanced"}, BALANCED, True),
    "classes, each once": ({"weights": "class_balanced", "replacement": False}, BALANCED, False),
}


@pytest.mark.parametrize("case", CASES)
def test_the_samples_are_those_of_the_definition(case: str, folder: Path, tmp_path: Path) -> None:
    sampling, weights, replacement = CASES[case]
    run = train(tmp_path, settings(folder, sampling, train={"steps": 2 * SAMPLES}))
    length = SAMPLES if replacement else sum(weight > 0 for weight in weights)
    wanted = [number for epoch in range(3) for number in drawn(weights, replacement, epoch)[:length]]
    assert list(run.losses) == wanted[:2 * SAMPLES]
    if not replacement:
        assert set(run.losses[:length]) == {i for i, weight in enumerate(weights) if weight}


def test_classes_are_equally_likely(folder: Path, tmp_path: Path) -> None:
    steps = 1000
    run = train(tmp_path, settings(folder, {"weights": "class_balanced"}, train={"steps": steps}))
    rare = Counter(run.losses >= SAMPLES - RARE)[True]
    # Binomial(1000, 1/2): five standard deviations, which one seed of two million exceeds.
    assert abs(rare - steps / 2) < 5 * math.sqrt(steps / 4)


@pytest.mark.parametrize("case", ["weights", "classes, each once"])
def test_any_workers_and_resumes_see_the_same_samples(case: str, folder: Path, tmp_path: Path) -> None:
    """Two workers end in the middle of an epoch, four go on."""
    sampling, weights, replacement = CASES[case]
    own = settings(folder, sampling, data={"batch_size": 2}, train={"grad_accumulation": 2}, checkpoint={"every_steps": 5})
    first = train(tmp_path, merged(own, {"train": {"steps": 5}, "data": {"threads": 3}}), workers=2)
    assert list(first.losses) == expected_losses(weights, replacement, [(0, 8 * step, 8) for step in range(5)])
    rest = train(tmp_path, merged(own, {"train": {"steps": 9}}), "--resume", "auto", workers=4)
    later = [(0, 40, 16), (1, 0, 16), (1, 16, 16), (1, 32, 16)]  # the last 8 of epoch 0 are no update of 16
    assert list(rest.losses[5:]) == expected_losses(weights, replacement, later)


@pytest.mark.parametrize("sampling", [{"weights": "class_balanced"}, {"weights": "class_balanced", "replacement": False}])
def test_a_resumed_run_has_the_bits_of_an_undisturbed_one(sampling: dict, tmp_path: Path) -> None:
    def run(name: str, steps: int, *flags: object, **changes: object) -> Run:
        own = recipe(data={"sampling": sampling}, train={"steps": steps}, checkpoint={"every_steps": 7})
        return train(tmp_path / name, merged(own, {"data": changes}), *flags)

    whole_run = run("whole", 14)
    run("stopped", 7, threads=2, prefetch=5)
    resumed = run("stopped", 14, "--resume", "auto")
    assert_same_weights(resumed, whole_run)
    assert resumed.lines("train") and [line["loss"] for line in resumed.lines("train")] == list(whole_run.losses)
    assert_same_run(run("threads", 14, threads=3, prefetch=0), whole_run)


def test_shuffle_has_no_say(folder: Path, tmp_path: Path) -> None:
    shuffled, ordered = (train(tmp_path / str(shuffle), settings(folder, {"weights": "w"}, data={"shuffle": shuffle, "batch_size": 3}))
                         for shuffle in (True, False))
    assert list(shuffled.losses) == list(ordered.losses)
    assert "data.shuffle is false" not in ordered.ended[0].out


def test_a_note_counts_what_is_never_drawn(folder: Path, tmp_path: Path) -> None:
    out = train(tmp_path, settings(folder, {"weights": "w"})).ended[0].out
    assert_says(out, "data.sampling: 2 of 64 samples have weight 0 and are never trained on")


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.uint8, np.bool_])
def test_weights_of_any_type(dtype: type, folder: Path, tmp_path: Path) -> None:
    weights = (np.arange(SAMPLES) % 4).astype(dtype)
    write(tmp_path / "data.safetensors", w=weights[:, None])  # a column is as good as a row
    own = settings(folder, {"weights": "w"}, data={"train": source(tmp_path / "data.safetensors")})
    run = train(tmp_path / "run", own)
    assert list(run.losses) == drawn([float(weight) for weight in weights], True, 0)[:len(run.losses)]


def test_weights_of_a_column(folder: Path, tmp_path: Path) -> None:
    """Evaluation reads files without weights; a resume reads the training data as data.json says."""
    weights = [float(i % 4) for i in range(SAMPLES)]
    rows = [f"{i},{weight},0\n" for i, weight in enumerate(weights)]
    (tmp_path / "train.csv").write_text("number,w,y\n" + "".join(rows))
    (tmp_path / "eval.csv").write_text("y,number\n0,5\n")
    own = settings(folder, {"weights": "w"}, checkpoint={"every_steps": 5}, eval={"every_steps": 12}, data={
        "train": {"format": "csv", "path": str(tmp_path / "train.csv"), "fields": "w"},
        "eval": {"format": "csv", "path": str(tmp_path / "eval.csv")}})
    train(tmp_path / "run", merged(own, {"train": {"steps": 5}}))
    run = train(tmp_path / "run", own, "--resume", "auto")
    assert list(run.losses) == drawn(weights, True, 0)[:len(run.losses)]
    assert run.evaluation["loss"] == 5


def with_columns(folder: Path, format: str, header: str = "a,b,w,note", bad: dict[int, str] | None = None) -> dict:
    """Numbers 0 to 63 as pictures of one pixel or as texts of one id, their weights in the third of four columns."""
    weights = [f"{i % 4}" for i in range(SAMPLES)]
    for sample, cell in (bad or {}).items():
        weights[sample] = cell
    names = [f"{i}.png" if format == "images" else f"{i}" for i in range(SAMPLES)]
    if format == "images":
        for i, name in enumerate(names):
            Image.fromarray(np.full((1, 1), i, np.uint8)).save(folder / name)
    rows = [f"{name},1,{weight},none\n" for name, weight in zip(names, weights)]
    (folder / "list.csv").write_text((header + "\n" if header else "") + "".join(rows))
    keys = {"images": {"channels": 1, "size": 1}, "pairs": {"tokens": "ids", "length": [2, 2], "header": bool(header)}}
    return {"format": format, "path": str(folder / "list.csv"), "fields": "w" if header else "2", **keys[format]}


# What the loss is of a sample with number 1: a byte is divided by 255, and an id has one place of padding beside it.
OF_ONE = {"images": 1 / 255, "pairs": 1 / 2}


@pytest.mark.parametrize("header", ["a,b,w,note", ""], ids=["header", "no header"])
@pytest.mark.parametrize("format", OF_ONE)
def test_weights_of_a_column_beside_pictures_and_texts(format: str, header: str, folder: Path, tmp_path: Path) -> None:
    """Evaluation reads a file without weights; a resume reads the training data as data.json says."""
    source = with_columns(tmp_path, format, header)
    (tmp_path / "eval.csv").write_text("5.png,1\n" if format == "images" else "a,b\n5,1\n" if header else "5,1\n")
    own = settings(folder, {"weights": source["fields"]}, checkpoint={"every_steps": 5}, eval={"every_steps": 12}, data={
        "train": source, "eval": {key: value for key, value in source.items() if key != "fields"} | {"path": str(tmp_path / "eval.csv")}})
    train(tmp_path / "run", merged(own, {"train": {"steps": 5}}))
    run = train(tmp_path / "run", own, "--resume", "auto")
    numbers = [round(loss / OF_ONE[format]) for loss in run.losses]
    assert numbers == drawn([float(i % 4) for i in range(SAMPLES)], True, 0)[:len(numbers)]
    # A quotient of float32 and its mean.
    assert list(run.losses) == pytest.approx([number * OF_ONE[format] for number in numbers], rel=1e-6)
    assert run.evaluation["loss"] == pytest.approx(5 * OF_ONE[format], rel=1e-6)


def test_a_sample_without_a_class_is_never_drawn(folder: Path, tmp_path: Path) -> None:
    labels = np.where(np.arange(SAMPLES) < 60, -100, np.arange(SAMPLES))  # model.ignore_index
    write(tmp_path / "data.safetensors", y=labels)
    own = settings(folder, {"weights": "class_balanced"}, train={"steps": 40},
                   data={"train": source(tmp_path / "data.safetensors")})
    assert set(train(tmp_path / "run", own).losses) == {60, 61, 62, 63}


# ---- messages --------------------------------------------------------------------------------------------------------

def with_weight(sample: int, weight: float) -> dict[str, np.ndarray]:
    weights = np.ones(SAMPLES)
    weights[sample] = weight
    return {"w": weights}


REFUSED = {
    "no field": ({}, "v", "data.train has no field 'v', which data.sampling.weights asks for; it has "),
    "negative": (with_weight(3, -1), "w", "data.sampling.weights: sample 3 ('{file}'), counted from 0: field 'w' is -1; expected a "
                                          "weight, finite and >= 0"),
    "not a number": (with_weight(63, np.nan), "w", "sample 63 ('{file}'), counted from 0: field 'w' is nan"),
    "infinite": (with_weight(0, np.inf), "w", "sample 0 ('{file}'), counted from 0: field 'w' is inf"),
    "all zero": ({"w": np.zeros(SAMPLES)}, "w", "data.sampling.weights: all 64 samples have weight 0, so that none can be drawn"),
    "shape": ({"w": np.ones((SAMPLES, 3))}, "w",
              "data.sampling.weights: expected a weight, one number for each sample; field 'w' is float64[3]"),
    "input": ({}, "x", "data.sampling.weights: field 'x' is an input of the model (model.inputs)"),
    "no classes": ({"y": np.full(SAMPLES, 0.5)}, "class_balanced",
                   "sample 0 ('{file}'), counted from 0: field 'y' is 0.5; expected a class for class_balanced"),
    "several classes": ({"y": np.zeros((SAMPLES, 2), np.int64)}, "class_balanced",
                        "expected a class for class_balanced, one number for each sample; field 'y' is int64[2]"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str, folder: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    changes, weights, text = REFUSED[what]
    file = tmp_path_factory.mktemp("odd") / "odd.safetensors"
    write(file, **changes)
    own = settings(folder, {"weights": weights}, data={"train": source(file)})
    assert_says(refused(tmp_path, own), text.format(file=file))


def test_a_format_without_such_a_field(tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(data={"sampling": {"weights": "w"}}))
    assert_says(message, "data.train has no field 'w', which data.sampling.weights asks for; it has x, y, each of which is an input "
                         "or the target")


def test_a_negative_weight_of_a_row(folder: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    file = tmp_path_factory.mktemp("odd") / "odd.csv"
    file.write_text("number,w,y\n0,1,0\n1,-2,0\n")
    own = settings(folder, {"weights": "w"}, data={"train": {"format": "csv", "path": str(file), "fields": "w"}})
    assert_says(refused(tmp_path, own), f"sample 1 ('{file}'), counted from 0: field 'w' is -2")


COLUMNS_REFUSED = {
    "no column": ({"header": "a,b,v,note"}, "'{file}': fields names ", "'w'"),
    "no number": ({"bad": {3: "many"}}, "column 'w': expected a number", "got 'many'"),
    "negative": ({"bad": {3: "-2"}}, "data.sampling.weights: sample 3 (", "field 'w' is -2; expected a weight, finite and >= 0"),
    "too large": ({"bad": {3: "1e39"}}, "column 'w': expected a number that fits into float32, got '1e39'"),
}


@pytest.mark.parametrize("what", COLUMNS_REFUSED)
@pytest.mark.parametrize("format", OF_ONE)
def test_columns_that_are_no_weights(format: str, what: str, folder: Path, tmp_path_factory: pytest.TempPathFactory,
                                     tmp_path: Path) -> None:
    changes, *texts = COLUMNS_REFUSED[what]
    source = with_columns(tmp_path_factory.mktemp("odd"), format, **changes)
    message = refused(tmp_path, settings(folder, {"weights": "w"}, data={"train": source}))
    assert_says(message, *(text.format(file=source["path"]) for text in texts))


def test_columns_of_a_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    source = with_columns(tmp_path_factory.mktemp("odd"), "images")
    own = settings(folder, {"weights": "w"}, data={"train": {**source, "path": str(Path(source["path"]).parent)}})
    assert_says(refused(tmp_path, own), "fields: the folder '", "' has no columns; expected a list, .csv")


def test_a_column_that_is_the_target(folder: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    source = {**with_columns(tmp_path_factory.mktemp("odd"), "pairs"), "fields": "b"}
    message = refused(tmp_path, settings(folder, {"weights": "b"}, data={"train": source}))
    assert_says(message, "fields names column 'b', which is part of y; expected a column of its own")


def test_too_few_samples_of_a_weight(folder: Path, tmp_path: Path) -> None:
    own = settings(folder, {"weights": "w", "replacement": False}, data={"batch_size": SAMPLES})
    assert_says(refused(tmp_path, own), "the training data has 62 samples, but one update takes 64", "weight 0")


def test_workers_with_other_weights(folder: Path, tmp_path: Path) -> None:
    """Of a sample that no checksum of the data looks at."""
    weights = np.ones(1000)
    for name in ("common", "odd"):
        write_safetensors(tmp_path / f"{name}.safetensors", {"x": np.zeros(1000, np.float32), "w": weights})
        weights[1] = 2
    own = {name: settings(folder, {"weights": "w"}, data={"train": source(tmp_path / f"{name}.safetensors")}) for name in ("common", "odd")}
    assert_says(message_of_odd_worker(tmp_path, own["common"], own["odd"]), "rank 1", "the content of data.train is ")
