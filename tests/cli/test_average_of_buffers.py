"""The average of buffers: those that are the same on all workers keep their bits, wherever the average is taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from program import run_workers
from runs import Run, merged, recipe, train
from tensors import read_safetensors

CONSTANT = ("lowest", "infinite", "half16", "double64", "wall")
RUNNING = ("norm.running_mean", "norm.running_var")


def settings(model, data) -> dict:
    return recipe(model("masked"), data("blob"), train={"steps": 6}, parallel={"topology": "ring"},
                  eval={"every_steps": 6}, checkpoint={"every_steps": 3})


@pytest.fixture(scope="module", params=[2, 3])
def run(request, model, data, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("run"), settings(model, data), workers=request.param)


def of_the_file(model) -> dict[str, np.ndarray]:
    import torch

    return {name: tensor.numpy() for name, tensor in torch.jit.load(str(model("masked"))).state_dict().items()}


def assert_kept(weights: dict[str, np.ndarray], model) -> None:
    for name in CONSTANT:
        assert weights[name].tobytes() == of_the_file(model)[name].tobytes(), name


def test_masks_are_exported_as_they_are(run: Run, model, data) -> None:
    import torch

    assert_kept(run.weights, model)
    trained = torch.jit.load(str(run.folder / "model.pt"))
    samples = torch.from_numpy(read_safetensors(data("blob"))["x"].copy())
    assert torch.isfinite(trained(samples)).all()
    assert np.isfinite(run.evaluation["loss"])


def test_average_of_a_checkpoint_is_the_same(run: Run, model, tmp_path: Path) -> None:
    config = run.folder.parent / "recipe.yaml"
    ended = run_workers(2, "--config", config, "--export", tmp_path / "x.safetensors", cwd=tmp_path)
    assert [e.code for e in ended] == [0, 0], ended
    exported, at_end = read_safetensors(tmp_path / "x.safetensors"), run.weights
    assert_kept(exported, model)
    replicas = [read_safetensors(run.checkpoint(6) / f"rank-{rank:04}.safetensors") for rank in range(len(run.ended))]
    for name in RUNNING:
        assert exported[name].tobytes() == at_end[name].tobytes()
        # In float64, rounded once; both sums are exact.
        mean = np.mean([replica[f"buffer.{name}"].astype(np.float64) for replica in replicas], axis=0)
        assert exported[name].tobytes() == mean.astype(np.float32).tobytes()
        assert exported[name].tobytes() != replicas[0][f"buffer.{name}"].tobytes()


def test_other_number_of_workers_goes_on_with_the_masks(run: Run, model, data, tmp_path: Path) -> None:
    longer = merged(settings(model, data), {"train": {"steps": 8}})
    again = train(tmp_path, longer, "--resume", run.checkpoint(6), workers=5 - len(run.ended))
    assert_kept(again.weights, model)
