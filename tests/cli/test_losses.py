"""Every loss, metric and choice of outputs and weights, against PyTorch: step by step in training, by hand in evaluation."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from loss_cases import CASES, CLASSES, FEATURES, RTOL, SAMPLES, make_net, outputs, write_case
from runs import assert_says, attempt, error_message, recipe, refused, train
from tensors import differing, read_safetensors, write_safetensors

METRICS = {"cross_entropy": ["accuracy", "top5", "top3", "perplexity", "precision", "recall", "f1", "auc", "bits_per_byte"],
           "weights": ["perplexity", "accuracy", "auc"], "focal-weights": ["accuracy", "f1"], "kl": ["accuracy"],
           "maps": ["accuracy", "perplexity"], "shares": ["accuracy", "top5", "perplexity"], "share-maps": ["accuracy"],
           "nll": ["perplexity", "accuracy"], "mse": ["mse", "mae", "r2"], "huber": ["r2", "loss", "mae"],
           "bce_with_logits": ["accuracy", "precision", "recall", "f1", "auc"], "output": ["perplexity", "bits_per_byte"]}


def area(scores, truths) -> float:
    """Under the ROC curve: how often what is true has the higher score, ties counting half."""
    above = scores[truths].unsqueeze(1) - scores[~truths].unsqueeze(0)
    return ((above > 0).double() + (above == 0).double() / 2).mean().item()


def by_label(predicted, truths) -> dict[str, float]:
    """Of [n, labels], as scikit-learn's with average="macro"."""
    hits, predicted, truths = (each.double().sum(0) for each in (predicted & truths, predicted, truths))
    return {"precision": (hits / predicted.clamp_min(1)).mean().item(), "recall": (hits / truths.clamp_min(1)).mean().item(),
            "f1": (2 * hits / (predicted + truths)).mean().item()}


@pytest.mark.parametrize("name", CASES)
def test_training(name: str, tmp_path: Path) -> None:
    """Twelve steps of one worker."""
    import torch
    import torch.nn.functional as F

    own, data = write_case(name, tmp_path)
    run = train(tmp_path / "run", own)
    net, _, section, loss_of = CASES[name]
    net = torch.jit.load(str(tmp_path / "net.pt"))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x, y = (torch.from_numpy(data[field]) for field in "xy")
    losses = []
    for t in range(12):
        rows = slice(8 * t, 8 * t + 8)
        loss = loss_of(F, outputs(net, section, x[rows], y[rows]), y[rows])
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    np.testing.assert_allclose(run.losses, losses, rtol=RTOL)
    for key, tensor in net.state_dict().items():
        np.testing.assert_allclose(run.weights[key], tensor.numpy(), rtol=1e-4, atol=1e-6, err_msg=key)


def expected(name: str, folder: Path, data: dict[str, np.ndarray]) -> dict[str, float]:
    """Every figure of the model file on all the data at once, in double."""
    import torch
    import torch.nn.functional as F

    net, _, section, loss_of = CASES[name]
    net = torch.jit.load(str(folder / "net.pt")).double()
    x, y = torch.from_numpy(data["x"]).double(), torch.from_numpy(data["y"])
    y = y.double() if y.is_floating_point() else y
    with torch.no_grad():
        out = outputs(net, section, x, y)
        figures = {"loss": loss_of(F, out, y).item()}
    figures["perplexity"] = math.exp(min(figures["loss"], 700))
    figures["bits_per_byte"] = figures["loss"] / math.log(2)
    if name == "output":
        return figures
    if name == "bce_with_logits":
        figures["accuracy"] = ((out > 0) == (y > 0.5)).double().mean().item()
        figures |= by_label(out > 0, y > 0.5)
        figures["auc"] = sum(area(out[:, c], y[:, c] > 0.5) for c in range(CLASSES)) / CLASSES
    elif y.is_floating_point() and section_of_shares(name):  # the most probable class counts
        dim = section.get("class_dim", -1)
        figures["accuracy"] = (out.argmax(dim) == y.argmax(dim)).double().mean().item()
        figures["top5"] = (out.topk(5, dim).indices == y.argmax(dim, keepdim=True)).any(dim).double().mean().item()
    elif y.is_floating_point():
        error = out - y
        figures |= {"mse": (error**2).mean().item(), "mae": error.abs().mean().item(),
                    "r2": 1 - ((error**2).sum() / ((y - y.mean()) ** 2).sum()).item()}
    else:
        dim = section.get("class_dim", -1)
        counts = y != section.get("ignore_index", -100)
        figures["accuracy"] = (out.argmax(dim) == y)[counts].double().mean().item()
        if name == "cross_entropy":
            figures |= {f"top{k}": (out.topk(k, dim).indices == y.unsqueeze(dim)).any(dim).double().mean().item() for k in (3, 5)}
        predicted, truths = (F.one_hot(each[counts], CLASSES).bool() for each in (out.argmax(dim), y))
        figures |= by_label(predicted, truths)
        if dim == -1:
            figures["auc"] = sum(area(out.softmax(1)[:, c], y == c) for c in range(CLASSES)) / CLASSES
    return figures


def section_of_shares(name: str) -> bool:
    return CASES[name][1].startswith("share")


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", METRICS)
def test_metrics(name: str, workers: int, tmp_path: Path) -> None:
    """Before the first step: every sample counts once, however they are dealt out."""
    own, data = write_case(name, tmp_path, METRICS[name])
    own["data"]["eval_batch_size"] = 10
    line = train(tmp_path / "run", own, workers=workers).lines("eval")[0]
    want = expected(name, tmp_path, data)
    assert (line["step"], line["samples"]) == (0, SAMPLES)
    assert line["consensus_distance"] < 1e-6  # copies of one model; a mean of three equal floats may round
    measured = [key for key in line if key not in ("kind", "step", "epoch", "model", "samples", "consensus_distance")]
    assert measured == ["loss", *(m for m in METRICS[name] if m != "loss")]
    for key in measured:
        if name == "output" and key in ("loss", "perplexity"):
            continue  # a mean of batch means, weighed by samples: the batches are not those of one
        # Float32 sums over a batch of 10, against double.
        assert line[key] == pytest.approx(want[key], rel=2e-6), key


def test_own_loss_is_weighed_by_samples(tmp_path: Path) -> None:
    import torch

    own, data = write_case("output", tmp_path)
    own["data"]["eval_batch_size"] = 60  # one batch of 60 and one of 44
    line = train(tmp_path / "run", own).lines("eval")[0]
    net = torch.jit.load(str(tmp_path / "net.pt"))
    x, y = (torch.from_numpy(data[field]) for field in "xy")
    want = sum(len(x[rows]) * net(x[rows], y[rows]).item() for rows in (slice(0, 60), slice(60, None))) / SAMPLES
    assert line["loss"] == pytest.approx(want, rel=1e-6)


def test_evaluation_at_start_changes_nothing(tmp_path: Path) -> None:
    own, _ = write_case("cross_entropy", tmp_path)
    without = {**own, "eval": {"at_start": False, "every_steps": None, "every_epochs": None}}
    runs = [train(tmp_path / str(i), settings, workers=2) for i, settings in enumerate((own, without))]
    assert len(runs[0].lines("eval")) == 2 and not runs[1].lines("eval")
    assert list(runs[0].losses) == list(runs[1].losses)
    assert not differing(runs[0].weights, runs[1].weights)


@pytest.mark.parametrize(("loss", "metric", "valid"), [
    ("mse", "accuracy", "loss, mse, mae, r2"), ("cross_entropy", "r2", "loss, accuracy, top<k>, precision, "),
    ("output", "mae", "loss, perplexity, bits_per_byte"), ("bce_with_logits", "top5", "loss, accuracy, precision, ")])
def test_metric_that_the_loss_does_not_have(loss: str, metric: str, valid: str, tmp_path: Path) -> None:
    own, _ = write_case("cross_entropy", tmp_path, [metric])
    assert_says(refused(tmp_path / "run", {**own, "model": {**own["model"], "loss": loss}}), "eval.metrics", metric, valid)


def test_batch_without_anything_to_learn(tmp_path: Path) -> None:
    """All targets ignored: PyTorch's mean is 0/0; here such a batch has loss 0 and gradient 0."""
    own, data = write_case("cross_entropy", tmp_path)
    data["y"][8:16] = -100
    write_safetensors(tmp_path / "data.safetensors", data)
    run = train(tmp_path / "run", own)
    assert run.losses[1] == 0 and np.isfinite(run.losses).all() and (run.losses[2:] > 0).all()


# ---- a loss that is not finite -------------------------------------------------------------------------------------

@pytest.mark.parametrize("field, named", [("x", "field 'x' of the batch"), ("y", "field 'y' of the batch (model.target)")])
@pytest.mark.parametrize("workers", [1, 3])
def test_field_that_is_not_finite(workers: int, field: str, named: str, tmp_path: Path) -> None:
    own, data = write_case("mse", tmp_path)
    data[field][50, 1] = np.nan  # one sample of one worker, in a later step
    write_safetensors(tmp_path / "data.safetensors", data)
    own["data"]["eval"] = None
    ended = attempt(tmp_path / "run", own, workers=workers)
    assert [e.code for e in ended] == [5] * workers
    text = "".join(e.err for e in ended)
    step, rank = 50 // (8 * workers) + 1, 50 % workers
    assert text.count("error:") == 1
    assert_says(text, f"the loss of step {step} is nan", f"{named} is the first that is not finite (1 of its",
                f": sample 50 ('{tmp_path / 'data.safetensors'}') of data.train, counted from 0.", "np.isfinite")
    assert "optimizer.lr" not in text  # is not to blame
    if workers > 1:
        assert f"error: rank {rank}: " in text


def test_parameter_that_is_not_finite(tmp_path: Path) -> None:
    own, _ = write_case("mse", tmp_path)
    ended = attempt(tmp_path / "run", {**own, "optimizer": {"name": "sgd", "lr": 3e38}, "train": {"steps": 50}})
    assert ended[0].code == 5
    assert_says(ended[0].err, "parameter 'fc.weight' is the first that is not finite", "optimizer.lr")


# ---- outputs -------------------------------------------------------------------------------------------------------

def write_outputs(folder: Path) -> None:
    from typing import Dict, List, NamedTuple, Tuple

    import torch
    from torch import Tensor, nn

    global Named
    Named = NamedTuple("Named", [("extra", Tensor), ("logits", Tensor)])

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(FEATURES, CLASSES)

    class AsTuple(Net):
        def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
            y = self.fc(x)
            return y * 0, y

    class AsNamed(Net):
        def forward(self, x: Tensor) -> Named:
            y = self.fc(x)
            return Named(y * 0, y)

    class AsDict(Net):
        def forward(self, x: Tensor) -> Dict[str, Tensor]:
            y = self.fc(x)
            return {"extra": y * 0, "logits": y}

    class AsList(Net):
        def forward(self, x: Tensor) -> List[Tensor]:
            y = self.fc(x)
            return [y * 0, y]

    class AsSingle(Net):
        def forward(self, x: Tensor) -> Tuple[Tensor]:
            return (self.fc(x),)

    for net in (AsTuple, AsNamed, AsDict, AsList, AsSingle):
        torch.manual_seed(3)
        torch.jit.script(net()).save(str(folder / f"{net.__name__}.pt"))


def test_outputs(tmp_path: Path) -> None:
    own, _ = write_case("cross_entropy", tmp_path)
    write_outputs(tmp_path)
    plain = train(tmp_path / "plain", own).losses

    def section(name: str, output: object) -> dict:
        return {**own, "model": {**own["model"], "path": str(tmp_path / f"{name}.pt"), "output": output}}

    for name, output in (("AsTuple", 1), ("AsNamed", "logits"), ("AsNamed", 1), ("AsDict", "logits"), ("AsList", 1),
                         ("AsSingle", None), ("AsSingle", 0)):
        run = train(tmp_path / f"{name}-{output}", section(name, output))
        np.testing.assert_array_equal(run.losses, plain, err_msg=f"{name} {output}")
    for name, output, texts in (("AsNamed", None, ["2 outputs", "0 ('extra'), 1 ('logits')"]),
                                ("AsDict", "logit", ["no output 'logit'", "1 ('logits')"]),
                                ("AsTuple", 2, ["no output '2'", "0, 1"])):
        assert_says(refused(tmp_path / f"no-{name}", section(name, output)), "model.output", *texts)


# ---- weights to start from ------------------------------------------------------------------------------------------

def test_weights(tmp_path: Path) -> None:
    """Every kind of file gives the same start."""
    import torch

    own, _ = write_case("cross_entropy", tmp_path)
    torch.manual_seed(99)
    other = make_net("plain")
    torch.nn.init.normal_(other.fc.weight)
    torch.jit.script(other).save(str(tmp_path / "whole.pt"))
    torch.save(dict(other.state_dict()), str(tmp_path / "state.pt"))
    torch.save(dict(other.half().state_dict()), str(tmp_path / "half.pt"))
    write_safetensors(tmp_path / "w.safetensors", {n: t.float().numpy() for n, t in other.state_dict().items()})
    other = torch.jit.load(str(tmp_path / "whole.pt"))
    wanted = train(tmp_path / "wanted", {**own, "model": {**own["model"], "path": str(tmp_path / "whole.pt")}})
    for name in ("whole.pt", "state.pt"):
        run = train(tmp_path / f"run-{name}", {**own, "model": {**own["model"], "weights": str(tmp_path / name)}})
        np.testing.assert_array_equal(run.losses, wanted.losses, err_msg=name)
    half = [train(tmp_path / f"run-{name}", {**own, "model": {**own["model"], "weights": str(tmp_path / name)}}).losses
            for name in ("half.pt", "w.safetensors")]
    np.testing.assert_array_equal(*half)
    np.testing.assert_allclose(half[0], wanted.losses, rtol=1e-2)
    again = train(tmp_path / "again", {**own, "model": {**own["model"],
                                                        "weights": str(wanted.folder / "model.safetensors")}})
    assert again.losses[0] != wanted.losses[0]


def test_exported_weights_are_read_back(tmp_path: Path) -> None:
    own, _ = write_case("cross_entropy", tmp_path)
    run = train(tmp_path / "a", own)
    settings = {**own, "model": {**own["model"], "weights": str(run.folder / "model.safetensors")}}
    line = train(tmp_path / "b", settings).lines("eval")[0]
    assert line["loss"] == run.evaluation["loss"]
    assert read_safetensors(run.folder / "model.safetensors").keys() == run.weights.keys()
