"""What cannot be translated or trained: one message with the operator, the node, and the way out."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn
from torch._higher_order_ops.map import map as torch_map
from torch.export import Dim
from torch.export.pt2_archive._package import package_pt2

from exported import program_of, settings
from networks import vectors
from runs import assert_says, refused


class Applied(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.linear, self.function = nn.Linear(8, 4), function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.linear(x))


def message_for(program: torch.export.ExportedProgram, folder: Path, **changes: object) -> str:
    own = folder / "model"
    own.mkdir()
    torch.export.save(program, own / "model.pt2")
    return refused(folder / "run", settings(own / "model.pt2", vectors(), steps=2, **changes))


def test_loops_of_higher_order(tmp_path: Path) -> None:
    program = program_of(Applied(lambda y: torch_map(torch.sin, y)), torch.ones(2, 8))
    assert_says(message_for(program, tmp_path), "node 'map_impl' (torch.ops.higher_order.map_impl)", " of test_refused.py",
                "Python's for")


@torch.library.custom_op("decent_test::twice", mutates_args=())
def twice(x: Tensor) -> Tensor:
    return x * 2


@twice.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def test_operators_of_other_libraries(tmp_path: Path) -> None:
    program = program_of(Applied(twice), torch.ones(2, 8))
    assert_says(message_for(program, tmp_path), "(torch.ops.decent_test.twice.default)",
                "is an operator of 'decent_test'", "write what it computes with PyTorch's own functions")


@torch.library.custom_op("transformers::grouped_mm_fallback", mutates_args=())
def grouped_product(x: Tensor) -> Tensor:
    """By the name of the operator in transformers' mixtures of experts."""
    return x.clone()


@grouped_product.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def regions(y: Tensor) -> Tensor:
    return torchvision.ops.roi_align(y.reshape(1, 1, -1, 4), [torch.tensor([[0.0, 0.0, 1.0, 1.0]])], 2)


def boxes(y: Tensor) -> Tensor:
    return y[torchvision.ops.nms(y, y[:, 0], 0.5)]


def deformed(y: Tensor) -> Tensor:
    image = y.reshape(1, 1, -1, 4)
    return torchvision.ops.deform_conv2d(image, torch.zeros(1, 2, image.shape[2], 4), torch.ones(1, 1, 1, 1))


# What an operator of another library is used in, its name and the way out.
WAYS_OUT = {"experts": (grouped_product, "transformers.grouped_mm_fallback", 'model.set_experts_implementation("batched_mm")'),
            "regions": (regions, "torchvision.roi_align", "torch.nn.functional.grid_sample"),
            "boxes": (boxes, "torchvision.nms", "leave the choice of boxes out of the exported forward"),
            "deformed": (deformed, "torchvision.deform_conv2d", "torch.nn.functional.grid_sample")}


@pytest.mark.parametrize("name", WAYS_OUT)
def test_operators_of_other_libraries_with_a_way_out(name: str, tmp_path: Path) -> None:
    function, operator, way_out = WAYS_OUT[name]
    program = torch.export.export(Applied(function), (torch.ones(8, 8),))
    assert_says(message_for(program, tmp_path), f"(torch.ops.{operator}.default)", way_out)


def test_regions_and_deformed_convolutions_by_grid_sample() -> None:
    """The way out of these messages computes the same."""
    torch.manual_seed(0)
    image, (height, width) = torch.randn(1, 3, 12, 16), (12, 16)

    def sampled(xs: Tensor, ys: Tensor, padding: str) -> Tensor:
        grid = torch.stack([(2 * xs + 1) / width - 1, (2 * ys + 1) / height - 1], -1)
        return F.grid_sample(image, grid, padding_mode=padding, align_corners=False)

    left, top, right, bottom = 2.3, 3.1, 9.7, 10.2
    steps = (torch.arange(8) + 0.5) / 8  # two samples for each of four cells
    ys, xs = torch.meshgrid(top - 0.5 + steps * (bottom - top), left - 0.5 + steps * (right - left), indexing="ij")
    expected = torchvision.ops.roi_align(image, [torch.tensor([[left, top, right, bottom]])], 4, sampling_ratio=2, aligned=True)
    torch.testing.assert_close(F.avg_pool2d(sampled(xs[None], ys[None], "border"), 2), expected)

    weight, offsets = torch.randn(5, 3, 3, 3), torch.randn(1, 18, height, width)
    ys, xs = torch.meshgrid(torch.arange(height) - 1.0, torch.arange(width) - 1.0, indexing="ij")
    shifted = [sampled(xs + k % 3 + offsets[:, 2 * k + 1], ys + k // 3 + offsets[:, 2 * k], "zeros") for k in range(9)]
    ours = torch.einsum("nckhw,ock->nohw", torch.stack(shifted, 2), weight.flatten(2))
    torch.testing.assert_close(ours, torchvision.ops.deform_conv2d(image, offsets, weight, padding=1), rtol=1e-4, atol=1e-4)


def changed(folder: Path, change: Callable[[dict], None]) -> Path:
    """An archive whose graph, of linear and sin, somebody has changed."""
    (folder / "model").mkdir()
    file = folder / "model" / "model.pt2"
    torch.export.save(program_of(Applied(torch.sin), torch.ones(2, 8)), folder / "honest.pt2")
    with zipfile.ZipFile(folder / "honest.pt2") as honest, zipfile.ZipFile(file, "w") as hostile:
        for record in honest.namelist():
            content = honest.read(record)
            if record.endswith("models/model.json"):
                program = json.loads(content)
                change(program["graph_module"]["graph"])
                content = json.dumps(program).encode()
            hostile.writestr(record, content)
    return file


def sine_of(graph: dict) -> dict:
    node, = (node for node in graph["nodes"] if node["target"] == "torch.ops.aten.sin.default")
    return node


# Operator -> its arguments, of which MADE is a file that it would make, and what the message says of it. torch.export can
# write neither, but anybody else can; the second is TorchScript's own.
FILE_OPERATORS = {
    "from_file": ([("filename", "as_string", "MADE"), ("shared", "as_bool", True), ("size", "as_int", 4)],
                  "reads a file of the machine"),
    "save": ([("item", "as_tensor", {"name": "x"}), ("filename", "as_string", "MADE")], "does not have"),
}


@pytest.mark.parametrize("name", FILE_OPERATORS)
def test_files_of_the_machine(name: str, tmp_path: Path) -> None:
    arguments, says = FILE_OPERATORS[name]
    made = tmp_path / "made"
    inputs = [{"name": argument, "arg": {kind: str(made) if value == "MADE" else value}, "kind": 1}
              for argument, kind, value in arguments]
    file = changed(tmp_path, lambda graph: sine_of(graph).update(target=f"torch.ops.aten.{name}.default", inputs=inputs))
    assert_says(refused(tmp_path / "run", settings(file, vectors(), steps=2)), f"(torch.ops.aten.{name}.default)", says)
    assert not made.exists()


def test_tensors_of_many_dimensions(tmp_path: Path) -> None:
    """Conditions on the sizes of an input are one expression, which LibTorch's compiler goes down."""
    def change(graph: dict) -> None:
        size = [{"as_int": 1}] * 200_000
        for meta in graph["tensor_values"].values():
            meta.update(sizes=size, strides=size)

    assert_says(refused(tmp_path / "run", settings(changed(tmp_path, change), vectors(), steps=2)), "has more than 64 dimensions")


@pytest.mark.parametrize("name", ["n{}", "{:017b}"])
def test_programs_of_many_steps(name: str, tmp_path: Path) -> None:
    """That would overflow LibTorch's stack; also where all names are the same for TorchScript."""
    def change(graph: dict) -> None:
        last = sine_of(graph)
        at = graph["nodes"].index(last)
        value, chain = last["outputs"][0]["as_tensor"]["name"], []
        meta = graph["tensor_values"][value]
        names = [name.format(i).replace("0", "!").replace("1", "?") for i in range(60_000)] + [value]
        for before, after in zip(names, names[1:]):
            chain.append({**last, "inputs": [{**last["inputs"][0], "arg": {"as_tensor": {"name": before}}}],
                          "outputs": [{"as_tensor": {"name": after}}]})
        last["outputs"] = [{"as_tensor": {"name": names[0]}}]
        graph["nodes"][at + 1:at + 1] = chain
        graph["tensor_values"].update({each: meta for each in names})

    file = changed(tmp_path, change)
    assert_says(refused(tmp_path / "run", settings(file, vectors(), steps=2)), "a program of 600", "TorchScript runs up to 20000")


def test_lists_that_are_written(tmp_path: Path) -> None:
    def scaled(y: Tensor) -> Tensor:
        parts = [y * 1, y * 2]
        torch._foreach_mul_(parts, 0.5)
        return parts[0] + parts[1]

    assert_says(message_for(program_of(Applied(scaled), torch.ones(2, 8)), tmp_path), "(torch.ops.aten._foreach_mul_.Scalar)",
                "writes into a list of tensors: write it as a loop over the tensors")


def test_autocast(tmp_path: Path) -> None:
    def product(y: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return y @ y.T @ y

    assert_says(message_for(program_of(Applied(product), torch.ones(2, 8)), tmp_path), "runs under torch.autocast", "amp.dtype")


def test_decomposed_programs(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4)).train()
    program = program_of(model, torch.ones(2, 8)).run_decompositions()
    assert_says(message_for(program, tmp_path), "was decomposed (run_decompositions)",
                "save what torch.export.export gives, before it is decomposed")


def test_nothing_to_train(tmp_path: Path) -> None:
    program = program_of(nn.Linear(8, 4).requires_grad_(False), torch.ones(2, 8))
    assert_says(message_for(program, tmp_path), "has no trainable parameter", "requires_grad_(True) before torch.export.export")


class Mean(nn.Module):
    """Keeps a mean of its inputs, in a tensor that is no buffer, or in a part of one that has two names."""

    def __init__(self, buffers: bool) -> None:
        super().__init__()
        self.linear, self.dropout = nn.Linear(8, 4), nn.Dropout(0.0)
        self.means = torch.zeros(2, 8)
        if buffers:
            means = self.__dict__.pop("means")
            self.register_buffer("means", means)
            self.register_buffer("mean", means[0])

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.means[0].mul_(0.9).add_(x.mean(0), alpha=0.1)
        return self.dropout(self.linear(x - (self.mean if hasattr(self, "mean") else self.means[0])))


def test_a_constant_that_forward_writes(tmp_path: Path) -> None:
    assert_says(message_for(program_of(Mean(buffers=False), torch.ones(2, 8)), tmp_path),
                "writes into the tensor 'means' in forward", "register it as a buffer")


def test_a_view_of_a_buffer_that_forward_writes(tmp_path: Path) -> None:
    assert_says(message_for(program_of(Mean(buffers=True), torch.ones(2, 8)), tmp_path),
                "'means' and 'mean' as different views of one memory", "self.statistics[0] for a part of a buffer")


def test_a_weight_that_is_the_transpose_of_another(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 6, bias=False), nn.Linear(6, 8, bias=False))
    model[1].weight = nn.Parameter(model[0].weight.data.t())
    assert_says(message_for(program_of(model, torch.ones(2, 8)), tmp_path),
                "as different views of one memory, of which training changes", "F.linear(x, self.a.weight.t())")


def test_another_batch_than_the_file_has(tmp_path: Path) -> None:
    program = torch.export.export(nn.Linear(8, 4), (torch.ones(4, 8),))
    assert_says(message_for(program, tmp_path), "input is not as in the export: [4, 8]",
                "The file was exported for batches of 4, not of 8", "dynamic_shapes")


def test_data_of_another_shape(tmp_path: Path) -> None:
    program = program_of(nn.Linear(6, 4), torch.ones(2, 6))
    assert_says(message_for(program, tmp_path), "input 'input' of the model is [", "the field 'x' of a batch is [8, 8]",
                "they differ in dimension 1")


def test_larger_batches_than_the_file_allows(tmp_path: Path) -> None:
    program = torch.export.export(nn.Linear(8, 4), (torch.ones(2, 8),), dynamic_shapes=({0: Dim("batch", max=4)},))
    assert_says(message_for(program, tmp_path), "input is not as in the export")


def test_several_programs_without_a_mode(tmp_path: Path) -> None:
    program = program_of(nn.Linear(8, 4), torch.ones(2, 8))
    (tmp_path / "model").mkdir()
    file = tmp_path / "model" / "model.pt2"
    package_pt2(file, exported_programs={"a": program, "b": program})
    assert_says(refused(tmp_path / "run", settings(file, vectors())), "holds several programs ('a', 'b')", "'train' and 'eval'")


def test_two_programs_of_different_weights(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    file = tmp_path / "model" / "model.pt2"
    programs = {mode: program_of(nn.Linear(8, 4), torch.ones(2, 8)) for mode in ("train", "eval")}
    package_pt2(file, exported_programs=programs)
    assert_says(refused(tmp_path / "run", settings(file, vectors())), "holds two values of 'weight'", "from the same module")


@pytest.mark.parametrize("name", ["model.pt", "model"])
def test_an_archive_by_another_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    torch.export.save(program_of(nn.Linear(8, 4), torch.ones(2, 8)), tmp_path / "model" / "model.pt2")
    (tmp_path / "model" / "model.pt2").rename(tmp_path / "model" / name)
    assert_says(refused(tmp_path / "run", settings(tmp_path / "model" / name, vectors())), "torch.export archive", ".pt2")
