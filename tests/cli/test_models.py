"""Which models train, and that they train right: against plain PyTorch, step by step (plain.py).

Refused models: test_models_refused.py. Larger comparisons, topologies and schedules: tests/parity.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from runs import NO_EVALUATION, Run, merged, recipe, train
from tensors import differing

SGD = {"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}
NESTEROV = {**SGD, "nesterov": True}
ADAM = {"name": "adam", "lr": 0.01, "betas": [0.8, 0.99], "weight_decay": 0.01}
ADAMW = {"name": "adamw", "lr": 0.01, "weight_decay": 0.1}

# Fused updates and sums in another order differ by rounding: seen over these 12 steps up to 2.2e-7 of a loss in float32
# and 5e-16 in float64. A slight mistake (decay on biases) moves one by more than 1e-3.
FLOAT32 = 1e-6
FLOAT64 = 1e-13


def in_order(model_file: Path, data_file: Path, **changes) -> dict:
    """Without shuffling, and evaluated at the end."""
    return merged(recipe(model_file, data_file, data={"shuffle": False}, eval={"every_steps": 100}), changes)


def assert_agrees(run: Run, reference, tolerance: float) -> None:
    """Losses, the averaged model and the workers' distance from it."""
    np.testing.assert_allclose(run.losses, reference.losses, rtol=tolerance)
    assert run.losses[0] != run.losses[-1]
    weights = run.weights
    assert set(weights) == set(reference.state)
    for name, expected in reference.state.items():
        assert weights[name].dtype == expected.dtype, name
        scale = np.abs(expected).max()
        np.testing.assert_allclose(weights[name], expected, rtol=0, atol=10 * tolerance * scale, err_msg=name)
    distances = [line["consensus_distance"] for line in run.lines("eval")]
    assert distances and distances == pytest.approx([reference.distance] * len(distances), rel=100 * tolerance, abs=1e-12)


def start(path: Path) -> dict[str, np.ndarray]:
    import torch

    return {name: tensor.detach().numpy() for name, tensor in torch.jit.load(str(path)).state_dict().items()}


@pytest.fixture(scope="session")
def plain():
    import plain

    return plain


# ---- one worker against a PyTorch loop -----------------------------------------------------------------------------

@pytest.mark.parametrize("optimizer", [SGD, NESTEROV, ADAM, ADAMW], ids=["sgd", "nesterov", "adam", "adamw"])
@pytest.mark.parametrize("bits", [32, 64])
def test_optimizers(bits: int, optimizer: dict, model, data, zoo, plain, tmp_path: Path) -> None:
    suffix, tolerance = ("", FLOAT32) if bits == 32 else ("64", FLOAT64)
    file = model("mlp" + suffix)
    run = train(tmp_path, in_order(file, data("blob" + suffix), optimizer=optimizer, parallel={"bucket_mb": 0.0003}))
    reference = plain.train(file, zoo.make_data("blob" + suffix), optimizer)
    assert_agrees(run, reference, tolerance)
    assert reference.losses[-1] < reference.losses[0]


def test_regression(model, data, zoo, plain, tmp_path: Path) -> None:
    file = model("regressor")
    run = train(tmp_path, in_order(file, data("targets"), model={"loss": "mse"}, optimizer=ADAMW))
    assert_agrees(run, plain.train(file, zoo.make_data("targets"), ADAMW, loss="mse"), FLOAT32)


def test_second_epoch(model, data, zoo, plain, tmp_path: Path) -> None:
    """200 samples are 6 batches of 32; the 8 left over are dropped."""
    file = model("mlp64")
    settings = in_order(file, data("blob64"), optimizer=SGD)
    settings["data"]["batch_size"] = 32
    run = train(tmp_path, settings)
    assert [line["epoch"] for line in run.lines("train")] == [step / 6 for step in range(1, 13)]
    assert_agrees(run, plain.train(file, zoo.make_data("blob64"), SGD, batch_size=32), FLOAT64)


# ---- tied, frozen and unused parameters ----------------------------------------------------------------------------

@pytest.mark.parametrize("optimizer", [SGD, ADAMW], ids=["sgd", "adamw"])
@pytest.mark.parametrize("bits", [32, 64])
def test_tied_weights(bits: int, optimizer: dict, model, data, zoo, plain, tmp_path: Path) -> None:
    """One parameter under two names: one update with the sum of both gradients."""
    suffix, tolerance = ("", FLOAT32) if bits == 32 else ("64", FLOAT64)
    file = model("tied" + suffix)
    run = train(tmp_path, in_order(file, data("blob" + suffix), optimizer=optimizer))
    assert_agrees(run, plain.train(file, zoo.make_data("blob" + suffix), optimizer), tolerance)
    weights = run.weights
    assert differing({"w": weights["embed.weight"]}, {"w": weights["again.weight"]}) == []
    import torch

    trained = torch.jit.load(str(run.folder / "model.pt"))
    assert trained.embed.weight is trained.again.weight


def test_frozen_parameters(model, data, zoo, plain, tmp_path: Path) -> None:
    import torch

    file = model("frozen_layer")
    run = train(tmp_path, in_order(file, data("blob"), optimizer=ADAMW), workers=3)
    changed = set(differing(start(file), run.weights))
    assert changed == {"norm.weight", "norm.bias", "fc2.weight", "fc2.bias"}
    assert_agrees(run, plain.train(file, zoo.make_data("blob"), ADAMW, workers=3), FLOAT32)
    trained = torch.jit.load(str(run.folder / "model.pt"))
    assert {name for name, p in trained.named_parameters() if p.requires_grad} == changed


@pytest.mark.parametrize("bucket_mb", [25, 0.0001])
def test_parameter_that_no_step_uses(bucket_mb: float, model, data, tmp_path: Path) -> None:
    """It is averaged, which leaves equal values as they are, and warned of once."""
    file = model("unused")
    used = in_order(file, data("blob"), optimizer=ADAMW, parallel={"bucket_mb": bucket_mb})
    run = train(tmp_path, used, workers=2)
    same = set(run.weights) - set(differing(start(file), run.weights))
    assert same == {"extra.weight", "extra.bias"}
    assert run.ended[0].err.count("'extra.weight'") == 1
    assert run.ended[0].err.startswith("warning: ") and len(run.ended[0].err.splitlines()) == 1
    assert run.ended[1].err == ""
    assert (run.folder / "run.log").read_text().count("'extra.weight'") == 1


# ---- models that change from step to step --------------------------------------------------------------------------

@pytest.mark.parametrize("optimizer", [SGD, ADAMW], ids=["sgd", "adamw"])
@pytest.mark.parametrize("bucket_mb", [25, 0.0001])
def test_alternating_steps(bucket_mb: float, optimizer: dict, model, data, zoo, plain, tmp_path: Path) -> None:
    """A counter in a buffer chooses the layer: the other one keeps its value and its optimizer state in that step.

    The trial batch before step 1 and the evaluation must leave the counter alone.
    """
    file = model("alternating64")
    settings = in_order(file, data("blob64"), optimizer=optimizer, parallel={"bucket_mb": bucket_mb},
                        eval={"every_steps": 100})
    run = train(tmp_path, settings)
    assert_agrees(run, plain.train(file, zoo.make_data("blob64"), optimizer), FLOAT64)
    assert run.weights["steps"] == 12
    assert run.ended[0].err.count("'even.weight'") == run.ended[0].err.count("'odd.weight'") == 1


@pytest.mark.parametrize("optimizer", [SGD, ADAMW], ids=["sgd", "adamw"])
@pytest.mark.parametrize("bucket_mb", [25, 0.0001])
def test_branches_by_data(bucket_mb: float, optimizer: dict, model, data, zoo, plain, tmp_path: Path) -> None:
    """The two workers use different layers in each step, and mix all of them all the same."""
    file = model("branching64")
    settings = in_order(file, data("signs64"), optimizer=optimizer, parallel={"bucket_mb": bucket_mb, "topology": "ring"})
    run = train(tmp_path, settings, workers=2)
    reference = plain.train(file, zoo.make_data("signs64"), optimizer, workers=2)
    assert reference.distance > 0
    assert_agrees(run, reference, FLOAT64)


# ---- inputs, dtypes and memory layouts -----------------------------------------------------------------------------

@pytest.mark.parametrize("inputs", [["left", "right"], {"right": "right", "left": "left"}], ids=["list", "mapping"])
def test_two_inputs(inputs: object, model, data, zoo, plain, tmp_path: Path) -> None:
    file = model("two_inputs64")
    run = train(tmp_path, in_order(file, data("pairs64"), model={"inputs": inputs}, optimizer=ADAMW))
    assert_agrees(run, plain.train(file, zoo.make_data("pairs64"), ADAMW, inputs=("left", "right")), FLOAT64)


def test_inputs_of_other_names(model, tmp_path: Path, zoo, plain) -> None:
    """{argument: field}, where a list in forward's order would be another one."""
    from tensors import write_safetensors

    fields = zoo.make_data("pairs64")
    renamed = {"right": fields["left"], "other": fields["right"], "label": fields["y"]}
    write_safetensors(tmp_path / "renamed.safetensors", renamed)
    file = model("two_inputs64")
    settings = in_order(file, tmp_path / "renamed.safetensors", optimizer=SGD,
                        model={"inputs": {"right": "other", "left": "right"}, "target": "label"})
    run = train(tmp_path, settings)
    assert_agrees(run, plain.train(file, fields, SGD, inputs=("left", "right")), FLOAT64)


@pytest.mark.parametrize("name", ["conv64", "conv_last64"])
def test_memory_layout_of_the_weights(name: str, model, data, zoo, plain, tmp_path: Path) -> None:
    import torch

    file = model(name)
    last = torch.jit.load(str(file)).conv.weight.is_contiguous(memory_format=torch.channels_last)
    assert last == (name == "conv_last64")
    run = train(tmp_path, in_order(file, data("images64"), optimizer=ADAMW), workers=2)
    assert_agrees(run, plain.train(file, zoo.make_data("images64"), ADAMW, workers=2), FLOAT64)
    trained = torch.jit.load(str(run.folder / "model.pt")).conv.weight
    assert trained.is_contiguous(memory_format=torch.channels_last) == last


@pytest.mark.parametrize("workers", [1, 2])
def test_recurrent_network(workers: int, model, data, zoo, plain, tmp_path: Path) -> None:
    file = model("recurrent64")
    run = train(tmp_path, in_order(file, data("blob64"), optimizer=ADAMW), workers=workers)
    assert_agrees(run, plain.train(file, zoo.make_data("blob64"), ADAMW, workers=workers), FLOAT64)


@pytest.mark.parametrize("workers", [1, 2])
def test_buffer_that_is_one_number_many_times(workers: int, model, data, zoo, plain, tmp_path: Path) -> None:
    file = model("expanded_buffer")
    run = train(tmp_path, in_order(file, data("blob"), optimizer=ADAMW), workers=workers)
    assert_agrees(run, plain.train(file, zoo.make_data("blob"), ADAMW, workers=workers), FLOAT32)


# ---- traced models -------------------------------------------------------------------------------------------------

def trace(zoo, name: str, path: Path) -> Path:
    import torch

    warnings.simplefilter("ignore", torch.jit.TracerWarning)  # pytest brings the filters back after the test
    torch.jit.trace(zoo.make_model(name).train(), torch.zeros(8, zoo.FEATURES), check_trace=False).save(str(path))
    return path


def test_traced_model_with_its_mode_baked_in(data, zoo, tmp_path: Path) -> None:
    file = trace(zoo, "dropout_norm", tmp_path / "traced.pt")
    run = train(tmp_path, recipe(file, data("blob"), train={"steps": 60}, eval={"every_steps": 60}), workers=2)
    warning = run.ended[0].err
    assert warning.startswith("warning: ") and len(warning.splitlines()) <= 5
    for text in ("traced.pt", "baked in", "dropout", "batch_norm", "torch.jit.script"):
        assert text in warning
    assert run.ended[1].err == ""
    assert run.losses[-10:].mean() < run.losses[:10].mean()


def test_attention_of_pytorch_has_both_modes(data, zoo, tmp_path: Path) -> None:
    """Its dropout is told to train, and is reached in train mode only."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(zoo.FEATURES, 2, 8, dropout=0.5)
    file = tmp_path / "attention.pt"
    torch.jit.script(torch.nn.Sequential(layer, torch.nn.Linear(zoo.FEATURES, 3))).save(str(file))
    assert train(tmp_path, recipe(file, data("blob"), train={"steps": 1})).ended[0].err == ""


def test_traced_model_without_modes(data, zoo, plain, tmp_path: Path) -> None:
    file = trace(zoo, "mlp", tmp_path / "traced.pt")
    run = train(tmp_path, in_order(file, data("blob"), optimizer=ADAMW))
    assert run.ended[0].err == ""
    assert_agrees(run, plain.train(file, zoo.make_data("blob"), ADAMW), FLOAT32)


# ---- buffers and weights that a model handles in its own way -------------------------------------------------------

@pytest.mark.parametrize("workers", [1, 2, 3])
def test_buffers_that_the_model_replaces(workers: int, model, data, tmp_path: Path) -> None:
    """They are averaged and exported like those that are written in place, and evaluation leaves no trace in them."""
    import torch

    file, samples = model("replaced_buffers"), data("blob")
    quiet = train(tmp_path / "quiet", in_order(file, samples, eval=NO_EVALUATION), workers=workers)
    evaluated = train(tmp_path / "evaluated", in_order(file, samples, eval={"every_steps": 3}), workers=workers)
    assert not differing(quiet.weights, evaluated.weights)
    exported = torch.jit.load(str(quiet.folder / "model.pt")).state_dict()
    assert not differing(quiet.weights, {name: tensor.numpy() for name, tensor in exported.items()})
    assert quiet.weights["count"] == 12

    from tensors import read_safetensors

    x = read_safetensors(samples)["x"].astype(np.float64)
    mean = np.zeros(x.shape[1])  # the average of the workers' means is the mean's own recurrence over all their samples
    batch = 8 * workers
    for step in range(12):
        first = step % (len(x) // batch) * batch
        mean = 0.9 * mean + 0.1 * x[first : first + batch].mean(axis=0)
    np.testing.assert_allclose(quiet.weights["mean"], mean, rtol=0, atol=1e-6)  # sums of a few float32 numbers near 1


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("stopped", ["stopped", "stopped_by_data"])
def test_weights_used_without_gradient(stopped: str, workers: int, model, data, tmp_path: Path) -> None:
    """However small the buckets, no weight changes before backward is done with it."""
    runs = [train(tmp_path / name, in_order(model(name), data("blob"), optimizer=SGD, parallel={"bucket_mb": 0.0001}),
                  workers=workers) for name in (stopped, "stopped_by_copy")]
    assert list(runs[0].losses) == list(runs[1].losses)
    assert not differing(runs[0].weights, runs[1].weights)
