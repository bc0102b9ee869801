"""Every loss, metric and choice of outputs and weights, against PyTorch: step by step in training, by hand in evaluation."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from runs import assert_says, attempt, error_message, recipe, refused, train
from tensors import differing, read_safetensors, write_safetensors

SAMPLES, FEATURES, CLASSES = 104, 12, 7
SGD = {"name": "sgd", "lr": 0.1, "momentum": 0.9}
# Some 12 steps of float32, rounded in another order: 1e-7 a step.
RTOL = 3e-6


def arrays(kind: str) -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    x = random.normal(size=(SAMPLES, FEATURES)).astype(np.float32)
    if kind == "classes":
        y = random.integers(0, CLASSES, SAMPLES)
    elif kind == "maps":
        y = random.integers(0, CLASSES, (SAMPLES, 3))
    elif kind == "shares":
        y = random.dirichlet(np.ones(CLASSES), SAMPLES).astype(np.float32)
    elif kind == "share maps":
        y = random.dirichlet(np.ones(CLASSES), (SAMPLES, 3)).swapaxes(1, 2).astype(np.float32)
    elif kind == "probabilities":
        y = random.random((SAMPLES, CLASSES)).astype(np.float32).round(1)
    else:
        y = (100 + 3 * random.normal(size=(SAMPLES, CLASSES))).astype(np.float32)
    if kind == "maps":
        y[random.random(y.shape) < 0.3] = 2  # the class that is ignored
    return {"x": x, "y": y}


def make_net(kind: str):
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(FEATURES, CLASSES)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x)

    class LogProbabilities(Plain):
        def forward(self, x: Tensor) -> Tensor:
            return F.log_softmax(self.fc(x), 1)

    class Maps(nn.Module):
        """Logits [B, C, 3]."""

        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(FEATURES, 3 * CLASSES)
            self.classes = CLASSES

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x).view(-1, self.classes, 3)

    class OwnLoss(Plain):
        def forward(self, x: Tensor, labels: Tensor) -> Tensor:
            return F.cross_entropy(self.fc(x), labels) + 0.01 * self.fc.weight.pow(2).sum()

    nets = {"plain": Plain, "log_probabilities": LogProbabilities, "maps": Maps, "own": OwnLoss}
    torch.manual_seed(3)
    return nets[kind]()


# name -> (net, data, recipe's model section, PyTorch's loss)
CASES = {
    "cross_entropy": ("plain", "classes", {}, lambda F, o, y: F.cross_entropy(o, y)),
    "smoothing": ("plain", "classes", {"label_smoothing": 0.2}, lambda F, o, y: F.cross_entropy(o, y, label_smoothing=0.2)),
    "maps": ("maps", "maps", {"class_dim": 1, "ignore_index": 2}, lambda F, o, y: F.cross_entropy(o, y, ignore_index=2)),
    "maps-smoothing": ("maps", "maps", {"class_dim": 1, "ignore_index": 2, "label_smoothing": 0.1},
                       lambda F, o, y: F.cross_entropy(o, y, ignore_index=2, label_smoothing=0.1)),
    "shares": ("plain", "shares", {}, lambda F, o, y: F.cross_entropy(o, y)),
    "shares-smoothing": ("plain", "shares", {"label_smoothing": 0.2}, lambda F, o, y: F.cross_entropy(o, y, label_smoothing=0.2)),
    "share-maps": ("maps", "share maps", {"class_dim": 1}, lambda F, o, y: F.cross_entropy(o, y)),
    "nll": ("log_probabilities", "classes", {"loss": "nll", "ignore_index": 4}, lambda F, o, y: F.nll_loss(o, y, ignore_index=4)),
    "mse": ("plain", "numbers", {"loss": "mse"}, lambda F, o, y: F.mse_loss(o, y)),
    "l1": ("plain", "numbers", {"loss": "l1"}, lambda F, o, y: F.l1_loss(o, y)),
    "huber": ("plain", "numbers", {"loss": "huber"}, lambda F, o, y: F.huber_loss(o, y)),
    "bce_with_logits": ("plain", "probabilities", {"loss": "bce_with_logits"},
                        lambda F, o, y: F.binary_cross_entropy_with_logits(o, y)),
    "output": ("own", "classes", {"loss": "output", "inputs": ["x", "y"]}, lambda F, o, y: o),
}
METRICS = {"cross_entropy": ["accuracy", "top5", "perplexity"], "maps": ["accuracy", "perplexity"],
           "shares": ["accuracy", "top5", "perplexity"], "share-maps": ["accuracy"],
           "nll": ["perplexity", "accuracy"], "mse": ["mse", "mae", "r2"], "huber": ["r2", "loss", "mae"],
           "bce_with_logits": ["accuracy"], "output": ["perplexity"]}


def write_case(name: str, folder: Path, workers_metrics: list[str] | None = None) -> tuple[dict, dict[str, np.ndarray]]:
    import torch

    net, kind, section, _ = CASES[name]
    torch.jit.script(make_net(net)).save(str(folder / "net.pt"))
    data = arrays(kind)
    write_safetensors(folder / "data.safetensors", data)
    own = recipe(folder / "net.pt", folder / "data.safetensors", model=section, data={"shuffle": False}, optimizer=SGD,
                 eval={"at_start": True, "metrics": workers_metrics, "every_steps": None, "every_epochs": None})
    return own, data


def outputs(net, section: dict, x, y):
    return net(x, y) if section.get("inputs") else net(x)


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
    if name == "output":
        return figures
    if name == "bce_with_logits":
        figures["accuracy"] = ((out > 0) == (y > 0.5)).double().mean().item()
    elif y.is_floating_point() and name.startswith("share"):  # the most probable class counts
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
            figures["top5"] = (out.topk(5, dim).indices == y.unsqueeze(dim)).any(dim).double().mean().item()
    return figures


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
    ("mse", "accuracy", "loss, mse, mae, r2"), ("cross_entropy", "r2", "loss, accuracy, top5, perplexity"),
    ("output", "mae", "loss, perplexity"), ("bce_with_logits", "top5", "loss, accuracy")])
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
                ": sample 50 of data.train, counted from 0.", "np.isfinite")
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
