"""The same recipe gives the same bits; evaluation and reading ahead leave no trace in the weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs import DIGITS_CNN, DIGITS_MLP, NO_EVALUATION, assert_same_run, assert_same_weights, recipe, train
from tensors import differing

MODELS = {"cnn_batch_norm": DIGITS_CNN, "mlp_layer_norm": DIGITS_MLP}


# Any two of model, workers and topology meet once.
@pytest.mark.parametrize("name, workers, topology", [
    ("cnn_batch_norm", 2, "ring"), ("cnn_batch_norm", 3, "complete"), ("mlp_layer_norm", 2, "complete"),
    ("mlp_layer_norm", 3, "ring")])
def test_evaluation_changes_nothing(name: str, workers: int, topology: str, tmp_path: Path) -> None:
    def of(evaluation: dict) -> dict:
        return recipe(MODELS[name], parallel={"topology": topology, "bucket_mb": 0.02}, train={"steps": 14},
                      eval=evaluation)

    often = train(tmp_path / "often", of({"every_steps": 3}), workers=workers)
    never = train(tmp_path / "never", of(NO_EVALUATION), workers=workers)
    assert len(often.lines("eval")) == 5 and never.lines("eval") == []
    assert_same_weights(often, never)
    assert list(often.losses) == list(never.losses)


@pytest.mark.parametrize("workers", [1, 3])
def test_two_runs_are_the_same(workers: int, tmp_path: Path) -> None:
    same = recipe(DIGITS_CNN, eval={"every_steps": 5}, parallel={"topology": "ring"})
    first, second = (train(tmp_path / name, same, workers=workers) for name in ("first", "second"))
    assert_same_run(first, second)


# ---- random numbers in the model -----------------------------------------------------------------------------------

def in_order(model_path: Path, data_path: Path, **changes) -> dict:
    """Only the model is random."""
    return recipe(model_path, data_path, data={"shuffle": False}, **changes)


def test_dropout_is_the_same_again(model, data, tmp_path: Path) -> None:
    dropout = in_order(model("dropout"), data("blob"))
    first = train(tmp_path / "first", dropout, workers=2)
    second = train(tmp_path / "second", dropout, workers=2)
    evaluated = train(tmp_path / "evaluated", {**dropout, "eval": {"every_steps": 3}}, workers=2)
    assert_same_run(first, second)
    assert_same_weights(first, evaluated)


def test_dropout_acts(model, data, tmp_path: Path) -> None:
    """Another seed gives another run, but not where nothing in the model is random."""
    for name, same in (("dropout", False), ("mlp", True)):
        runs = [train(tmp_path / f"{name}{seed}", in_order(model(name), data("blob"), seed=seed)) for seed in (0, 1)]
        assert (list(runs[0].losses) == list(runs[1].losses)) == same, name
        assert (differing(runs[0].weights, runs[1].weights) == []) == same, name


# ---- the order of the data -----------------------------------------------------------------------------------------

def test_prefetch_changes_nothing(tmp_path: Path) -> None:
    runs = [train(tmp_path / str(ahead), recipe(data={"prefetch": ahead}, eval={"every_steps": 5}), workers=2)
            for ahead in (0, 1, 4)]
    for other in runs[1:]:
        assert_same_run(runs[0], other)


def test_shuffle(tmp_path: Path) -> None:
    """shuffle and seed act; with shuffle off the seed does not."""
    settings = {"shuffled": (True, 0), "reshuffled": (True, 1), "in order": (False, 0), "still in order": (False, 1)}
    losses = {name: tuple(train(tmp_path / name, recipe(data={"shuffle": shuffle}, seed=seed)).losses)
              for name, (shuffle, seed) in settings.items()}
    assert losses["in order"] == losses["still in order"]
    assert len(set(losses.values())) == 3


def test_every_epoch_has_another_order(model, data, tmp_path: Path) -> None:
    """With a vanishing learning rate, the losses of an epoch depend on its order alone."""
    def losses(shuffle: bool) -> list[list[float]]:
        run = train(tmp_path / str(shuffle),
                    recipe(model("mlp"), data("blob"), data={"shuffle": shuffle, "batch_size": 50},
                           train={"steps": 8}, optimizer={"name": "sgd", "lr": 1e-30}))
        return [list(run.losses[:4]), list(run.losses[4:])]

    first, second = losses(shuffle=False)
    assert first == second
    first, second = losses(shuffle=True)
    assert first != second
    assert sum(first) == pytest.approx(sum(second), rel=1e-6)  # an epoch is all of the data, in any order
