"""--export FILE.pt2 and what a run leaves: the original archive with trained weights."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export.pt2_archive._package import load_pt2, package_pt2

from exported import evaluate, example, export, program_of, settings
from networks import Bert, Cnn, Gpt, images, next_words, vectors, words
from program import run_alone
from runs import Run, train, write_recipe

FIXTURES = Path(__file__).resolve().parent / "fixtures"


def export_with(config: Path, file: Path, *flags: object) -> Path:
    ended = run_alone("--config", config, "--export", file, *flags, cwd=config.parent)
    assert ended.code == 0, ended.err + ended.out
    return file


def assert_holds(state: dict[str, Tensor], run: Run) -> None:
    """All that the run's weights are, bit for bit."""
    assert set(state) == set(run.weights)
    for name, tensor in state.items():
        np.testing.assert_array_equal(tensor.detach().numpy(), run.weights[name], err_msg=name)


@pytest.mark.parametrize("name", ["cnn", "gpt", "bert"])
def test_python_loads_what_was_trained(name: str, tmp_path: Path) -> None:
    model, data = {"cnn": (Cnn(), images(16)), "gpt": (Gpt(), next_words()), "bert": (Bert(), words())}[name]
    run = train(tmp_path, settings(export(model, data, tmp_path), data, steps=6, checkpoint={"every_steps": 6}))
    file = export_with(tmp_path / "recipe.yaml", tmp_path / "trained.pt2")
    assert file.read_bytes() == (run.folder / "model.pt2").read_bytes()
    program = torch.export.load(file)
    assert_holds(dict(program.state_dict), run)

    class Loaded(nn.Module):
        """train() and eval() are not for exported programs."""

        def train(self, mode: bool = True) -> Loaded:
            return self

        def forward(self, x: Tensor) -> Tensor:
            return program.module()(x)

    np.testing.assert_allclose(evaluate(Loaded(), data), run.evaluation["loss"], rtol=1e-6)


def test_tied_weights_stay_tied(tmp_path: Path) -> None:
    data = next_words()
    run = train(tmp_path, settings(export(Gpt().train(), data, tmp_path), data, steps=3))
    state = torch.export.load(run.folder / "model.pt2").state_dict
    torch.testing.assert_close(state["head.weight"], state["tokens.weight"], rtol=0, atol=0)


def test_everything_else_is_copied(tmp_path: Path) -> None:
    data = words()
    file = export(Bert().train(), data, tmp_path)
    run = train(tmp_path, settings(file, data, steps=3))
    before, after = zipfile.ZipFile(file), zipfile.ZipFile(run.folder / "model.pt2")
    assert sorted([*before.namelist(), "model/extra/decent_train.data.json"]) == sorted(after.namelist())
    changed = {name for name in before.namelist() if before.read(name) != after.read(name)}
    assert changed - {"model/models/model.json"} and all(
        "/data/weights/weight_" in name for name in changed - {"model/models/model.json"})


def test_an_untrained_export_is_the_file(tmp_path: Path) -> None:
    data = images(16)
    file = export(Cnn().train(), data, tmp_path)
    run = train(tmp_path, settings(file, data, steps=3, model={"export_mode": "train"}))
    copy = export_with(tmp_path / "recipe.yaml", tmp_path / "copy.pt2", "--checkpoint", "none")
    assert copy.read_bytes() == file.read_bytes()
    assert run.folder.is_dir()


def test_both_programs_of_a_package_are_trained(tmp_path: Path) -> None:
    model, data = Cnn(), images(16)
    programs = {mode: program_of(model.train(mode == "train"), example(data)) for mode in ("train", "eval")}
    package_pt2(tmp_path / "model.pt2", exported_programs=programs)
    run = train(tmp_path, settings(tmp_path / "model.pt2", data, steps=3))
    written = load_pt2(str(run.folder / "model.pt2")).exported_programs
    assert set(written) == set(programs)
    for program in written.values():
        assert_holds(dict(program.state_dict), run)


def test_the_best_model_is_written_too(tmp_path: Path) -> None:
    data = vectors()
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    run = train(tmp_path, settings(export(model, data, tmp_path), data, steps=4, eval={"every_steps": 2},
                                   checkpoint={"every_steps": 2, "keep_best": "loss"}))
    best = torch.export.load(run.folder / "model-best.pt2")
    assert set(best.state_dict) == set(run.weights)


def test_other_models_are_not_written_as_pt2(tmp_path: Path) -> None:
    data = vectors()
    torch.jit.script(nn.Linear(8, 4)).save(str(tmp_path / "model.pt"))
    write_recipe(tmp_path, settings(tmp_path / "model.pt", data))
    ended = run_alone("--config", tmp_path / "recipe.yaml", "--checkpoint", "none", "--export", tmp_path / "x.pt2",
                      cwd=tmp_path)
    assert ended.code == 2 and "did not come from a .pt2 file" in ended.err


@pytest.mark.parametrize("version", ["2_11", "2_15"])
def test_archives_of_other_versions_train(version: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    data = {"x": rng.standard_normal((2, 3)).astype(np.float32), "y": rng.integers(0, 2, 2)}
    source = FIXTURES / f"package_{version}.pt2"
    (tmp_path / "model.pt2").write_bytes(source.read_bytes())
    changes = {"data": {"batch_size": 2, "eval_batch_size": 2}}
    run = train(tmp_path, settings(tmp_path / "model.pt2", data, steps=3, **changes))
    assert np.isfinite(run.losses).all()
    if version == "2_11":  # the installed one
        for program in load_pt2(str(run.folder / "model.pt2")).exported_programs.values():
            assert_holds(dict(program.state_dict), run)
