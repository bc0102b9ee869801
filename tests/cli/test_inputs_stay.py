"""No output is the same file as an input: exit 2 before anything is written, however the path is spelled."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from program import ROOT, Ended, run_workers
from runs import DIGITS_MLP, NO_CHECKPOINTS, NO_EVALUATION, Run, assert_says, error_message, merged, recipe, train

SETTINGS = {"data": {"batch_size": 8}, "train": {"steps": 3}, "schedule": {"name": "constant"}, "eval": NO_EVALUATION,
            "checkpoint": NO_CHECKPOINTS}


def contents(folder: Path) -> dict[str, object]:
    """What stands in a folder: bytes of files, targets of links."""
    return {str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else
            path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@pytest.fixture
def project(data, tmp_path: Path) -> Path:
    """A folder in which a user keeps everything: my.yaml, model.pt, weights.safetensors, d.safetensors and shards/."""
    folder = tmp_path / "project"
    (folder / "shards").mkdir(parents=True)
    shutil.copy(DIGITS_MLP, folder / "model.pt")
    for name in ("d", "shards/0", "shards/1"):
        shutil.copy(data("blob"), folder / f"{name}.safetensors")
    write(folder)
    return folder


def write(folder: Path, name: str = "my.yaml", **changes: dict) -> None:
    """A recipe in that folder. Its data is not for its model: nothing comes to reading it."""
    base = {"model": {"path": "model.pt"}, "data": {"train": {"format": "safetensors", "path": "d.safetensors"}}}
    (folder / name).write_text(json.dumps(merged(merged(base, SETTINGS), changes)))


def start(folder: Path, *flags: object, config: str = "my.yaml", workers: int = 1) -> list[Ended]:
    return run_workers(workers, "--config", config, *flags, cwd=folder)


def refused(folder: Path, *flags: object, config: str = "my.yaml", workers: int = 1) -> str:
    """The message; the folder around it is as it was."""
    before = contents(folder.parent)
    message = error_message(start(folder, *flags, config=config, workers=workers))
    assert contents(folder.parent) == before, message
    assert_says(message, "never written over")
    return message


# ---- --export ------------------------------------------------------------------------------------------------------

EXPORT = ("--checkpoint", "none", "--export")


@pytest.mark.parametrize("path", ["model.pt", "./model.pt", "shards/../model.pt", "new/../model.pt",
                                  "../project/model.pt"])
def test_export_over_the_model(path: str, project: Path) -> None:
    assert_says(refused(project, *EXPORT, path), "--export", path, "model.path", project / "model.pt", "another name")


@pytest.mark.parametrize("workers", [1, 3])
def test_export_by_an_absolute_path(workers: int, project: Path) -> None:
    assert_says(refused(project, *EXPORT, project / "model.pt", workers=workers), "model.path")


LINKS: dict[str, Callable[[Path], str]] = {
    "symlink": lambda folder: (folder / "out.pt").symlink_to("model.pt") or "out.pt",
    "hard link": lambda folder: (folder / "out.pt").hardlink_to(folder / "model.pt") or "out.pt",
    "folder symlink": lambda folder: (folder / "linked").symlink_to(".") or "linked/model.pt",
    "model is a link": lambda folder: ((folder / "model.pt").rename(folder / "real.pt")
                                       and (folder / "model.pt").symlink_to("real.pt")) or "real.pt",
}


@pytest.mark.parametrize("kind", LINKS)
def test_export_through_a_link(kind: str, project: Path) -> None:
    path = LINKS[kind](project)
    assert_says(refused(project, *EXPORT, path), "--export", path, "model.path")


@pytest.mark.parametrize(("source", "path"), [
    ({"path": "d.safetensors"}, "d.safetensors"),
    ({"path": ["shards/1.safetensors", "d.safetensors"]}, "shards/1.safetensors"),
    ({"path": "shards/*.safetensors"}, "shards/0.safetensors"),
])
@pytest.mark.parametrize("section", ["train", "eval"])
def test_export_over_data(section: str, source: dict, path: str, project: Path) -> None:
    other = {"format": "builtin", "name": "digits", "split": "train"}
    write(project, data={"train": other, "eval": other, section: {"format": "safetensors", **source}})
    assert_says(refused(project, *EXPORT, path), path, f"data.{section}", project / path)


def test_export_over_weights(project: Path) -> None:
    write(project, model={"weights": "w.safetensors"})
    shutil.copy(project / "d.safetensors", project / "w.safetensors")
    assert_says(refused(project, *EXPORT, "w.safetensors"), "model.weights")


def test_export_over_the_recipe(project: Path) -> None:
    (project / "my.yaml").rename(project / "my.pt")
    assert_says(refused(project, *EXPORT, "my.pt", config="my.pt"), "the recipe (--config)")


def test_readmes_two_examples_in_one_folder(project: Path) -> None:
    """Train with path: model.pt, then export the average beside it under a name of its own."""
    write(project, data={"train": {"format": "builtin", "name": "digits", "split": "train"}},
          checkpoint={"every_steps": 3})
    before = (project / "model.pt").read_bytes()
    assert [e.code for e in start(project)] == [0]
    assert_says(refused(project, "--export", "model.pt"), "model.path")
    assert [e.code for e in start(project, "--export", "trained.pt")] == [0]
    assert (project / "trained.pt").exists() and (project / "model.pt").read_bytes() == before


# ---- checkpoints ---------------------------------------------------------------------------------------------------

@pytest.fixture
def run(tmp_path: Path) -> Run:
    return train(tmp_path / "of", recipe(train={"steps": 3}, checkpoint={"every_steps": 3}))


@pytest.mark.parametrize("name", ["rank-0000.safetensors", "new.safetensors", "../../checkpoints/step-00000003/x.pt"])
def test_export_into_the_checkpoint(name: str, run: Run) -> None:
    folder = run.folder.parent
    path = run.checkpoint(3) / name
    assert_says(refused(folder, "--export", path, config="recipe.yaml"), "--export", "checkpoints")
    flags = ("--checkpoint", run.checkpoint(3), "--set", "output=elsewhere", "--export", path)
    assert_says(refused(folder, *flags, config="recipe.yaml"), "the checkpoint", run.checkpoint(3))


def test_export_over_a_link_to_a_replica(run: Run) -> None:
    path = run.folder.parent / "mine.safetensors"
    path.hardlink_to(run.checkpoint(3) / "rank-0000.safetensors")
    assert_says(refused(run.folder.parent, "--export", path, config="recipe.yaml"), path, "checkpoints")


def test_weights_out_of_a_checkpoint_of_the_output_folder(run: Run) -> None:
    """Old checkpoints are removed, later ones set aside."""
    weights = run.checkpoint(3) / "rank-0000.safetensors"
    message = refused(run.folder.parent, "--resume", "auto", "--set", f"model.weights={weights}", config="recipe.yaml")
    assert_says(message, run.folder / "checkpoints", "model.weights", "--set output=")


# ---- the output folder ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("flags", [[], ["--dry-run"], ["--resume", "auto"]])
@pytest.mark.parametrize("workers", [1, 3])
def test_output_beside_the_model(workers: int, flags: list[str], project: Path) -> None:
    message = refused(project, "--set", "output=.", *flags, workers=workers)
    assert_says(message, "output '.'", "model.pt", "model.path", "--set output=")


@pytest.mark.parametrize("output", ["../project", "new/..", "linked", "linked/new/.."])
def test_output_beside_the_model_spelled_otherwise(output: str, project: Path) -> None:
    (project / "linked").symlink_to(".")
    assert_says(refused(project, "--set", f"output={output}"), "model.path")


@pytest.mark.parametrize("kind", ["symlink_to", "hardlink_to"])
@pytest.mark.parametrize("name", ["metrics.jsonl", "data.json", "run.log", "model.safetensors", "trace-rank-0000.json"])
def test_link_in_the_output_folder(name: str, kind: str, project: Path) -> None:
    """The log is added to through a symbolic link."""
    (project / "out").mkdir()
    getattr(project / "out" / name, kind)(project / "d.safetensors")
    message = refused(project, "--set", "output=out", "--set", "log.trace=[1, 2]", "--resume", "auto")
    assert_says(message, f"out/{name}", "data.train")


@pytest.mark.parametrize(("name", "section"), [("model.safetensors", "data"), (".lock", "model")])
def test_other_inputs_in_the_output_folder(name: str, section: str, project: Path) -> None:
    (project / "out").mkdir()
    shutil.copy(project / "model.pt", project / "out" / name)
    path = f"out/{name}"
    write(project, **({"model": {"path": path}} if section == "model" else
                      {"data": {"train": {"format": "safetensors", "path": path}}}))
    assert_says(refused(project, "--set", "output=out"), name, f"{section}.")


def test_models_that_a_run_may_leave(project: Path) -> None:
    """Only the run that would write it is refused."""
    for name in ("model-best.safetensors", "model.onnx"):
        (project / "out").mkdir(exist_ok=True)
        shutil.copy(project / "d.safetensors", project / "out" / name)
    write(project, model={"weights": "out/model-best.safetensors"}, data={"eval": {"format": "safetensors", "path": "d.safetensors"}})
    best = ("--set", "output=out", "--set", "checkpoint.every_steps=1", "--set", "eval.every_steps=1", "--set", "checkpoint.keep_best=loss")
    assert_says(refused(project, *best), "out/model-best.safetensors", "model.weights")
    for flags in (("--set", "output=out"), (*best[:-1], "checkpoint.keep_best=null")):
        assert "never written over" not in start(project, *flags)[0].err
    shutil.copy(DIGITS_MLP, project / "out" / "model.onnx")
    write(project, "other.yaml", model={"path": "out/model.onnx"})
    assert_says(refused(project, "--set", "output=out", config="other.yaml"), "out/model.onnx", "model.path")


@pytest.mark.parametrize("flags", [[], ["--resume", "auto"], ["--dry-run"]])
def test_recipe_of_the_run_itself(flags: list[str], run: Run) -> None:
    """A run writes its resolved recipe."""
    message = refused(run.folder, *flags, config="recipe.yaml")
    assert_says(message, "the recipe (--config)", "recipe.yaml", "copy the recipe", "--set output=")


def test_recipe_of_a_run_may_be_read(run: Run) -> None:
    """Only its metrics are added to, and the exported file is a new one."""
    recipe_before = (run.folder / "recipe.yaml").read_bytes()
    ended = start(run.folder, "--eval-only", "--export", "trained.safetensors", config="recipe.yaml")
    assert ended[0].code == 0, ended
    assert (run.folder / "recipe.yaml").read_bytes() == recipe_before and len(run.lines("eval")) == 1
    again = start(run.folder, "--set", "output=again", config="recipe.yaml")
    assert again[0].code == 0, again


def test_metrics_that_an_evaluation_adds_to(run: Run) -> None:
    """Whatever the file is called."""
    recipe_text = (run.folder / "recipe.yaml").read_text()
    (run.folder / "metrics.jsonl").write_text(recipe_text)
    message = refused(run.folder, "--eval-only", config="metrics.jsonl")
    assert_says(message, "metrics.jsonl", "the recipe (--config)")


# ---- ONNX ----------------------------------------------------------------------------------------------------------

@pytest.fixture
def external(project: Path) -> Path:
    """project with net.onnx, whose weights are in net.onnx.data."""
    import onnx

    model = onnx.load(ROOT / "models" / "digits_cnn.onnx")
    onnx.save_model(model, project / "net.onnx", save_as_external_data=True, location="net.onnx.data", size_threshold=0)
    write(project, model={"path": "net.onnx"},
          data={"train": {"format": "builtin", "name": "digits", "split": "train"}})
    return project


def test_export_over_external_data(external: Path) -> None:
    assert_says(refused(external, *EXPORT, "./net.onnx"), "model.path")
    (external / "x.pt").hardlink_to(external / "my.yaml")  # the data itself may not have a second name
    assert_says(refused(external, *EXPORT, "x.pt"), "the recipe (--config)")
    (external / "x.safetensors").symlink_to("net.onnx.data")
    assert_says(refused(external, *EXPORT, "x.safetensors"), "external data", "net.onnx.data")


def test_external_data_of_an_export(external: Path) -> None:
    """It takes a name that nothing else has."""
    shutil.copy(external / "d.safetensors", external / "new.onnx.data")
    before = (external / "new.onnx.data").read_bytes()
    assert [e.code for e in start(external, *EXPORT, "new.onnx")] == [0]
    assert (external / "new.onnx.data").read_bytes() == before and (external / "new.onnx.2.data").exists()
