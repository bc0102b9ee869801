"""What a run writes is for inference: other readers than ours, in a process that did not write it, get the loss that the run
printed, the same each time.

Some networks by default, all of them in all formats with DECENT_PT2_ALL=1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export.pt2_archive._package import package_pt2

from exported import example, program_of, settings
from networks import (BiLstm, Bert, Cnn, Fields, Gpt, StochasticDepth, drop_as_torchvision, drop_as_transformers,
                      drop_in_place, images, next_words, vectors, words)
from observed import OBSERVED
from program import run_alone
from runs import Run, assert_says, train, write_recipe

READER = Path(__file__).with_name("read_export.py")
STEPS = 6


# ---- networks that train and evaluate in different ways ------------------------------------------------------------

class Norms(nn.Module):
    """A norm of each kind, one of them frozen in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.frozen, self.one = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.BatchNorm2d(8, momentum=0.3)
        self.instance = nn.InstanceNorm2d(8, affine=True, track_running_stats=True)
        self.group, self.layer = nn.GroupNorm(2, 8), nn.LayerNorm(8)
        self.flat, self.head = nn.BatchNorm1d(8, affine=False), nn.Linear(8, 4)
        self.frozen.running_var.fill_(2.0)

    def train(self, mode: bool = True) -> Norms:
        super().train(mode)
        self.frozen.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        x = self.group(self.instance(self.one(self.frozen(self.stem(x)))))
        return self.head(self.flat(self.layer(x.mean((2, 3)))))


class Dropouts(nn.Module):
    """Every kind of dropout, in place too."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 4)
        self.drop, self.planes, self.alpha = nn.Dropout(0.3), nn.Dropout2d(0.3), nn.AlphaDropout(0.2)
        self.features, self.in_place = nn.FeatureAlphaDropout(0.2), nn.Dropout(0.3, inplace=True)
        self.slope = nn.RReLU()

    def forward(self, x: Tensor) -> Tensor:
        x = self.slope(self.features(self.planes(self.stem(x)))).mean((2, 3))
        return self.head(self.in_place(self.alpha(self.drop(x)) * 1.0))


class PlainDropouts(nn.Module):
    """Those that ONNX has."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4)
        self.drop, self.in_place = nn.Dropout(0.3), nn.Dropout(0.3, inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.drop(self.norm(self.stem(x)).relu().mean((2, 3)))
        return self.head(self.in_place(x * 2.0))


class Writes(nn.Module):
    """Buffers and parameters that forward writes: under no_grad, through a view, as spectral norm does."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8))
        self.dropout, self.last = nn.Dropout(0.2), nn.Linear(8, 4)
        self.register_buffer("means", torch.zeros(2, 8))
        self.limited = nn.Parameter(torch.full((8,), 3.0))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.limited.clamp_(-1.0, 2.0)
            if self.training:
                self.means[1].mul_(0.9).add_(x.mean(0), alpha=0.1)
        return self.last(self.dropout(self.first(x) * self.limited) - self.means[1])


class Shortened(nn.Module):
    """Looking up a row shortens it."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(32, 16, max_norm=0.5), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.table(x).mean(1))


class Conditional(nn.Module):
    """Dropout inside of what torch.cond runs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.drop, self.last = nn.Linear(8, 16), nn.Dropout(0.4), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.cond(self.first.bias.sum() > 0, lambda h: F.dropout(h, 0.4, self.training) * 2,
                            lambda h: F.dropout(h, 0.4, self.training), (self.first(x),))
        return self.last(self.drop(hidden))


class Mixed(nn.Module):
    """Batch norm, dropout and stochastic depth, each in a block."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 8, 3, stride=2), nn.Linear(8, 4)
        self.convs = nn.ModuleList([nn.Conv2d(8, 8, 3, padding=1) for _ in range(3)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(8) for _ in range(3)])
        self.drop = nn.Dropout(0.2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for index, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            y = self.drop(norm(conv(x)).relu())
            if self.training:
                keep = 1 - 0.2 * (index + 1)
                y = y * y.new_empty((y.shape[0], 1, 1, 1)).bernoulli_(keep).div_(keep)
            x = x + y
        return self.head(x.mean((2, 3)))


class OwnNoise(nn.Module):
    """Noise in training alone, which one program cannot tell from noise that is always there."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            x = x + 0.3 * torch.randn_like(x)
        return self.last(self.norm(self.first(x)).relu())


Data = Callable[[], Fields]
small_images: Data = partial(images, 16)
NETWORKS: dict[str, tuple[Callable[[], nn.Module], Data, tuple[str, ...]]] = {
    "cnn": (partial(Cnn, dropout=0.5), small_images, ("pt2", "two", "eval", "dynamo", "legacy", "script")),
    "gpt": (partial(Gpt, dropout=0.2), next_words, ("pt2", "two", "eval", "dynamo")),
    "bert": (partial(Bert, dropout=0.2), words, ("pt2", "two", "eval", "dynamo")),
    "lstm": (partial(BiLstm, dropout=0.5), words, ("pt2", "two", "eval", "script")),
    "norms": (Norms, small_images, ("pt2", "two", "eval", "script")),
    "dropouts": (Dropouts, small_images, ("pt2", "two", "eval")),
    "plain_dropouts": (PlainDropouts, small_images, ("pt2", "two", "dynamo", "legacy", "script")),
    "writes": (Writes, vectors, ("pt2", "two")),
    "mixed": (Mixed, small_images, ("pt2", "two", "eval", "dynamo", "legacy")),
    "norms_and_dropout": (partial(Cnn, dropout=0.1), partial(images, 24), ("pt2", "two")),
    "qat_channels": (OBSERVED["a scale for each channel"], vectors, ("pt2",)),
    "qat_one_scale": (OBSERVED["one scale"], vectors, ("pt2",)),
    "two_results": (OBSERVED["two results"], vectors, ("pt2",)),
    "shortened": (Shortened, words, ("pt2",)),
    "conditional": (Conditional, vectors, ("pt2", "two", "eval")),
    "own_noise": (OwnNoise, vectors, ("two", "eval", "script")),
    "depth_torchvision": (partial(StochasticDepth, drop_as_torchvision), vectors,
                          ("pt2", "two", "eval", "dynamo", "legacy")),
    "depth_transformers": (partial(StochasticDepth, drop_as_transformers), vectors, ("pt2", "two", "eval")),
    "depth_in_place": (partial(StochasticDepth, drop_in_place), vectors, ("pt2", "two", "eval")),
    "depth_rare": (partial(StochasticDepth, drop_as_torchvision, 0.9), vectors, ("pt2", "dynamo", "legacy")),
}
CHOSEN = {("cnn", "pt2"), ("gpt", "pt2"), ("lstm", "pt2"), ("norms", "pt2"), ("dropouts", "pt2"), ("writes", "pt2"),
          ("conditional", "pt2"), ("qat_channels", "pt2"), ("two_results", "pt2"), ("own_noise", "two"), ("depth_torchvision", "pt2"), ("depth_transformers", "pt2"),
          ("depth_in_place", "pt2"), ("plain_dropouts", "dynamo"), ("plain_dropouts", "legacy"),
          ("depth_torchvision", "dynamo"), ("depth_torchvision", "legacy"), ("cnn", "script")}
ALL = os.environ.get("DECENT_PT2_ALL", "0") == "1"
CASES = [(name, form) for name, (_, _, forms) in NETWORKS.items() for form in forms if ALL or (name, form) in CHOSEN]


# ---- files ---------------------------------------------------------------------------------------------------------

def write_model(model: nn.Module, form: str, data: Fields, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    x = example(data)
    if form == "script":
        torch.jit.script(model).save(str(folder / "model.pt"))
        return folder / "model.pt"
    if form in ("dynamo", "legacy"):
        how = {"dynamic_shapes": ({0: torch.export.Dim("batch")},), "optimize": False, "verbose": False}
        if form == "legacy":
            how = {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False,
                   "dynamic_axes": {"x": {0: "batch"}}}
        torch.onnx.export(model, (x,), str(folder / "model.onnx"), dynamo=form == "dynamo", input_names=["x"], **how)
        return folder / "model.onnx"
    if form == "two":
        programs = {mode: program_of(model.train(mode == "train"), x) for mode in ("train", "eval")}
        package_pt2(folder / "model.pt2", exported_programs=programs)
    else:
        torch.export.save(program_of(model.train(form != "eval"), x), folder / "model.pt2")
    return folder / "model.pt2"


def trained(name: str, form: str, folder: Path, **changes: object) -> tuple[Run, Path, Fields]:
    """A run, the model that it wrote in the format of its file, and its data."""
    make, data_of, _ = NETWORKS[name]
    torch.manual_seed(1)
    data = data_of()
    file = write_model(make().train(), form, data, folder)
    run = train(folder, settings(file, data, steps=STEPS, **changes))
    return run, run.folder / file.name, data


@dataclass(frozen=True)
class Read:
    losses: list[float]
    random: list[str]


@pytest.fixture(scope="module")
def read() -> Iterator[Callable[[Path, Fields], Read]]:
    """Reads files in another process, which has not trained or written them; one for all files, as loading the packages takes seconds."""
    with subprocess.Popen([sys.executable, READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as reader:
        def read_one(file: Path, data: Fields) -> Read:
            np.savez(file.parent / "data.npz", **data)
            reader.stdin.write(f"{file}\t{file.parent / 'data.npz'}\n")
            found = json.loads(reader.stdout.readline())
            assert "error" not in found, found["error"]
            return Read(**found)

        yield read_one
        reader.stdin.close()


@pytest.mark.parametrize(("name", "form"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_other_readers_get_what_the_run_says(name: str, form: str, read, tmp_path: Path) -> None:
    run, file, data = trained(name, form, tmp_path)
    found = read(file, data)
    assert found.losses[0] == found.losses[1] == found.losses[2]
    # Another library's kernels and another order of sums: 1e-6 of the loss. A dropout that is on moves it by 1e-2.
    np.testing.assert_allclose(found.losses[0], run.evaluation["loss"], rtol=1e-5)
    assert not found.random


# ---- what training needs -------------------------------------------------------------------------------------------

TRAINS = [("cnn", "pt2"), ("writes", "pt2"), ("depth_torchvision", "pt2"), ("depth_transformers", "pt2"),
          ("plain_dropouts", "legacy"), ("depth_torchvision", "dynamo")]


@pytest.mark.parametrize(("name", "form"), TRAINS)
@pytest.mark.filterwarnings("ignore")
def test_export_mode_train_keeps_what_training_needs(name: str, form: str, tmp_path: Path) -> None:
    """A run that goes on from the file is the run that would have gone on, step by step."""
    first, file, data = trained(name, form, tmp_path / "first", model={"export_mode": "train"})
    weights = first.folder / "model.safetensors"
    original = settings(tmp_path / "first" / file.name, data, steps=STEPS, model={"weights": str(weights)})
    (tmp_path / "expected").mkdir()
    expected = train(tmp_path / "expected", original)
    again = train(tmp_path / "again", {**original, "model": {"path": str(file)}})
    np.testing.assert_array_equal(again.losses, expected.losses)
    assert again.evaluation["loss"] == expected.evaluation["loss"]
    assert "written for inference" not in again.ended[0].out + again.ended[0].err


LOST = {("cnn", "pt2"): ["norm1.num_batches_tracked"], ("gpt", "pt2"): ["dropout of scaled_dot_product_attention 2"],
        ("depth_torchvision", "pt2"): ["stochastic depth 3"], ("depth_torchvision", "dynamo"): ["stochastic depth"],
        ("norms", "pt2"): ["no longer frozen in eval mode: batch_norm 1"], ("writes", "pt2"): ["means", "limited"]}


@pytest.mark.parametrize(("name", "form"), LOST)
@pytest.mark.filterwarnings("ignore")
def test_a_file_for_inference_says_what_its_training_lacks(name: str, form: str, tmp_path: Path) -> None:
    first, file, data = trained(name, form, tmp_path / "first")
    assert "written for inference" not in first.ended[0].err
    again = train(tmp_path / "again", settings(file, data, steps=STEPS))
    assert_says(again.ended[0].err, "warning: model", "was written for inference", *LOST[name, form],
                "model.export_mode: train")
    third = train(tmp_path / "third", settings(again.folder / file.name, data, steps=STEPS))
    assert_says(third.ended[0].err, "was written for inference", *LOST[name, form])


@pytest.mark.filterwarnings("ignore")
def test_noise_that_no_mode_switches_is_said_before_training_and_at_the_export(tmp_path: Path) -> None:
    """In both formats; two programs say nothing of the kind."""
    for form in ("pt2", "dynamo", "two"):
        run, _, _ = trained("own_noise", form, tmp_path / form)
        said = run.ended[0].err.count("random in evaluation, too: ")
        assert said == (0 if form == "two" else 2), run.ended[0].err


def test_a_traced_dropout_that_stays_on_is_said_at_the_export_too(tmp_path: Path) -> None:
    data = vectors()
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.3), nn.Linear(16, 4)).train()
    torch.jit.trace(model, example(data), check_trace=False).save(str(tmp_path / "model.pt"))
    run = train(tmp_path, settings(tmp_path / "model.pt", data, steps=STEPS))
    assert run.ended[0].err.count("1 x dropout") == 2, run.ended[0].err


def nodes_of_dropout(x: str, y: str) -> list:
    """As PyTorch's legacy exporter writes a dropout in place."""
    import onnx
    from onnx import helper

    keep = helper.make_tensor("keep", onnx.TensorProto.FLOAT, [], [0.7])
    return [helper.make_node("Constant", [], [f"{y}_keep"], value=keep),
            helper.make_node("RandomUniformLike", [x], [f"{y}_random"]),
            helper.make_node("Less", [f"{y}_random", f"{y}_keep"], [f"{y}_less"]),
            helper.make_node("Cast", [f"{y}_less"], [f"{y}_cast"], to=onnx.TensorProto.FLOAT),
            helper.make_node("Div", [f"{y}_cast", f"{y}_keep"], [f"{y}_mask"]),
            helper.make_node("Mul", [x, f"{y}_mask"], [y])]


def onnx_of_functions(folder: Path, inside: slice) -> Path:
    """Two layers, each with a dropout, of which the nodes `inside` are a function that both call."""
    import onnx
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(1)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    nodes = nodes_of_dropout("x", "y")[inside]
    inputs = [name for name in nodes[0].input] if len(nodes) == 1 else ["x"]
    function = helper.make_function("local", "drop", inputs, [nodes[-1].output[0]], nodes, opsets)
    graph, values = [], "x"
    for layer, (rows, columns) in enumerate([(8, 16), (16, 4)]):
        graph.append(helper.make_node("MatMul", [values, f"w{layer}"], [f"h{layer}"]))
        calls = nodes_of_dropout(f"h{layer}", f"d{layer}")
        replaced = calls[inside]
        read = [replaced[0].input[0]] if len(replaced) == 1 else [f"h{layer}"]
        calls[inside] = [helper.make_node("drop", read, [replaced[-1].output[0]], domain="local")]
        graph += calls
        values = f"d{layer}"
    shapes = {"x": ["n", 8], values: ["n", 4]}
    infos = {name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()}
    weights = [numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) * 0.3, f"w{index}")
               for index, shape in enumerate([(8, 16), (16, 4)])]
    made = helper.make_graph(graph, "g", [infos["x"]], [infos[values]], weights)
    folder.mkdir(parents=True, exist_ok=True)
    model = helper.make_model(made, functions=[function], opset_imports=opsets, ir_version=9)
    onnx.save(model, str(folder / "model.onnx"))
    return folder / "model.onnx"


def test_random_masks_in_a_function_that_is_called_twice(read, tmp_path: Path) -> None:
    data = vectors()
    run = train(tmp_path, settings(onnx_of_functions(tmp_path, slice(0, 6)), data, steps=STEPS))
    found = read(run.folder / "model.onnx", data)
    np.testing.assert_allclose(found.losses, run.evaluation["loss"], rtol=1e-5)
    assert not found.random


def test_random_masks_over_several_functions_have_no_form_for_inference(tmp_path: Path) -> None:
    """The run keeps its other files, and says why it has no model.onnx and what to do."""
    data = vectors()
    file = onnx_of_functions(tmp_path, slice(1, 2))
    run = train(tmp_path, settings(file, data, steps=STEPS))
    assert not (run.folder / "model.onnx").exists() and (run.folder / "model.pt").exists()
    assert_says(run.ended[0].err, "model.onnx", "is not written", "no form for inference", "model.export_mode: train")
    again = train(tmp_path / "again", settings(file, data, steps=STEPS, model={"export_mode": "train"}))
    assert (again.folder / "model.onnx").exists()


def test_one_entry_of_the_archive_changes(tmp_path: Path) -> None:
    """The program, which stays the text that torch.export.load reads; an eval export is copied as it is."""
    _, file, data = trained("cnn", "pt2", tmp_path / "first")
    before, after = zipfile.ZipFile(tmp_path / "first" / "model.pt2"), zipfile.ZipFile(file)
    changed = {name for name in before.namelist() if before.read(name) != after.read(name)}
    assert {name for name in changed if "/data/weights/weight_" not in name} == {"model/models/model.json"}
    assert set(after.namelist()) - set(before.namelist()) == {
        "model/extra/decent_train.data.json", "model/extra/decent_train.lost_for_inference"}
    write_recipe(tmp_path, settings(write_model(Cnn(), "eval", data, tmp_path), data))
    ended = run_alone("--config", tmp_path / "recipe.yaml", "--checkpoint", "none", "--export", tmp_path / "x.pt2", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert (tmp_path / "x.pt2").read_bytes() == (tmp_path / "model.pt2").read_bytes()
