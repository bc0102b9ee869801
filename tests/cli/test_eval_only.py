"""--eval-only and --export: the average of a checkpoint's replicas, with any number of workers, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from folders import contents
from program import Ended, run_workers
from runs import DIGITS_CNN, Run, assert_says, error_message, merged, recipe, train
from tensors import differing, read_safetensors

SETTINGS = recipe(DIGITS_CNN, train={"steps": 9}, data={"batch_size": 20}, parallel={"topology": "ring"},
                  eval={"every_steps": 3, "metrics": ["accuracy", "top5", "perplexity"]},
                  checkpoint={"every_steps": 3})


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four workers, checkpoints and evaluations after steps 3, 6 and 9."""
    return train(tmp_path_factory.mktemp("four"), SETTINGS, workers=4)


def use(folder: Path, recipe: dict, *flags: object, workers: int = 1, **variables: object) -> list[Ended]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "use.yaml").write_text(json.dumps(recipe))
    return run_workers(workers, "--config", folder / "use.yaml", *flags, cwd=folder, **variables)


@pytest.mark.parametrize("step", [3, 6, 9])
@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_same_metrics_as_in_training(workers: int, step: int, four: Run, tmp_path: Path) -> None:
    before = contents(four.folder)
    flags = [] if step == 9 else ["--checkpoint", four.checkpoint(step)]
    ended = use(tmp_path, {**SETTINGS, "output": str(four.folder)}, "--eval-only", *flags, workers=workers)
    assert [e.code for e in ended] == [0] * workers, ended
    assert f"eval at step {step}: average of 4 models" in ended[0].out and "".join(e.err for e in ended) == ""
    after = contents(four.folder)
    tables = {"eval-classes.csv", "eval-confusion.csv"}
    assert set(after) == set(before) | tables
    assert {name for name in after if after[name] != before.get(name)} - tables == {"metrics.jsonl", "report.html"}
    assert after["metrics.jsonl"].startswith(before["metrics.jsonl"])
    added = [json.loads(line) for line in after["metrics.jsonl"][len(before["metrics.jsonl"]):].splitlines()]
    in_training = [line for line in four.lines("eval") if line["step"] == step][0]
    assert len(added) == 1 and set(added[0]) == set(in_training)
    for name, value in in_training.items():
        # Averages in float32 and in float64 differ by a rounding of each weight; a count does not.
        tolerance = 0 if name in ("step", "epoch", "samples", "accuracy", "top5") else 1e-6
        assert added[0][name] == (value if isinstance(value, str) else pytest.approx(value, rel=tolerance)), name


def test_without_metrics_nothing_is_written(four: Run, tmp_path: Path) -> None:
    ended = use(tmp_path, {**SETTINGS, "output": str(tmp_path / "none")}, "--eval-only", "--checkpoint",
                four.checkpoint(9), workers=2)
    assert ended[0].code == 0, ended
    assert {path.name for path in tmp_path.iterdir()} == {"use.yaml"}


def test_model_file_as_it_is(tmp_path: Path) -> None:
    """--checkpoint none: what an evaluation at the start of training says."""
    at_start = merged(SETTINGS, {"eval": {"at_start": True}, "train": {"steps": 1}})
    first = train(tmp_path / "train", at_start, workers=2).lines("eval")[0]
    ended = use(tmp_path, {**SETTINGS, "output": "none"}, "--eval-only", "--checkpoint", "none", workers=3)
    assert_says(ended[0].out, "eval at step 0: model: ", f"accuracy {100 * first['accuracy']:.2f}%", f"loss {first['loss']:.4f}")


def test_no_training_data_is_needed(four: Run, tmp_path: Path) -> None:
    away = merged(SETTINGS, {"data": {"train": {"format": "safetensors", "path": "gone.safetensors"}}})
    ended = use(tmp_path, away, "--eval-only", "--checkpoint", four.checkpoint(9))
    assert ended[0].code == 0, ended


def test_no_checkpoint(tmp_path: Path) -> None:
    for flags in (["--eval-only"], ["--export", "x.pt"]):
        message = error_message(use(tmp_path, {**SETTINGS, "output": "none"}, *flags, workers=2))
        assert_says(message, "there is no checkpoint in 'none/checkpoints'", "--checkpoint DIR", "--checkpoint none")


def test_nothing_to_evaluate_on(four: Run, tmp_path: Path) -> None:
    message = error_message(use(tmp_path, merged(SETTINGS, {"data": {"eval": None}}), "--eval-only", "--checkpoint",
                                four.checkpoint(9)))
    assert_says(message, "--eval-only", "data.eval")


def test_another_model(four: Run, tmp_path: Path) -> None:
    other = {**recipe(), "output": "none"}
    message = error_message(use(tmp_path, other, "--eval-only", "--checkpoint", four.checkpoint(9), workers=2))
    assert_says(message, "the checkpoint of step 9 is of another model")


# ---- --export -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("workers", [1, 3])
def test_exported_weights(workers: int, four: Run, tmp_path: Path) -> None:
    ended = use(tmp_path, {**SETTINGS, "output": str(four.folder)}, "--export", "model.safetensors", workers=workers)
    assert ended[0].code == 0 and "exported 'model.safetensors'" in ended[0].out, ended
    exported, at_end = read_safetensors(tmp_path / "model.safetensors"), four.weights
    assert set(exported) == set(at_end)
    replicas = [read_safetensors(four.checkpoint(9) / f"rank-{rank:04}.safetensors") for rank in range(4)]
    for name, tensor in exported.items():
        stored = [replica.get("model." + name, replica.get("buffer." + name)) for replica in replicas]
        if tensor.dtype == np.float32:
            mean = np.mean([t.astype(np.float64) for t in stored], axis=0).astype(np.float32)
            # One rounding, of sums that may be in another order.
            np.testing.assert_array_max_ulp(tensor, mean, maxulp=1)
            np.testing.assert_allclose(tensor, at_end[name], rtol=1e-6, atol=1e-9)
        else:
            assert np.array_equal(tensor, stored[0])


def test_exported_torchscript_loads(four: Run, tmp_path: Path) -> None:
    import torch

    ended = use(tmp_path, {**SETTINGS, "output": str(four.folder)}, "--export", "out.pt", "--eval-only", workers=2)
    assert ended[0].code == 0 and "eval at step 9" in ended[0].out, ended
    ours = torch.jit.load(str(tmp_path / "out.pt"))
    assert not ours.training
    use(tmp_path, {**SETTINGS, "output": str(four.folder)}, "--export", "out.safetensors")
    weights = read_safetensors(tmp_path / "out.safetensors")
    assert differing({name: tensor.numpy() for name, tensor in ours.state_dict().items()}, weights) == []


def test_export_where_nothing_can_be_written(four: Run, tmp_path: Path) -> None:
    ended = use(tmp_path, {**SETTINGS, "output": str(four.folder)}, "--export", "no/folder/x.pt", workers=2)
    assert {e.code for e in ended} == {6}, ended
    assert_says("".join(e.err for e in ended), "no/folder/x.pt")
    assert not os.path.exists(tmp_path / "no")
