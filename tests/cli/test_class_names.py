"""The numbers of classes come from their names: evaluation must have those of training, by itself too."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from learned_runs import make_old, make_old_run
from program import Ended
from runs import Run, assert_says, attempt, merged, recipe, refused, train

CLASSES = ["ant", "bee", "cat"]


def images(folder: Path, classes: list[str] | list[bytes]) -> dict:
    random = np.random.default_rng(len(classes))
    for name in classes:
        place = Path(str(folder)) / (name if isinstance(name, str) else name.decode("utf-8", "surrogateescape"))
        place.mkdir(parents=True)
        for number in range(12):
            Image.fromarray(random.integers(0, 256, (8, 8), np.uint8)).save(place / f"{number}.png")
    return {"format": "images", "path": str(folder), "channels": 1}


def settings(source: dict, **changes: object) -> dict:
    return merged(recipe(data={"train": source, "batch_size": 12}, train={"steps": 3}, checkpoint={"every_steps": 3}), changes)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("classes")
    run = train(folder / "run", settings(images(folder / "train", CLASSES)))
    assert json.loads((run.folder / "data.json").read_text())["train"]["classes"] == CLASSES
    return run


def evaluate(folder: Path, checkpoint: object, classes: list[str]) -> list[Ended]:
    own = images(folder / "eval", classes)
    return attempt(folder / "eval-only", settings(own, data={"eval": own}), "--eval-only", "--checkpoint", checkpoint)


@pytest.mark.parametrize("classes", [CLASSES, CLASSES[:2], ["ant", "cat"], ["cat"]], ids=["all", "first", "some", "last"])
def test_the_same_numbers(classes: list[str], trained: Run, tmp_path: Path) -> None:
    """A class that the data lacks moves no other; here each counts as many samples as its folder has."""
    ended, = evaluate(tmp_path, trained.checkpoint(3), classes)
    assert (ended.code, ended.err) == (0, "")
    assert_says(ended.out, f"on {12 * len(classes)} samples")
    counts = {words[0].strip("'"): words[1] for words in (line.split() for line in ended.out.splitlines()) if words and words[0].strip("'") in CLASSES}
    assert counts == {name: "12" if name in classes else "0" for name in CLASSES}, ended.out


OTHERS = {
    "another": (["ant", "bee", "cow"], "cow"),
    "more": ([*CLASSES, "dog"], "dog"),
    "in front": (["aardvark", *CLASSES], "aardvark"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_classes(name: str, trained: Run, tmp_path: Path) -> None:
    """Two workers tell it once; in training it is an error too."""
    classes, new = OTHERS[name]
    own = images(tmp_path / "eval", classes)
    says = f"{new}': class '{new}' is not in {{}}, whose classes are ant, bee, cat"
    alone = settings(own, data={"eval": own})
    message = refused(tmp_path / "alone", alone, "--eval-only", "--checkpoint", trained.checkpoint(3), workers=2)
    assert_says(message, "data.eval: ", says.format(f"'{trained.checkpoint(3) / 'data.json'}'"))
    both = settings(images(tmp_path / "train", CLASSES), data={"eval": own})
    assert_says(refused(tmp_path / "run", both), "data.eval: ", says.format("data.train"))


def test_names_that_are_not_known(trained: Run, tmp_path: Path) -> None:
    """A model file as it is, or a checkpoint of an old version away from its run, has nothing to compare with."""
    moved = tmp_path / "moved" / "step-00000003"
    shutil.copytree(trained.checkpoint(3), moved)
    make_old(moved)
    for checkpoint in ("none", moved):
        ended, = evaluate(tmp_path / Path(checkpoint).name, checkpoint, ["bee", "cat"])
        assert (ended.code, ended.err) == (0, "")


def test_a_damaged_list(trained: Run, tmp_path: Path) -> None:
    shutil.copytree(trained.folder, tmp_path / "run")
    make_old_run(tmp_path / "run")
    (tmp_path / "run" / "classes.json").write_text('["ant", 7]')
    own = images(tmp_path / "eval", CLASSES)
    message = refused(tmp_path / "eval-only", settings(own, data={"eval": own}), "--eval-only", "--checkpoint",
                      tmp_path / "run" / "checkpoints" / "step-00000003/")
    assert_says(message, "classes.json': expected the names of classes, a list of strings")


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    """data.json has their bytes as texts; they are the same all the same."""
    own = images(tmp_path / "data", [b"\xe4", b"\xf6"])
    run = train(tmp_path / "run", settings(own, data={"eval": own}))
    ended, = attempt(tmp_path / "run", settings(own, data={"eval": own}), "--eval-only")
    assert (ended.code, ended.err) == (0, ""), run
