"""`extends` in recipes: merged as a few lines of Python merge them, and mistakes are named where they are."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from program import ROOT, run_alone
from runs import assert_says

MODEL = ROOT / "models" / "digits_mlp.pt"
DIGITS = {"format": "builtin", "name": "digits"}
# A complete recipe. Paths are absolute, so that they do not depend on the file that has them.
BASE = {"name": "base", "output": "out", "model": {"path": str(MODEL)},
        "data": {"train": {**DIGITS, "split": "train"}, "eval": {**DIGITS, "split": "test", "limit": 20}, "batch_size": 8},
        "train": {"epochs": 3}, "optimizer": {"name": "sgd", "lr": 0.25, "momentum": 0.5},
        "parallel": {"topology": "ring"}, "eval": {"metrics": ["accuracy", "top2"]}}
# Of the keys that the cases set to null, those whose type in docs/recipe.md ends in "or null".
NULL_IS_A_VALUE = {"data.eval", "data.eval.limit", "eval.every_epochs", "train.epochs"}

Recipe = dict[str, object]


def write(folder: Path, name: str, recipe: Mapping[str, object]) -> Path:
    """In JSON, which is YAML."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(recipe))
    return path


def printed(recipe: Path, *flags: object, **variables: object) -> str:
    ended = run_alone("--config", recipe, "--print-config", *flags, cwd=recipe.parent, **variables)
    assert ended.code == 0, ended.err
    return ended.out


def refused(recipe: Path, *flags: object, **variables: object) -> list[str]:
    ended = run_alone("--config", recipe, "--print-config", *flags, cwd=recipe.parent, **variables)
    assert ended.code == 2, ended.out
    return ended.err.replace("decent-train: error: ", "").strip().splitlines()


def merge(base: Recipe, own: Recipe, path: str = "") -> Recipe:
    """The reference."""
    merged = copy.deepcopy(base)
    for key, value in own.items():
        inside = f"{path}{key}"
        if value is None and inside not in NULL_IS_A_VALUE:
            merged.pop(key, None)
        elif isinstance(value, dict):
            below = merged.get(key)
            merged[key] = merge(below if isinstance(below, dict) else {}, value, f"{inside}.")
        else:
            merged[key] = value
    return merged


def resolved(name: str, files: Mapping[str, Recipe]) -> Recipe:
    own = dict(files[name])
    extends = own.pop("extends", None)
    whole: Recipe = {}
    if extends is None:
        return own
    for each in extends if isinstance(extends, list) else [extends]:
        whole = merge(whole, resolved(os.path.normpath(Path(name).parent / each), files))
    return merge(whole, own)


def own(**keys: object) -> dict[str, Recipe]:
    """One recipe on the base."""
    return {"run.yaml": {"extends": "base.yaml", **keys}}


CASES: dict[str, dict[str, Recipe]] = {
    "nothing of its own": own(),
    "a value": own(optimizer={"lr": 0.5}),
    "a value of a new section": own(log={"every_steps": 7}),
    "a new key of a section": own(optimizer={"weight_decay": 0.125}),
    "values of two sections": own(optimizer={"lr": 0.5}, train={"epochs": 9}),
    "a value deep inside": own(data={"train": {"split": "test"}}),
    "a key deep inside": own(data={"train": {"limit": 10}}),
    "a list is replaced": own(eval={"metrics": ["loss"]}),
    "an empty list": own(model={"freeze": []}, eval={"metrics": []}),
    "a list for a value": own(train={"epochs": 1}, optimizer={"betas": [0.5, 0.75], "name": "adamw"}),
    "a mapping for a value": own(parallel={"topology": {"phases": [[{"ranks": [0], "weight": 1}]]}}),
    "a list of mappings": own(optimizer={"param_groups": [{"match": "*bias", "lr_scale": 2}]}),
    "null removes": own(optimizer={"momentum": None}),
    "null removes a section": own(optimizer=None),
    "null removes inside a source": own(data={"eval": {"limit": None}}, model={"loss": None}),
    "null is a value inside a source": own(data={"train": {"limit": 30}, "eval": {"limit": None}}),
    "null removes the name": own(name=None, output=None),
    "null for a key that is not there": own(schedule={"warmup_steps": None}),
    "null for a section that is not there": own(schedule=None, checkpoint=None),
    "null is a value": own(data={"eval": None}),
    "null is a value, not the default": own(eval={"every_epochs": None}),
    "null is a value in place of one": own(train={"epochs": None, "steps": 5}),
    "null and a value in one section": own(optimizer={"momentum": None, "lr": 1}),
    "false and zero replace": own(data={"shuffle": False}, seed=0, optimizer={"momentum": 0}),
    "a text that looks like a number": own(name="5"),
    "a chain": {"run.yaml": {"extends": "middle.yaml", "seed": 3},
                "middle.yaml": {"extends": "base.yaml", "seed": 2, "optimizer": {"momentum": None}}},
    "a long chain": {"run.yaml": {"extends": "c1.yaml"}, **{f"c{i}.yaml": {"extends": f"c{i + 1}.yaml", "train": {"epochs": 20 - i}}
                                                            for i in range(1, 15)}, "c15.yaml": {"extends": "base.yaml", "seed": 4}},
    "a value that was removed comes back": {"run.yaml": {"extends": "middle.yaml", "optimizer": {"momentum": 0.75}},
                                            "middle.yaml": {"extends": "base.yaml", "optimizer": None}},
    "a list of one": {"run.yaml": {"extends": ["base.yaml"], "seed": 1}},
    "an empty list of recipes": {"run.yaml": {**BASE, "extends": []}},
    "later ones win": {"run.yaml": {"extends": ["base.yaml", "a.yaml", "b.yaml"]}, "a.yaml": {"seed": 1, "train": {"epochs": 4}},
                       "b.yaml": {"seed": 2, "log": {"every_steps": 3}}},
    "the recipe wins over all": {"run.yaml": {"extends": ["base.yaml", "a.yaml"], "seed": 9}, "a.yaml": {"seed": 1}},
    "a part removes nothing of others": {"run.yaml": {"extends": ["base.yaml", "b.yaml"]}, "a.yaml": {"optimizer": {"momentum": 0.25}},
                                         "b.yaml": {"extends": "a.yaml", "optimizer": {"momentum": None}}},
    "one recipe twice": {"run.yaml": {"extends": ["a.yaml", "b.yaml"]}, "a.yaml": {"extends": "base.yaml", "seed": 1},
                         "b.yaml": {"extends": "base.yaml", "log": {"every_steps": 2}}},
    "folders": {"run.yaml": {"extends": "parts/a.yaml"}, "parts/a.yaml": {"extends": ["../base.yaml", "more/b.yaml"], "seed": 1},
                "parts/more/b.yaml": {"train": {"epochs": 2}}},
    "a section that is a value below": {"run.yaml": {"extends": ["base.yaml", "a.yaml"], "parallel": {"topology": "complete"}},
                                        "a.yaml": {"parallel": {"topology": {"phases": [[{"ranks": [0], "weight": 1}]]}}}},
}


# What is printed for these is what is printed for the base; a program that ignored the recipe would be found by all others.
SAME_AS_THE_BASE = {"nothing of its own", "null for a key that is not there", "null for a section that is not there",
                    "an empty list of recipes", "a part removes nothing of others"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return printed(write(tmp_path_factory.mktemp("base"), "base.yaml", BASE))


@pytest.mark.parametrize("case", CASES)
def test_merges_as_the_reference(tmp_path: Path, base: str, case: str) -> None:
    files = {"base.yaml": BASE, **CASES[case]}
    for name, recipe in files.items():
        write(tmp_path / "written", name, recipe)
    whole = printed(write(tmp_path / "whole", "run.yaml", resolved("run.yaml", files)))
    # The default of `output` is relative to the working folder, and so the same.
    assert printed(tmp_path / "written" / "run.yaml") == whole
    assert (whole == base) == (case in SAME_AS_THE_BASE)


def test_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    write(tmp_path, "base/base.yaml", {**BASE, "model": {"path": "m.pt"}})
    write(tmp_path, "run.yaml", {"extends": "base/base.yaml", "model": {"weights": "w.safetensors"},
                                 "data": {"train": {"format": "npz", "path": ["a.npz", "../b.npz"], "name": None, "split": None}}})
    out = printed(tmp_path / "run.yaml")
    assert f"path: {tmp_path}/base/m.pt" in out
    assert f"weights: {tmp_path}/w.safetensors" in out
    assert f"{tmp_path}/a.npz, {tmp_path.parent}/b.npz" in out


def test_variables_in_its_paths(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/base.yaml", BASE)
    recipe = write(tmp_path, "run.yaml", {"extends": "${BASES:-nowhere}/base.yaml", "seed": 5})
    assert "seed: 5" in printed(recipe, BASES=tmp_path / "elsewhere")
    assert refused(recipe) == [f"{recipe}:1:13: extends: '{tmp_path}/nowhere/base.yaml' does not exist"]


def test_set_comes_last(tmp_path: Path) -> None:
    write(tmp_path, "base.yaml", BASE)
    recipe = write(tmp_path, "run.yaml", {"extends": "base.yaml", "optimizer": {"lr": 0.5}})
    out = printed(recipe, "--set", "optimizer.lr=0.125", "--set", "eval.every_epochs=null")
    assert "lr: 0.125" in out and "extends" not in out


def test_trains_and_resumes_from_another_spelling(tmp_path: Path) -> None:
    """A resume compares what the recipes say, wherever it stands."""
    write(tmp_path, "base.yaml", BASE)
    recipe = write(tmp_path, "run.yaml", {"extends": "base.yaml", "output": str(tmp_path / "run"), "data": {"eval": None},
                                          "train": {"epochs": None, "steps": 4}, "checkpoint": {"every_steps": 2}})
    ended = run_alone("--config", recipe)
    assert ended.code == 0, ended.err
    assert "extends" not in (tmp_path / "run" / "recipe.yaml").read_text()
    flat = write(tmp_path, "flat.yaml", {**resolved("run.yaml", {"base.yaml": BASE, "run.yaml": json.loads(recipe.read_text())}),
                                         "train": {"steps": 6}})
    again = run_alone("--config", flat, "--resume", "auto")
    assert again.code == 0, again.err
    assert [path.name for path in sorted((tmp_path / "run" / "checkpoints").iterdir())][-1] == "step-00000006"
    other = run_alone("--config", recipe, "--resume", "auto", "--set", "optimizer.name=adamw")
    assert other.code == 2
    assert_says(other.err, "optimizer.name")


def test_a_recipe_that_is_extended_is_never_written_over(tmp_path: Path) -> None:
    base = write(tmp_path, "run/recipe.yaml", BASE)
    recipe = write(tmp_path, "mine.yaml", {"extends": "run/recipe.yaml", "output": str(tmp_path / "run")})
    before = base.read_bytes()
    ended = run_alone("--config", recipe)
    assert ended.code == 2
    assert_says(ended.err, "a recipe that is extended", str(base))
    assert base.read_bytes() == before


# Texts of files, and what is said: each line is a file, its line and column, and a part of the message.
MISTAKES: dict[str, tuple[dict[str, str], list[tuple[str, str, str]]]] = {
    "a typing error in the base": ({"base.yaml": "optimizer:\n  lrr: 1\n"}, [("base.yaml", "2:3", "optimizer.lrr: unknown key; did you mean 'lr'?")]),
    "a wrong type in the base": ({"base.yaml": "seed: 1\ntrain: {epochs: many}\n"}, [("base.yaml", "2:17", "train.epochs: expected an integer")]),
    "out of range in the base": ({"base.yaml": "optimizer:\n  name: sgd\n  lr: -1\n"}, [("base.yaml", "3:7", "optimizer.lr")]),
    "in two files": ({"base.yaml": "seed: x\n", "run.yaml": "extends: base.yaml\nnam: x\n{BASE}"},
                     [("run.yaml", "2:1", "nam: unknown key; did you mean 'name'?"), ("base.yaml", "1:7", "seed: expected an integer")]),
    "in three files": ({"base.yaml": "extends: more.yaml\nseed: x\n", "more.yaml": "\ntrain: {epoch: 1}\n", "run.yaml": "extends: base.yaml\nnam: x\n{BASE}"},
                       [("run.yaml", "2:1", "nam: unknown key"), ("base.yaml", "2:7", "seed"), ("more.yaml", "2:9", "train.epoch: unknown key")]),
    "a value that is replaced is not looked at": ({"base.yaml": "seed: x\n", "run.yaml": "extends: base.yaml\nseed: y\n{BASE}"},
                                                  [("run.yaml", "2:7", "seed: expected an integer")]),
    "twice in the base": ({"base.yaml": "seed: 1\nseed: 2\n"}, [("base.yaml", "2:1", "seed: duplicate key")]),
    "twice in the recipe": ({"base.yaml": "seed: 1\n", "run.yaml": "extends: base.yaml\nseed: 2\nseed: 3\n{BASE}"}, [("run.yaml", "3:1", "seed: duplicate key")]),
    "twice extends": ({"base.yaml": "seed: 1\n", "run.yaml": "extends: base.yaml\nextends: base.yaml\n{BASE}"}, [("run.yaml", "2:1", "extends: duplicate key")]),
    "no YAML": ({"base.yaml": "seed: 1\nname: [1,\n"}, [("base.yaml", "", "not valid YAML")]),
    "an empty base": ({"base.yaml": "# nothing\n"}, [("base.yaml", "1:1", "the recipe is empty")]),
    "a list as base": ({"base.yaml": "- 1\n"}, [("base.yaml", "1:1", "expected a recipe (sections such as model and data), got [1]")]),
    "not there": ({"bases.yaml": "seed: 1\n"}, [("run.yaml", "1:10", "extends: '{folder}/base.yaml' does not exist; did you mean 'bases.yaml'?")]),
    "a folder": ({"base.yaml/x": ""}, [("run.yaml", "1:10", "extends: '{folder}/base.yaml' is no file")]),
    "itself": ({"run.yaml": "extends: run.yaml\n{BASE}"}, [("run.yaml", "1:10", "extends: recipes extend one another in a circle")]),
    "a circle": ({"base.yaml": "extends: more.yaml\n", "more.yaml": "seed: 1\nextends: ./base.yaml\n"},
                 [("more.yaml", "2:10", "extends: recipes extend one another in a circle: {folder}/base.yaml -> {folder}/more.yaml -> ")]),
    "too deep": ({"base.yaml": "extends: c1.yaml\n", **{f"c{i}.yaml": f"extends: c{i + 1}.yaml\n" for i in range(1, 17)}, "c17.yaml": "seed: 1\n"},
                 [("c15.yaml", "1:10", "extends: recipes extend one another more than 16 deep")]),
    "too many": ({"base.yaml": "seed: 1\n", "run.yaml": "extends: [" + "base.yaml, " * 65 + "]\n{BASE}"},
                 [("run.yaml", "1:715", "extends: the recipe reads more than 64 others")]),
    "a number": ({"base.yaml": "", "run.yaml": "extends: {a: b}\n{BASE}"}, [("run.yaml", "1:10", "extends: expected a path or a list of paths, got a mapping")]),
    "nothing": ({"run.yaml": "extends:\n{BASE}"}, [("run.yaml", "1:1", "extends: expected a path or a list of paths, got null")]),
    "a variable that is not set": ({"run.yaml": "extends: ${NO_SUCH}.yaml\n{BASE}"}, [("run.yaml", "1:10", "extends: environment variable NO_SUCH is not set")]),
    "a variable in the base": ({"base.yaml": "name: '${NO_SUCH}'\n"}, [("base.yaml", "1:7", "name: environment variable NO_SUCH is not set")]),
    "null for a key that is none": ({"base.yaml": "seed: 1\n", "run.yaml": "extends: base.yaml\noptimizer:\n  lrr: null\n{BASE}"},
                                    [("run.yaml", "3:3", "optimizer.lrr: unknown key; did you mean 'lr'?")]),
    "a required key removed": ({"base.yaml": "seed: 1\n", "run.yaml": "extends: [base.yaml, whole.yaml]\nmodel:\n  path: null\n"}, [("run.yaml", "2:1", "model.path: missing")]),
    "in a section": ({"base.yaml": "train:\n  extends: x.yaml\n"}, [("base.yaml", "2:3", "train.extends: unknown key; 'extends: FILE' at the top of a recipe's file")]),
    "another program's name": ({"base.yaml": "_base_: x.yaml\n"}, [("base.yaml", "1:1", "_base_: unknown key; 'extends: FILE' at the top of a recipe's file")]),
}
FLAT_BASE = f"model: {{path: {MODEL}}}\ndata: {{train: {{format: builtin, name: digits, split: train}}}}\n"


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_named_where_they_are(tmp_path: Path, case: str) -> None:
    texts, expected = MISTAKES[case]
    for name, text in {"run.yaml": "extends: base.yaml\n{BASE}", "whole.yaml": "{BASE}", **texts}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text.replace("{BASE}", FLAT_BASE))
    said = refused(tmp_path / "run.yaml")
    if len(expected) > 1:
        assert said.pop(0) == f"{len(expected)} mistakes in {tmp_path}/run.yaml and recipes that it extends:"
    assert len(said) == len(expected), said
    for line, (file, place, text) in zip(said, expected):
        assert line.startswith(f"{tmp_path}/{file}:{place}"), line
        assert text.replace("{folder}", str(tmp_path)) in line, line


def test_set_does_not_extend(tmp_path: Path) -> None:
    recipe = write(tmp_path, "run.yaml", BASE)
    said = refused(recipe, "--set", "extends=base.yaml")
    assert said == ["--set extends=base.yaml: extends: unknown key; 'extends: FILE' at the top of a recipe's file builds on another "
                    "recipe; --set KEY=VALUE changes a recipe for one run"]


def test_a_base_that_may_not_be_read(tmp_path: Path) -> None:
    """A device, which would never end, and a FIFO, which nobody writes to."""
    os.mkfifo(tmp_path / "pipe.yaml")
    for name in ("/dev/zero", "pipe.yaml"):
        recipe = write(tmp_path, "run.yaml", {"extends": name})
        said, = refused(recipe)
        assert said.endswith("is no file")
