"""--predict: what the averaged model says of data.predict, the same as PyTorch on model.pt, on any number of workers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from predictions import FORMATS, metadata_of, outputs_of, predict, predicted, read_predictions, softmax
from program import run_alone
from runs import DIGITS, Run, assert_says, merged, recipe, train
from tensors import same_bits, write_safetensors

BATCH, SAMPLES = 50, 355


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, np.ndarray, dict]:
    """A run of two workers on the digits, the samples of the test part without labels, and a recipe that predicts them."""
    folder = tmp_path_factory.mktemp("digits")
    settings = recipe(data={"batch_size": 16, "eval_batch_size": BATCH}, train={"steps": 30}, checkpoint={"every_steps": 30})
    run = train(folder / "run", settings, workers=2)
    random = np.random.default_rng(2)
    x = random.random((SAMPLES, 1, 8, 8), np.float32)
    write_safetensors(folder / "new.safetensors", {"x": x})
    source = {"format": "safetensors", "path": str(folder / "new.safetensors")}
    return run, x, merged(settings, {"output": str(run.folder), "data": {"predict": source}})


@pytest.mark.parametrize("name", FORMATS)
def test_equals_python_on_any_number_of_workers(name: str, digits: tuple[Run, np.ndarray, dict], tmp_path: Path) -> None:
    run, x, settings = digits
    files = []
    for workers in (1, 2, 3):
        predicted(tmp_path / str(workers), settings, "out" + name, workers=workers)
        files.append((tmp_path / str(workers) / ("out" + name)).read_bytes())
        assert {path.name for path in (tmp_path / str(workers)).iterdir()} == {"predict.yaml", "out" + name}
    assert files[0] == files[1] == files[2]
    found = read_predictions(tmp_path / "1" / ("out" + name))
    wanted = outputs_of(run.folder / "model.pt", x, batch=BATCH)
    # The average is rounded once, and that of the run's end was a sum in float32.
    np.testing.assert_allclose(found["output"], wanted, rtol=1e-5, atol=1e-5)
    assert found["row"].tolist() == list(range(SAMPLES))
    assert found["class"].tolist() == found["output"].argmax(1).tolist()
    np.testing.assert_allclose(found["probability"], softmax(found["output"]).max(1), rtol=1e-6)
    assert "file" not in found and "file_row" not in found and "class_names" not in found


@pytest.mark.parametrize("name", FORMATS)
def test_bit_for_bit(name: str, digits: tuple[Run, np.ndarray, dict], tmp_path: Path) -> None:
    """The model file itself, batches as they are: text keeps every bit, too."""
    _, x, settings = digits
    found = predicted(tmp_path, settings, "out" + name, "--checkpoint", "none")
    wanted = outputs_of(Path(settings["model"]["path"]), x, batch=BATCH)
    assert same_bits(found["output"].astype(np.float32), wanted)


def test_types_of_arrays(digits: tuple[Run, np.ndarray, dict], tmp_path: Path) -> None:
    for name in (".npz", ".safetensors"):
        found = predicted(tmp_path, settings := digits[2], "out" + name)
        assert {key: (array.dtype, array.shape) for key, array in found.items()} == {
            "output": (np.float32, (SAMPLES, 10)), "class": (np.int64, (SAMPLES,)), "probability": (np.float32, (SAMPLES,)),
            "row": (np.int64, (SAMPLES,))}, settings
    assert metadata_of(tmp_path / "out.safetensors") == {}


def test_what_is_said(digits: tuple[Run, np.ndarray, dict], tmp_path: Path) -> None:
    ended, = predict(tmp_path, digits[2], "out.csv")
    assert_says(ended.out, "the average of 2 replicas in", f"predicted {SAMPLES} samples of data.predict: 'out.csv'")
    counts = np.bincount(read_predictions(tmp_path / "out.csv")["class"], minlength=10)
    assert_says(ended.out, ", ".join(f"{count} of class {number}" for number, count in enumerate(counts) if count))
    ended, = predict(tmp_path, digits[2], "out.csv", "--quiet")
    assert (ended.out, ended.err) == ("", "")


def test_an_older_file_is_replaced(digits: tuple[Run, np.ndarray, dict], tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("something else")
    assert len(predicted(tmp_path, digits[2], "out.csv")["row"]) == SAMPLES


def test_with_an_evaluation_and_an_export(digits: tuple[Run, np.ndarray, dict], tmp_path: Path) -> None:
    settings = merged(digits[2], {"output": str(tmp_path / "none")})
    checkpoint = digits[0].checkpoint(30)
    ended = predict(tmp_path, settings, "out.npz", "--eval-only", "--export", "out.pt", "--checkpoint", checkpoint, workers=2)
    assert [e.code for e in ended] == [0, 0], ended
    assert_says(ended[0].out, "eval at step 30", "on 355 samples", f"predicted {SAMPLES} samples", "exported 'out.pt'")
    # Of the exported model itself: the same average, the same batches.
    assert same_bits(read_predictions(tmp_path / "out.npz")["output"], outputs_of(tmp_path / "out.pt", digits[1], batch=BATCH))
    alone = predicted(tmp_path / "alone", settings, "out.npz", "--checkpoint", checkpoint)
    assert same_bits(alone["output"], read_predictions(tmp_path / "out.npz")["output"])


def test_part_of_the_data(digits: tuple[Run, np.ndarray, dict], tmp_path: Path) -> None:
    """limit and holdout: rows count the samples that are left; file_row says which rows of the file they are."""
    _, x, settings = digits
    source = settings["data"]["predict"]
    first = predicted(tmp_path, merged(settings, {"data": {"predict": {**source, "limit": 70}}}))
    assert first["row"].tolist() == list(range(70)) and "file_row" not in first
    held = {**source, "holdout": {"fraction": 0.2, "part": "eval"}}
    part = predicted(tmp_path, merged(settings, {"data": {"predict": held}}), "part.csv", workers=2)
    assert part["row"].tolist() == list(range(71)) and (np.diff(part["file_row"]) > 0).all() and len(part["file_row"]) == 71
    every = predicted(tmp_path, settings)
    np.testing.assert_allclose(part["output"], every["output"][part["file_row"]], rtol=1e-5, atol=1e-6)


def test_more_workers_than_batches(digits: tuple[Run, np.ndarray, dict], tmp_path: Path) -> None:
    few = merged(digits[2], {"data": {"predict": {**digits[2]["data"]["predict"], "limit": 7}}})
    assert predicted(tmp_path, few, "out.jsonl", workers=3)["row"].tolist() == list(range(7))


def test_the_best_checkpoint_and_moving_averages(digits: tuple[Run, np.ndarray, dict], tmp_path: Path) -> None:
    """The weights are those that model-best.pt and model.pt have."""
    _, x, settings = digits
    own = merged(settings, {"optimizer": {"ema": 0.5, "lr": 0.3, "name": "sgd", "momentum": 0.99}, "checkpoint": {"every_steps": 4, "keep_best": "loss"},
                            "eval": {"every_steps": 4}, "train": {"steps": 28}})
    own.pop("output")
    run = train(tmp_path, own)
    assert run.evaluation["loss"] > min(line["loss"] for line in run.lines("eval")), "the last is not the best"
    for choice, model in (("best", "model-best.pt"), ("auto", "model.pt")):
        found = predicted(tmp_path, {**own, "output": str(run.folder)}, "out.npz", "--checkpoint", choice)
        assert same_bits(found["output"], outputs_of(run.folder / model, x, batch=BATCH)), choice


def test_by_workers_of_a_folder_that_holds_the_run(digits: tuple[Run, np.ndarray, dict], tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(json.dumps(digits[2]))
    ended = run_alone("r.yaml", "--workers", "3", "--predict", "out.jsonl", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert_says(ended.out, f"predicted {SAMPLES} samples of data.predict: 'out.jsonl'")


def test_labelled_data_will_do(digits: tuple[Run, np.ndarray, dict], tmp_path: Path) -> None:
    found = predicted(tmp_path, merged(digits[2], {"data": {"predict": DIGITS["test"]}}))
    assert found["output"].shape == (355, 10)


def test_no_training_data_is_needed(digits: tuple[Run, np.ndarray, dict], tmp_path: Path) -> None:
    away = merged(digits[2], {"data": {"train": {"format": "safetensors", "path": "gone.safetensors"}, "eval": None}})
    assert len(predicted(tmp_path, away)["row"]) == SAMPLES
