"""model.lora: adapters that train in place of weights, beside the same in PyTorch; what workers send, save, resume and export."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call

from runs import assert_same_run, assert_says, attempt, merged, message_of_odd_worker, recipe, refused, train
from tensors import read_safetensors, write_safetensors

STEPS, BATCH, CLASSES, RANK, ALPHA = 20, 8, 5, 3, 7.5
SGD = {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 0.0}


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.second(torch.relu(self.first(x)))))


class Convolutions(nn.Module):
    """The same type of module twice, in one class."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)
        self.norm, self.head = nn.BatchNorm2d(6), nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.first(x.view(-1, 1, 4, 4))))
        return self.head(torch.relu(self.second(x)).mean((2, 3)))


class Recurrent(nn.Module):
    """torch.nn.LSTM holds its weights a second time, in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 12, batch_first=True), nn.Linear(12, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x.view(-1, 4, 4))[0][:, -1])


class Tied(nn.Module):
    """One weight in two places."""

    def __init__(self) -> None:
        super().__init__()
        self.out, self.into, self.head = nn.Linear(16, 16, bias=False), nn.Linear(16, 16), nn.Linear(16, CLASSES)
        self.into.weight = self.out.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.out(torch.relu(self.into(x))))


# name -> (network, match, weights that it adapts)
CASES = {
    "linear": (Mlp, ["first.*", "second.weight"], ["first.weight", "second.weight"]),
    "convolutions": (Convolutions, ["first.weight", "second.weight"], ["first.weight", "second.weight"]),
    "lstm": (Recurrent, ["lstm.*"], ["lstm.weight_ih_l0", "lstm.weight_hh_l0"]),
    "tied": (Tied, ["*t*.weight"], ["out.weight"]),
}


def net_of(case: str) -> nn.Module:
    torch.manual_seed(4)
    return CASES[case][0]()


def write_data(folder: Path) -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    data = {"x": random.normal(size=(STEPS * BATCH, 16)).astype(np.float32), "y": random.integers(0, CLASSES, STEPS * BATCH)}
    write_safetensors(folder / "data.safetensors", data)
    return data


def write_adapters(case: str, folder: Path) -> dict[str, np.ndarray]:
    """Adapters that change the outputs from the start, and a head that trains whole."""
    random = np.random.default_rng(6)
    net = net_of(case)
    tensors = {}
    for name in CASES[case][2]:
        weight = net.get_parameter(name)
        shape = (weight.size(0), weight.numel() // weight.size(0))
        tensors[f"{name}.lora_A"] = random.normal(size=(RANK, shape[1])).astype(np.float32) / 8
        tensors[f"{name}.lora_B"] = random.normal(size=(shape[0], RANK)).astype(np.float32) / 8
    tensors |= {f"head.{name}": value.detach().numpy() for name, value in net.head.named_parameters()}
    tensors |= {name: value.numpy() for name, value in net.named_buffers() if "tracked" not in name}  # which ONNX has not
    write_safetensors(folder / "start.safetensors", tensors)
    return tensors


def settings(case: str, folder: Path, file: Path | None = None, /, **changes: object) -> dict:
    lora = {"match": CASES[case][1], "rank": RANK, "alpha": ALPHA, "train": ["head.*"], "adapters": str(folder / "start.safetensors")}
    own = recipe(file or folder / "net.pt", folder / "data.safetensors", model={"lora": lora}, data={"shuffle": False, "eval": None},
                 train={"steps": STEPS}, optimizer=SGD)
    return merged(own, changes)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    write_case(request.param, tmp_path)
    return request.param


def write_case(case: str, folder: Path) -> None:
    torch.jit.script(net_of(case)).save(str(folder / "net.pt"))
    write_data(folder)
    write_adapters(case, folder)


def eager(case: str, folder: Path) -> tuple[list[float], dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """PyTorch's losses, what trained, and the state with the adapters merged."""
    net = net_of(case).train()
    given = {name: torch.tensor(value) for name, value in read_safetensors(folder / "start.safetensors").items()}
    trained = {name: value.requires_grad_() for name, value in given.items() if "lora" in name or name.startswith("head.")}
    base = {name: value.detach() for name, value in net.named_parameters() if name not in trained}

    def weights() -> dict[str, torch.Tensor]:
        sums = {name: base[name] + ALPHA / RANK * (trained[f"{name}.lora_B"] @ trained[f"{name}.lora_A"]).view_as(base[name])
                for name in CASES[case][2]}
        return {**base, **sums, **{name: value for name, value in trained.items() if "lora" not in name}}

    optimizer = torch.optim.SGD(trained.values(), lr=SGD["lr"], momentum=SGD["momentum"])
    data = read_safetensors(folder / "data.safetensors")
    losses = []
    for x, y in zip(torch.tensor(data["x"]).split(BATCH), torch.tensor(data["y"]).split(BATCH)):
        loss = nn.functional.cross_entropy(functional_call(net, weights(), (x,)), y)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    state = weights() | dict(net.named_buffers())
    return losses, trained, {name: state[{"into.weight": "out.weight"}.get(name, name)] for name in net.state_dict()}


def files_of(case: str, folder: Path) -> list[Path]:
    """The model in all formats."""
    net = net_of(case).train()
    x = torch.zeros(2, 16)
    files = [folder / "net.pt"]
    if case != "lstm":  # whose weights ONNX holds in another order
        torch.onnx.export(net, (x,), str(folder / "net.onnx"), input_names=["x"], dynamic_axes={"x": {0: "n"}}, dynamo=False,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
        files.append(folder / "net.onnx")
    torch.export.save(torch.export.export(net_of(case).train(), (x,), dynamic_shapes={"x": {0: torch.export.Dim("n", min=1)}}), folder / "net.pt2")
    return [*files, folder / "net.pt2"]


def test_follows_pytorch(case: str, tmp_path: Path) -> None:
    """From the same A and B, for a file of each format; the written models have the adapters in their weights."""
    losses, trained, state = eager(case, tmp_path)
    for file in files_of(case, tmp_path):
        run = train(tmp_path / file.suffix, settings(case, tmp_path, file))
        np.testing.assert_allclose(run.losses, losses, rtol=1e-5, err_msg=file.suffix)  # float32, summed in another order
        adapters = read_safetensors(run.folder / "adapters.safetensors")
        for name, value in trained.items():
            np.testing.assert_allclose(adapters[name], value.detach(), rtol=1e-3, atol=1e-5, err_msg=name)
        for name, value in run.weights.items():
            np.testing.assert_allclose(value, state[name].detach(), rtol=1e-3, atol=1e-5, err_msg=name)
        x = torch.tensor(read_safetensors(tmp_path / "data.safetensors")["x"])
        written = torch.jit.load(str(run.folder / "model.pt"))
        net = net_of(case).eval()
        net.load_state_dict({name: value.detach() for name, value in state.items()})
        torch.testing.assert_close(written(x), net(x), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("parallel", [{}, {"comm_dtype": "modulo2", "slices": 2}, {"method": "all_reduce"}],
                         ids=lambda parallel: "-".join(map(str, parallel.values())) or "fp32")
def test_workers_keep_the_base(parallel: dict, tmp_path: Path) -> None:
    """All weights but those that train are those of the file, bit for bit."""
    write_case("linear", tmp_path)
    own = settings("linear", tmp_path, parallel=parallel, train={"steps": 8})
    own["optimizer"] = {"name": "adamw", "lr": 1e-3}
    run = train(tmp_path, own, workers=2)
    file = {name: value.detach().numpy() for name, value in net_of("linear").named_parameters()}
    same = [name for name, value in run.weights.items() if np.array_equal(value, file[name])]
    assert same == ["first.bias", "second.bias"]
    size = sum(value.size for name, value in write_adapters("linear", tmp_path).items())
    assert_says(run.ended[0].out, f"{size} parameters to train", "2 adapters (rank 3, alpha 7.5): first.weight [32, 16]")


def test_resumes_to_the_bit(tmp_path: Path) -> None:
    """With evaluations, for which the adapters are merged, in between; a checkpoint has nothing of the base."""
    write_case("convolutions", tmp_path)
    source = {"format": "safetensors", "path": str(tmp_path / "data.safetensors"), "limit": 16}
    own = settings("convolutions", tmp_path, data={"eval": source}, eval={"every_steps": 3}, train={"steps": 6},
                   checkpoint={"every_steps": 3}, optimizer={"ema": 0.9})
    whole = train(tmp_path / "whole", own, workers=2)
    train(tmp_path / "parts", own, "--set", "train.steps=3", workers=2)
    resumed = train(tmp_path / "parts", own, "--resume", "auto", workers=2)
    assert_same_run(whole, resumed)
    names = set(read_safetensors(resumed.checkpoint(3) / "rank-0000.safetensors"))
    assert {name for name in names if name.startswith("model.")} == {
        *(f"model.{name}.weight.lora_{part}" for name in ("first", "second") for part in "AB"), "model.head.weight", "model.head.bias"}
    assert (whole.folder / "adapters.safetensors").read_bytes() == (resumed.folder / "adapters.safetensors").read_bytes()


def test_nothing_changes_at_first(tmp_path: Path) -> None:
    """Without a file B is zero, and A is uniform as in PEFT; the same on all workers, and from the seed."""
    write_case("linear", tmp_path)
    own = settings("linear", tmp_path, model={"lora": {"adapters": None}}, train={"steps": 1}, optimizer={"lr": 1e-30})
    run = train(tmp_path / "one", own, workers=2)
    data = write_data(tmp_path)
    first = nn.functional.cross_entropy(net_of("linear")(torch.tensor(data["x"][:2 * BATCH])), torch.tensor(data["y"][:2 * BATCH]))
    np.testing.assert_allclose(run.lines("train")[0]["loss"], first.item(), rtol=1e-5)
    adapters = read_safetensors(run.folder / "adapters.safetensors")
    a = adapters["second.weight.lora_A"]
    assert a.shape == (RANK, 32) and 0.8 * 32 ** -0.5 < np.abs(a).max() < 32 ** -0.5 and abs(a.mean()) < 0.05
    assert np.abs(adapters["second.weight.lora_B"]).max() < 1e-25
    other = train(tmp_path / "two", merged(own, {"seed": 1}))
    assert not np.array_equal(read_safetensors(other.folder / "adapters.safetensors")["second.weight.lora_A"], a)


def test_a_file_in_which_nothing_trains(tmp_path: Path) -> None:
    """As people freeze a base before they export it: the adapters train all the same."""
    write_case("linear", tmp_path)
    own = settings("linear", tmp_path, train={"steps": 4})
    torch.jit.script(net_of("linear").requires_grad_(False)).save(str(tmp_path / "frozen.pt"))
    frozen = train(tmp_path / "frozen", merged(own, {"model": {"path": str(tmp_path / "frozen.pt")}}))
    assert np.array_equal(frozen.losses, train(tmp_path / "whole", own).losses)


def test_a_run_goes_on_from_adapters(tmp_path: Path) -> None:
    write_case("linear", tmp_path)
    first = train(tmp_path / "first", settings("linear", tmp_path))
    lora = {"lora": {"adapters": str(first.folder / "adapters.safetensors")}}
    second = train(tmp_path / "second", settings("linear", tmp_path, model=lora, train={"steps": 1}, optimizer={"lr": 1e-30}))
    for name, value in second.weights.items():
        np.testing.assert_allclose(value, first.weights[name], rtol=1e-6, err_msg=name)
    other = net_of("linear")
    nn.init.ones_(other.first.weight)
    torch.jit.script(other).save(str(tmp_path / "other.pt"))
    third = train(tmp_path / "third", settings("linear", tmp_path, tmp_path / "other.pt", model=lora, train={"steps": 1}))
    assert_says(third.ended[0].out + third.ended[0].err, "was trained with other weights of the base than this model has")


def test_folder_for_peft(tmp_path: Path) -> None:
    """Names and shapes are those of PEFT's checkpoint format; a whole module is under its own name."""
    write_case("convolutions", tmp_path)
    run = train(tmp_path, settings("convolutions", tmp_path, train={"steps": 2}))
    config = json.loads((run.folder / "adapters" / "adapter_config.json").read_text())
    assert config | {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "target_modules": "first|second",
                     "modules_to_save": ["head", "norm"], "bias": "none", "lora_dropout": 0.0} == config
    shapes = {name.removeprefix("base_model.model."): value.shape
              for name, value in read_safetensors(run.folder / "adapters" / "adapter_model.safetensors").items()}
    assert shapes == {"first.lora_A.weight": (RANK, 1, 3, 3), "first.lora_B.weight": (6, RANK, 1, 1),
                      "second.lora_A.weight": (RANK, 6, 3, 3), "second.lora_B.weight": (6, RANK, 1, 1),
                      "head.weight": (CLASSES, 6), "head.bias": (CLASSES,), "norm.weight": (6,), "norm.bias": (6,),
                      "norm.running_mean": (6,), "norm.running_var": (6,), "norm.num_batches_tracked": ()}
    write_case("lstm", tmp_path)
    other = train(tmp_path / "lstm", settings("lstm", tmp_path, train={"steps": 2}))
    assert not (other.folder / "adapters").exists()
    assert_says((other.folder / "run.log").read_text(), "is not written for PEFT: 'lstm.weight_ih_l0' is not named as the weight of a module")


MISTAKES = {
    "no match": ({"match": ["secnd.weight"]}, "model.lora.match: 'secnd.weight' matches no parameter of the model; did you mean "
                                              "'second.weight'?"),
    "a vector": ({"match": ["first.bias"]}, "model.lora.match: 'first.bias' matches 'first.bias' float32[32]: only weights of float "
                                            "types with at least two dimensions can have adapters"),
    "nothing": ({"match": []}, "model.lora.match: names no weight that is to have an adapter"),
    "both": ({"train": ["head.*", "first.*"]}, "'first.weight' is named by model.lora.match and by model.lora.train"),
    "train": ({"train": ["hed.*"]}, "model.lora.train: 'hed.*' matches no parameter of the model"),
    "rank": ({"rank": 4}, "does not fit the model", "'first.weight.lora_A' is float32[3, 16], the model's float32[4, 16]"),
    "other adapters": ({"match": ["second.*"]}, "not in the model: 'first.weight.lora_A', 'first.weight.lora_B'"),
    "missing adapters": ({"match": ["*.weight"], "train": ["head.bias"]}, "missing: 'head.weight.lora_A', 'head.weight.lora_B'"),
    "no rank": ({"rank": 0}, "model.lora.rank"),
    "a rank without bound": ({"rank": 10**11}, "model.lora.rank"),
    "unknown key": ({"ranks": 2}, "ranks", "did you mean 'rank'?"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str, tmp_path: Path) -> None:
    write_case("linear", tmp_path)
    changes, *says = MISTAKES[mistake]
    assert_says(refused(tmp_path / "run", settings("linear", tmp_path, model={"lora": changes})), *says)


def test_nothing_to_freeze(tmp_path: Path) -> None:
    write_case("linear", tmp_path)
    assert_says(refused(tmp_path / "run", settings("linear", tmp_path, model={"freeze": ["first.*"]})), "model.freeze: with model.lora")


def test_another_base_is_refused(tmp_path: Path) -> None:
    write_case("linear", tmp_path)
    own = settings("linear", tmp_path, checkpoint={"every_steps": 4}, train={"steps": 4})
    train(tmp_path / "run", own)
    other = net_of("linear")
    nn.init.ones_(other.first.weight)
    torch.jit.script(other).save(str(tmp_path / "other.pt"))
    (ended,) = attempt(tmp_path / "run", merged(own, {"model": {"path": str(tmp_path / "other.pt")}, "train": {"steps": 8}}),
                       "--resume", "auto")
    assert ended.code == 2, ended
    assert_says(ended.err, "the base of the adapters was ")


def test_a_worker_with_another_base(tmp_path: Path) -> None:
    """It is compared, as it is not sent."""
    write_case("linear", tmp_path)
    other = net_of("linear")
    with torch.no_grad():
        other.first.weight[3, 5] += 1e-6
    torch.jit.script(other).save(str(tmp_path / "other.pt"))
    own = settings("linear", tmp_path)
    message = message_of_odd_worker(tmp_path, own, merged(own, {"model": {"path": str(tmp_path / "other.pt")}}))
    assert_says(message, "the base of the adapters")


def test_a_rank_larger_than_both_sides(tmp_path: Path) -> None:
    write_case("linear", tmp_path)
    lora = {"rank": 50, "adapters": None}
    run = train(tmp_path / "run", settings("linear", tmp_path, model={"lora": lora}), workers=2)
    adapters = read_safetensors(run.folder / "adapters.safetensors")
    assert adapters["first.weight.lora_A"].shape == (50, 16) and adapters["first.weight.lora_B"].shape == (32, 50)
    base = net_of("linear").first.weight.detach().numpy()
    want = base + ALPHA / 50 * adapters["first.weight.lora_B"] @ adapters["first.weight.lora_A"]
    np.testing.assert_allclose(run.weights["first.weight"], want, rtol=1e-5, atol=1e-6)  # float32
    assert not np.allclose(run.weights["first.weight"], base)


# ---- models that cannot have adapters, or hold their weights in odd ways ------------------------------------------------

class Odd(nn.Module):
    """`kind` says what is odd."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.first, self.second, self.head = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, CLASSES)
        self.views: list[torch.Tensor] = []
        if kind == "transposed buffer":
            self.register_buffer("turned", self.first.weight.detach().t())
        elif kind == "part":
            self.views.append(self.first.weight.detach()[:8])
        elif kind == "two parameters":
            self.second.weight = nn.Parameter(self.first.weight.detach())
        elif kind == "buffer of the base":
            self.register_buffer("same", self.first.bias.detach())
        elif kind == "sparse":
            self.table = nn.Embedding(4, 16, sparse=True)
        elif kind == "integer":
            self.count = nn.Parameter(torch.zeros(2, 2, dtype=torch.int64), requires_grad=False)
        elif kind == "complex":
            self.turn = nn.Parameter(torch.zeros(2, dtype=torch.complex64), requires_grad=False)
        elif kind == "not finite":
            self.second.bias.data[3] = float("nan")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if hasattr(self, "table"):
            x = x + self.table(x[:, :1].long() * 0)[:, 0]
        return self.head(torch.relu(self.second(torch.relu(self.first(x)))))


ODD = {
    "transposed buffer": ({}, 2, "the model holds 'first.weight' a second time, as another view of the same memory"),
    "part": ({}, 2, "the model holds 'first.weight' a second time, as another view of the same memory"),
    "two parameters": ({}, 2, "the tensors 'first.weight' and 'second.weight' of the model share memory"),
    "buffer of the base": ({}, 2, "the tensors 'first.bias' and 'same' of the model share memory"),
    "sparse": ({"match": ["table.weight"]}, 2, "the gradient of parameter 'table.weight' is sparse, so that it cannot have an adapter"),
    "integer": ({"train": ["count"]}, 2, "model.lora.train: 'count' is int64, which cannot train"),
    "complex": ({}, 2, "'turn' is complex64, which safetensors files cannot hold"),
    "not finite": ({}, 5, "parameter 'second.bias' is the first that is not finite (1 of its 16 values)"),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_models(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(2)
    net = Odd(kind)
    if kind == "part":
        torch.jit.script(net).save(str(tmp_path / "odd.pt"))
    else:
        torch.jit.trace(net, (torch.zeros(2, 16),)).save(str(tmp_path / "odd.pt"))
    write_data(tmp_path)
    changes, code, says = ODD[kind]
    lora = {"match": ["first.weight"], "rank": 2} | changes
    own = recipe(tmp_path / "odd.pt", tmp_path / "data.safetensors", model={"lora": lora}, data={"eval": None})
    (ended,) = attempt(tmp_path / "run", own)
    assert ended.code == code, ended
    assert_says(ended.err, says)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_base_of_half_precision(dtype: torch.dtype, tmp_path: Path) -> None:
    """It stays as it is; the adapters are float32, and so are their gradients. The sums are rounded as the weights are."""
    write_case("linear", tmp_path)
    net = net_of("linear")
    for layer in (net.first, net.second):
        layer.to(dtype)

    class Cast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.head = net.first, net.second, net.head

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.first(x.to(self.first.weight.dtype)))
            return self.head(torch.relu(self.second(x)).float())

    torch.jit.script(Cast()).save(str(tmp_path / "half.pt"))
    run = train(tmp_path / "run", settings("linear", tmp_path, tmp_path / "half.pt"), workers=2)
    adapters = read_safetensors(run.folder / "adapters.safetensors")
    assert {value.dtype for value in adapters.values()} == {np.dtype(np.float32)}
    written = torch.jit.load(str(run.folder / "model.pt")).first.weight
    a, b = (torch.tensor(adapters[f"first.weight.lora_{part}"]) for part in "AB")
    assert written.dtype == dtype
    torch.testing.assert_close(written, net.first.weight + (b @ a * ALPHA / RANK).to(dtype), rtol=0.01, atol=0.01)
    assert not torch.equal(written, net.first.weight)


def test_forward_twice_in_a_step(tmp_path: Path) -> None:
    """A network that runs itself on two halves of its input: gradients of both reach A and B."""
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net_of("linear")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x) + self.net(x.flip(1))

    write_data(tmp_path)
    adapters = {name if name.startswith("x") else f"net.{name}": value for name, value in write_adapters("linear", tmp_path).items()}
    write_safetensors(tmp_path / "start.safetensors", adapters)
    torch.jit.script(Twice()).save(str(tmp_path / "twice.pt"))
    own = settings("linear", tmp_path, tmp_path / "twice.pt", model={"lora": {"match": ["net.first.*", "net.second.weight"], "train": ["net.head.*"]}})
    losses = train(tmp_path / "run", merged(own, {"train": {"steps": 3}})).losses
    net = Twice()
    trained = {name: torch.tensor(value).requires_grad_() for name, value in adapters.items()}
    optimizer = torch.optim.SGD(trained.values(), lr=SGD["lr"], momentum=SGD["momentum"])
    data = read_safetensors(tmp_path / "data.safetensors")
    for step in range(3):
        part = slice(step * BATCH, (step + 1) * BATCH)
        sums = {name: value.detach() + ALPHA / RANK * trained[f"{name}.lora_B"] @ trained[f"{name}.lora_A"]
                for name, value in net.named_parameters() if f"{name}.lora_A" in trained}
        whole = {name: value for name, value in trained.items() if "lora" not in name}
        loss = nn.functional.cross_entropy(functional_call(net, {**sums, **whole}, (torch.tensor(data["x"][part]),)), torch.tensor(data["y"][part]))
        np.testing.assert_allclose(losses[step], loss.item(), rtol=1e-5)  # float32, in another order
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# ---- files ----------------------------------------------------------------------------------------------------------

def test_written_models_train_again(tmp_path: Path) -> None:
    """All that trains in the model's file trains in the written one."""
    write_case("linear", tmp_path)
    first = train(tmp_path / "first", settings("linear", tmp_path))
    assert all(value.requires_grad for value in torch.jit.load(str(first.folder / "model.pt")).parameters())
    again = train(tmp_path / "again", recipe(first.folder / "model.pt", tmp_path / "data.safetensors", data={"eval": None}))
    assert not np.array_equal(again.weights["first.bias"], first.weights["first.bias"])


def test_adapters_that_are_read_are_not_replaced(tmp_path: Path) -> None:
    write_case("linear", tmp_path)
    (tmp_path / "run" / "run").mkdir(parents=True)
    file = tmp_path / "run" / "run" / "adapters.safetensors"
    (tmp_path / "start.safetensors").rename(file)
    (ended,) = attempt(tmp_path / "run", settings("linear", tmp_path, model={"lora": {"adapters": str(file)}}))
    assert ended.code == 2
    assert_says(ended.err, "is the same file as the adapters (model.lora.adapters)", "A file that is read is never written over")


def test_a_file_for_peft_is_not_ours(tmp_path: Path) -> None:
    write_case("linear", tmp_path)
    run = train(tmp_path / "first", settings("linear", tmp_path))
    theirs = run.folder / "adapters" / "adapter_model.safetensors"
    message = refused(tmp_path / "second", settings("linear", tmp_path, model={"lora": {"adapters": str(theirs)}}))
    assert_says(message, "model.lora.adapters: ", "This is a file for PEFT; adapters.safetensors of the same run has what decent-train reads")


def test_predictions_and_the_best_model(tmp_path: Path) -> None:
    """All of them with the adapters of the average, or of the best checkpoint."""
    write_case("linear", tmp_path)
    source = {"format": "safetensors", "path": str(tmp_path / "data.safetensors"), "limit": 40}
    own = settings("linear", tmp_path, data={"eval": source, "predict": source}, eval={"every_steps": 4},
                   checkpoint={"every_steps": 4, "keep_best": "loss"})
    run = train(tmp_path / "run", own, workers=2)
    (ended,) = attempt(tmp_path / "run", own, "--predict", tmp_path / "out.safetensors", "--checkpoint", "best")
    assert ended.code == 0, ended.err
    x = torch.tensor(read_safetensors(tmp_path / "data.safetensors")["x"][:40])
    best = torch.jit.load(str(run.folder / "model-best.pt"))(x)
    predicted = read_safetensors(tmp_path / "out.safetensors")
    np.testing.assert_allclose(predicted["output"], best.detach(), rtol=1e-4, atol=1e-6)  # float32, in other batches
    assert (run.folder / "adapters-best.safetensors").exists() and (run.folder / "adapters-best" / "adapter_config.json").exists()


def test_dry_run_tells_what_it_costs(tmp_path: Path) -> None:
    write_case("linear", tmp_path)
    (ended,) = attempt(tmp_path / "run", settings("linear", tmp_path), "--dry-run")
    trained = sum(value.size for value in write_adapters("linear", tmp_path).values())
    frozen = sum(value.numel() for name, value in net_of("linear").named_parameters() if not name.startswith("head"))
    assert_says(ended.out, f"{trained} parameters to train", f"{frozen} frozen", "2 adapters (rank 3, alpha 7.5): first.weight [32, 16], "
                "second.weight [32, 32]", "model.lora.train: train as a whole: head.weight, head.bias", f", with adapters {4 * (32 * 16 + 32 * 32) / 1024:.1f} KiB", "while gradients and sums are gone")


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(16, 2, batch_first=True), nn.Linear(16, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.unsqueeze(1)
        return self.head(self.attention(x, x, x)[0][:, 0])


class Endings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.ahead, self.head = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.ahead(torch.relu(self.first(x)))))


NOT_FOR_PEFT = {
    "attention": (Attention, {"match": ["*out_proj.weight"]}, "'attention.out_proj.weight' is read by torch.nn.MultiheadAttention"),
    "endings": (Endings, {"match": ["first.weight"], "train": ["head.*"]}, "PEFT would take 'ahead' for the trained module 'head'"),
}


@pytest.mark.parametrize("name", NOT_FOR_PEFT)
def test_what_peft_would_load_wrongly(name: str, tmp_path: Path) -> None:
    kind, lora, says = NOT_FOR_PEFT[name]
    torch.export.save(torch.export.export(kind().train(), (torch.zeros(BATCH, 16),)), tmp_path / "net.pt2")
    write_data(tmp_path)
    run = train(tmp_path, recipe(tmp_path / "net.pt2", tmp_path / "data.safetensors", model={"lora": lora}, data={"eval": None}))
    assert not (run.folder / "adapters").exists()
    assert_says((run.folder / "run.log").read_text(), says)
