"""From files to batches: formats that hold the same, threads, transforms, samples that cannot be read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from image_runs import write_images
from runs import Run, assert_same_run, assert_same_weights, assert_says, attempt, error_message, merged, recipe, refused, train
from tensors import write_safetensors

STEPS = 20
RANDOM = [{"random_crop": {"size": 8, "padding": 1}}, "flip", {"color_jitter": {"brightness": 0.3}}, {"normalize": "auto"}, {"mixup": 0.4},
          {"cutmix": 1}]


def digits(count: int = 96, size: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Sorted by class, as the folders of an image data set have them."""
    random = np.random.default_rng(1)
    return random.integers(0, 256, (count, size, size), np.uint8), np.sort(random.integers(0, 10, count))


def image_folder(path: Path, **more: object) -> dict:
    return {"format": "images", "path": str(path), "channels": 1, **more}


def settings(source: dict, **changes: object) -> dict:
    return merged(recipe(train={"steps": STEPS}, data={"train": source, "eval": source}), changes)


def test_formats_that_hold_the_same(tmp_path: Path) -> None:
    pixels, labels = digits()
    arrays = {"x": pixels[:, None].astype(np.float32) / np.float32(255), "y": labels.astype(np.int64)}
    write_safetensors(tmp_path / "a.safetensors", arrays)
    files = write_images(tmp_path / "png", pixels, labels)
    (tmp_path / "list.csv").write_text("".join(f"{file.relative_to(tmp_path)},{label}\n" for file, label in zip(files, labels)))
    wanted = train(tmp_path / "wanted", settings({"format": "safetensors", "path": str(tmp_path / "a.safetensors")}))
    for name, source in {"folder": image_folder(tmp_path / "png"), "list": image_folder(tmp_path / "list.csv")}.items():
        run = train(tmp_path / name, settings(source))
        assert_same_weights(run, wanted)
        assert list(run.losses) == list(wanted.losses), name


# ---- threads and resuming ------------------------------------------------------------------------------------------

def test_threads_change_nothing(tmp_path: Path) -> None:
    """Nor does a stop: what is drawn for a sample is a function of seed, epoch and sample."""
    write_images(tmp_path / "png", *digits())
    drawn = settings(image_folder(tmp_path / "png"), data={"transforms": RANDOM}, eval={"every_steps": 10},
                     checkpoint={"every_steps": 10, "keep": 5})
    wanted = train(tmp_path / "1", drawn, workers=2)
    for threads, prefetch in ((2, 1), (4, 8), (1, 0)):
        run = train(tmp_path / f"{threads}-{prefetch}", merged(drawn, {"data": {"threads": threads, "prefetch": prefetch}}), workers=2)
        assert_same_run(run, wanted)
    resumed = tmp_path / "resumed"
    train(resumed, merged(drawn, {"data": {"threads": 3}}), "--set", "train.steps=10", "--set", "schedule.t_max=20", workers=2)
    run = train(resumed, merged(drawn, {"data": {"threads": 3}}), "--resume", "auto", workers=2)
    assert_same_weights(run, wanted)
    other = train(tmp_path / "seed", merged(drawn, {"seed": 1}), workers=2)
    assert list(other.losses) != list(wanted.losses)


# ---- transforms ----------------------------------------------------------------------------------------------------

def test_images_of_many_sizes(tmp_path: Path) -> None:
    """A transform gives them one size, in evaluation too; without one the message names those that do."""
    random = np.random.default_rng(2)
    for number in range(64):
        file = tmp_path / "png" / str(number % 10) / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, random.integers(9, 30, 2), np.uint8)).save(file)
    source = image_folder(tmp_path / "png")
    assert_says(refused(tmp_path / "none", settings(source)), "data.", "differ in field 'x'", "resize")
    for name, transforms in {"crop": [{"random_crop": 8}], "resized": [{"random_resized_crop": 8}],
                             "usual": [{"resize": 9}, {"center_crop": 8}], "square": [{"resize": [8, 8]}]}.items():
        run = train(tmp_path / name, settings(source, data={"transforms": transforms}))
        assert run.metrics[-1]["kind"] == "end"
        again = train(tmp_path / f"{name} again", settings(source, data={"transforms": transforms}))
        assert_same_run(run, again)


def test_normalize_auto(tmp_path: Path) -> None:
    """The numbers stand in recipe.yaml; evaluation takes those of the training data."""
    random = np.random.default_rng(3)
    x = (1000 + 3 * random.standard_normal((200, 1, 8, 8))).astype(np.float32)
    y = random.integers(0, 10, 200)
    write_safetensors(tmp_path / "train.safetensors", {"x": x, "y": y})
    write_safetensors(tmp_path / "eval.safetensors", {"x": x[:50] + 5, "y": y[:50]})
    source = {"format": "safetensors", "path": str(tmp_path / "train.safetensors")}
    wanted = settings(source, data={"eval": {**source, "path": str(tmp_path / "eval.safetensors")}}, eval={"every_steps": 20},
                      checkpoint={"every_steps": 20})
    automatic = train(tmp_path / "auto", merged(wanted, {"data": {"transforms": [{"normalize": "auto"}]}}), workers=2)
    resolved = (automatic.folder / "recipe.yaml").read_text()
    mean, std = (float(re.search(rf"{key}: \[([^,\]]+)\]", resolved)[1]) for key in ("mean", "std"))
    exact = x.astype(np.float64)
    assert (mean, std) == (pytest.approx(exact.mean(), rel=1e-12), pytest.approx(exact.std(), rel=1e-9))  # sums in double
    mean, std = np.float32(mean), np.float32(std)
    for name, part in {"train": x, "eval": x[:50] + 5}.items():
        write_safetensors(tmp_path / f"{name}-n.safetensors", {"x": (part - mean) / std, "y": y[: len(part)]})
    by_hand = merged(wanted, {"data": {"train": {"path": str(tmp_path / "train-n.safetensors")},
                                       "eval": {"path": str(tmp_path / "eval-n.safetensors")}}})
    assert_same_weights(automatic, train(tmp_path / "by hand", by_hand, workers=2))
    evaluated = attempt(tmp_path / "auto", merged(wanted, {"data": {"transforms": [{"normalize": "auto"}]}}), "--eval-only")
    assert evaluated[0].code == 0, evaluated[0].err
    lines = [json.loads(line) for line in (automatic.folder / "metrics.jsonl").read_text().splitlines()]
    scores = [line["loss"] for line in lines if line["kind"] == "eval"]
    assert scores[-1] == pytest.approx(scores[-2], rel=1e-6)  # one worker, so another order of sums


WRONG_TRANSFORMS = {
    "unknown": (["crops"], ["data.transforms", "expected one of resize, center_crop", "crops"]),
    "no image": ([{"resize": {"size": 8, "field": "y"}}], ["data.train", "transform resize", "'y'"]),
    "no numbers": ([{"normalize": {"mean": 0.5}}], ["data.train", "expected auto, or mean and std"]),
    "too small": ([{"random_crop": 9}], ["data.train", "transform random_crop", "too small"]),
    "no such field": ([{"normalize": {"statistics": "auto", "field": "z"}}], ["no field 'z'"]),
}


@pytest.mark.parametrize("name", WRONG_TRANSFORMS)
def test_wrong_transforms(name: str, tmp_path: Path) -> None:
    transforms, says = WRONG_TRANSFORMS[name]
    write_images(tmp_path / "png", *digits(16))
    assert_says(refused(tmp_path / "run", settings(image_folder(tmp_path / "png", size=8), data={"transforms": transforms})), *says)


# ---- samples that cannot be read -----------------------------------------------------------------------------------

def broken_images(folder: Path) -> list[int]:
    """Two are cut short, one is empty; none of the first batch, which is tried."""
    files = write_images(folder, *digits())
    broken = [30, 31, 70]
    for number in broken:
        content = files[number].read_bytes()
        files[number].write_bytes(content[: len(content) // 2] if number != 70 else b"")
    return broken


def test_broken_sample_ends_the_run(tmp_path: Path) -> None:
    broken_images(tmp_path / "png")
    ended = attempt(tmp_path / "run", settings(image_folder(tmp_path / "png", size=8)))
    assert_says(error_message(ended), ".png'")


def test_broken_samples_are_skipped(tmp_path: Path) -> None:
    """Evaluation leaves them out; the list has each once, whichever worker saw it."""
    broken = broken_images(tmp_path / "png")
    skips = settings(image_folder(tmp_path / "png", size=8), data={"on_error": "skip", "batch_size": 4, "threads": 2},
                     train={"steps": 30}, eval={"every_steps": 30})
    run = train(tmp_path / "run", skips, workers=2)
    listed = [json.loads(line) for line in (run.folder / "skipped.jsonl").read_text().splitlines()]
    for data in ("data.train", "data.eval"):
        assert sorted(line["sample"] for line in listed if line["data"] == data) == broken
    assert all(".png'" in line["why"] for line in listed)
    assert [line["samples"] for line in run.metrics if line["kind"] == "eval"][-1] == 96 - len(broken)
    assert sum("cannot be read and are left out" in ended.err for ended in run.ended) == 1
    again = train(tmp_path / "again", merged(skips, {"data": {"threads": 4}}), workers=2)
    assert_same_run(run, again)
    (evaluated,) = attempt(tmp_path / "run", skips, "--eval-only", "--checkpoint", "none")
    assert evaluated.code == 0 and "on 93 samples" in evaluated.out and "3 samples of data.eval cannot be read" in evaluated.err


def test_whole_batches_of_evaluation_are_skipped(tmp_path: Path) -> None:
    """The last one, which the start of a run tries; but not all of them."""
    files = write_images(tmp_path / "png", *digits())
    files[95].write_bytes(b"")
    skips = settings(image_folder(tmp_path / "png", size=8), data={"on_error": "skip", "eval_batch_size": 5})
    (ended,) = attempt(tmp_path / "run", skips, "--eval-only", "--checkpoint", "none")
    assert ended.code == 0 and "on 95 samples" in ended.out
    for file in files:
        file.write_bytes(b"")
    ended = attempt(tmp_path / "none", skips, "--eval-only", "--checkpoint", "none")
    assert_says(error_message(ended), "data.eval: none of its samples can be read")
