"""decent_train.export: what it writes trains as the module does in eager PyTorch, or the message names the trap.

The whole zoo (python_zoo.py), each module in each of its formats, takes some 20 minutes: DECENT_EXPORT_ZOO=1.
"""

from __future__ import annotations

import os
import random
import re
import stat
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import decent_train
import python_zoo
from decent_train import Check, ExportError, TrainingError
from decent_train.exporting.reference import Reference
from decent_train.exporting.ways import WAYS, Shapes, Way
from program import PROGRAM, launcher_variables
from python_zoo import FEATURES, ZOO, Cnn, Fields, Net, Row, fields_of, make
from runs import NO_CHECKPOINTS, Run, train
from tensors import write_safetensors

STEPS, BATCH, MOMENTUM = 5, 4, 0.9
FORMATS = {"pt2": "torch.export", "pt": "TorchScript", "onnx": "ONNX"}
SHORT = ["mlp-pt2", "cnn-onnx", "cnn_dropout-pt2", "branching-pt2", "tied-pt2", "data_branch-pt2", "several-pt2", "frozen-onnx",
         "gradient_reversal-pt2", "gradient_hook-pt", "backward_hook-pt2", "hook_in_forward-pt2", "optimizer_hook-pt2",
         "annealed-pt2", "fixed_batch-pt2", "python_random-pt2", "no_gradients-pt2", "meta-pt2", "lazy-pt2", "no_parameters-pt2"]
ALL = [f"{name}-{suffix}" for name, row in ZOO.items() for suffix in row.formats]
# Losses of the program and of eager PyTorch over 5 steps: the operators are the same, and sums may have another order.
TOLERANCE = 1e-5


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DECENT_TRAIN", str(PROGRAM))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def example(fields: Fields) -> tuple[Tensor, ...] | Fields:
    """Of three samples."""
    inputs = {name: field[:3] for name, field in fields.items() if name != "y"}
    return tuple(inputs.values()) if set(inputs) == {"x"} else inputs


def export(model: nn.Module, fields: Fields, path: Path) -> Check:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return decent_train.export(model, example(fields), path)


# ---- training from the file against eager PyTorch ------------------------------------------------------------------

def loss_of(result: object, fields: Fields, row: Row, output: str | None) -> Tensor:
    if row.loss == "output":
        return result["loss"]
    if isinstance(result, dict):
        result = result[output]
    elif isinstance(result, tuple):
        result = result[0]
    if row.loss == "mse":
        return F.mse_loss(result, fields["y"])
    return F.cross_entropy(result if row.class_dim == 1 else result.flatten(0, -2), fields["y"] if row.class_dim == 1 else
                           fields["y"].flatten())


def call(model: nn.Module, fields: Fields) -> object:
    inputs = {name: field for name, field in fields.items() if name != "y"}
    return model(*inputs.values()) if set(inputs) == {"x"} else model(**inputs)


def rows_of(fields: Fields, step: int) -> Fields:
    """Of a step of training; "similar" data have a column for each sample of the batch."""
    return {name: field[step * BATCH:(step + 1) * BATCH] for name, field in fields.items()}


def eager_losses(model: nn.Module, fields: Fields, row: Row, output: str | None) -> list[float]:
    sgd = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=row.lr, momentum=MOMENTUM)
    losses = []
    for step in range(STEPS):
        batch = rows_of(fields, step)
        loss = loss_of(call(model, batch), batch, row, output)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def eager_evaluation(model: nn.Module, weights: dict[str, np.ndarray], fields: Fields, row: Row, output: str | None) -> float:
    model.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
    model.eval()
    return float(np.mean([loss_of(call(model, batch), batch, row, output).item()
                          for batch in (rows_of(fields, step) for step in range(STEPS))]))


def run_of(check: Check, fields: Fields, row: Row, folder: Path) -> Run:
    data = folder / "data.safetensors"
    write_safetensors(data, {name: field.numpy() for name, field in fields.items()})
    source = {"format": "safetensors", "path": str(data)}
    loss = {"loss": row.loss, "class_dim": row.class_dim} if row.loss != "output" else {}
    return train(folder, {
        "model": {**loss, **check.recipe},
        "data": {"train": source, "eval": source, "batch_size": BATCH, "eval_batch_size": BATCH, "shuffle": False},
        "train": {"steps": STEPS},
        "optimizer": {"name": "sgd", "lr": row.lr, "momentum": MOMENTUM, "weight_decay": 0.0},
        "schedule": {"name": "constant"},
        "eval": {"every_steps": STEPS if row.noisy else None, "every_epochs": None},
        "checkpoint": NO_CHECKPOINTS,
        "log": {"every_steps": 1},
    })


def unwrapped(model: nn.Module) -> nn.Module:
    return getattr(model, "_orig_mod", getattr(model, "module", model))


def assert_trains_as_eager(name: str, check: Check, folder: Path) -> float:
    """The largest relative difference of a loss."""
    row, fields = ZOO[name], fields_of(name)
    run, model, output = run_of(check, fields, row, folder), unwrapped(make(name)), check.recipe.get("output")
    if row.noisy:
        assert len(set(run.losses)) == STEPS
        ours, expected = [run.evaluation["loss"]], [eager_evaluation(model, run.weights, fields, row, output)]
    else:
        ours, expected = list(run.losses), eager_losses(model, fields, row, output)
    np.testing.assert_allclose(ours, expected, rtol=TOLERANCE)
    return float(np.max(np.abs(np.array(ours) / np.array(expected) - 1)))


@pytest.mark.parametrize("case", ALL if os.environ.get("DECENT_EXPORT_ZOO") else SHORT)
def test_zoo(case: str, tmp_path: Path) -> None:
    name, suffix = case.split("-")
    row, path, begin = ZOO[name], tmp_path / f"model.{suffix}", time.monotonic()
    if suffix in (row.refused or {}):
        with pytest.raises(ExportError, match=row.refused[suffix]) as error:
            export(make(name), fields_of(name), path)
        assert list(tmp_path.iterdir()) == []
        said = re.search(row.refused[suffix], str(error.value))
        print(f"\n| {name} | {suffix} | {time.monotonic() - begin:.1f} s | refused: {said.group()} |")
        return
    check = export(make(name), fields_of(name), path)
    seconds = time.monotonic() - begin
    assert check.format == (row.written or FORMATS).get(suffix, FORMATS[suffix])
    assert check.path.exists() and list(tmp_path.iterdir()) == [check.path]
    apart = assert_trains_as_eager(name, check, tmp_path)
    print(f"\n| {name} | {suffix} | {seconds:.1f} s | {check.format}: {apart:.1e} |")


# ---- the comparison finds what exports by hand get wrong -----------------------------------------------------------

class Attention(nn.Module):
    """Its dropout is a number in training, and is gone in a program of eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 16), nn.Linear(16, python_zoo.CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x).unsqueeze(1)
        y = F.scaled_dot_product_attention(y, y, y, dropout_p=0.5 if self.training else 0.0)
        return self.last(y.squeeze(1))


def program_in_eval_mode(reference: Reference, shapes: Shapes, path: Path) -> None:
    torch.export.save(torch.export.export(reference.module.eval(), reference.example.args, dynamic_shapes=shapes), path)


def program_of_one_size(reference: Reference, shapes: Shapes, path: Path) -> None:
    torch.export.save(torch.export.export(reference.module.train(), reference.example.args), path)


def trace_in_eval_mode(reference: Reference, shapes: Shapes, path: Path) -> None:
    torch.jit.trace(reference.module.eval(), reference.example.args).save(str(path))


def onnx_in_eval_mode(reference: Reference, shapes: Shapes, path: Path) -> None:
    torch.onnx.export(reference.module.eval(), reference.example.args, str(path), dynamo=True, optimize=False,
                      dynamic_shapes=shapes, verbose=False)


def onnx_as_by_default(reference: Reference, shapes: Shapes, path: Path) -> None:
    torch.onnx.export(reference.module.train(), reference.example.args, str(path), dynamo=True, dynamic_shapes=shapes,
                      verbose=False)


MISTAKES = {
    "eval mode baked in": (Attention, (3, FEATURES), ".pt2", program_in_eval_mode, "in train mode, 3 samples"),
    "a fixed batch": (Net, (3, FEATURES), ".pt2", program_of_one_size, r"the file fails in eval mode, 4 samples.*\[3, 8\]"),
    "a traced mode": (lambda: Cnn(0.5), (3, 3, 16, 16), ".pt", trace_in_eval_mode, "in train mode, 3 samples"),
    "lost dropout": (lambda: Cnn(0.5), (3, 3, 16, 16), ".onnx", onnx_in_eval_mode, "in train mode, 3 samples"),
    "folded batch norm": (Cnn, (3, 3, 16, 16), ".onnx", onnx_as_by_default, "do not train in the file: .*'norm1.weight'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_usual_mistakes_are_found(mistake: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_model, shape, suffix, write, message = MISTAKES[mistake]
    monkeypatch.setitem(WAYS, suffix, (Way("by hand", suffix, write),))
    with pytest.raises(ExportError, match=message):
        decent_train.export(make_model(), torch.randn(shape), tmp_path / f"m{suffix}")
    assert list(tmp_path.iterdir()) == []


# ---- what stays as it was ------------------------------------------------------------------------------------------

def bits(tensors: Iterator[tuple[str, Tensor]]) -> dict[str, bytes]:
    return {name: tensor.detach().numpy().tobytes() for name, tensor in tensors}


def everything(model: nn.Module) -> list[object]:
    return [bits(model.named_parameters()), bits(model.named_buffers()), [id(each) for each in model.parameters()],
            [each.training for each in model.modules()], [each.requires_grad for each in model.parameters()],
            [None if each.grad is None else each.grad.tolist() for each in model.parameters()],
            [dict(each._forward_hooks) for each in model.modules()], torch.get_rng_state().tolist(), random.getstate(),
            repr(np.random.get_state())]


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_module_stays_as_it_was(suffix: str, tmp_path: Path) -> None:
    model = Cnn(0.5).train()
    model.conv2.requires_grad_(False)
    model.norm1.eval()
    model.conv1.weight.grad = torch.ones_like(model.conv1.weight)
    versions = [each._version for each in model.parameters()]
    model.register_forward_hook(lambda module, inputs, output: None) if suffix != "pt" else None
    before = everything(model)
    try:
        decent_train.export(model, torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(1)), tmp_path / f"m.{suffix}")
    except ExportError as error:  # neither TorchScript nor ONNX keeps a layer in eval mode
        assert suffix != "pt2" and "'norm1'" in str(error)
    assert everything(model) == before
    assert [each._version for each in model.parameters()] == versions


def test_a_counter_and_a_buffer_stay(tmp_path: Path) -> None:
    model = python_zoo.Counting().eval()
    check = decent_train.export(model, torch.randn(3, FEATURES), tmp_path / "m.pt2")
    assert model.calls == 0 and not model.training
    assert any("eval mode" in note for note in check.notes) and any("'calls'" in note for note in check.notes)


# ---- what a user reads ---------------------------------------------------------------------------------------------

def test_check_says_what_was_done(tmp_path: Path) -> None:
    check = decent_train.export(Cnn(0.5), torch.zeros(1, 3, 16, 16), tmp_path / "model.pt2")
    text = str(check)
    assert text.startswith(f"{tmp_path / 'model.pt2'} (torch.export)\n")
    for expected in ("eval mode: outputs of batches of 3 and 1", "gradients and buffers of batches of 2 and 3, with the same "
                     "random numbers", "a step of training by the program", "the example has one sample"):
        assert expected in text
    assert check.path == tmp_path / "model.pt2" and check.recipe == {"path": str(check.path)}
    assert repr(check) == text and check.largest_difference <= 1e-4


def test_fallback_is_said_twice(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"wrote TorchScript, 'model.pt', in place of 'model.pt2'.*python_zoo.py:\d+: if bool"):
        check = decent_train.export(python_zoo.Branch(), torch.randn(3, FEATURES), tmp_path / "model.pt2")
    assert check.path.name == "model.pt" and check.notes[0].startswith("wrote TorchScript")
    assert [each.name for each in tmp_path.iterdir()] == ["model.pt"]


def test_fallback_replaces_no_file(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_text("mine")
    with pytest.raises(ExportError, match="'model.pt' is there already"):
        decent_train.export(python_zoo.Branch(), torch.randn(3, FEATURES), tmp_path / "model.pt2")
    assert (tmp_path / "model.pt").read_text() == "mine"


def test_a_failed_check_keeps_the_older_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_text("older")
    with pytest.raises(ExportError, match="Reverse"):
        decent_train.export(python_zoo.Reversed(), torch.randn(3, FEATURES), path)
    assert path.read_text() == "older" and list(tmp_path.iterdir()) == [path]
    decent_train.export(Net(), torch.randn(3, FEATURES), path)
    assert path.read_bytes()[:2] == b"PK" and list(tmp_path.iterdir()) == [path]


def test_fixed_batch(tmp_path: Path) -> None:
    check = decent_train.export(python_zoo.FixedBatch(), torch.randn(3, FEATURES), tmp_path / "m.pt2", dynamic_batch=False)
    assert any("data.batch_size" in note and " 3" in note for note in check.notes)


class Sizes(Net):
    """Runs at other sizes, and differently."""

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(x)
        return self.last(hidden * 2 if x.shape[0] == 3 else hidden)


def test_a_branch_on_the_size_is_not_baked_in(tmp_path: Path) -> None:
    """torch.export would fix the size; TorchScript keeps the branch."""
    with pytest.warns(UserWarning, match="specialized it to be a constant|Constraints violated"):
        check = decent_train.export(Sizes(), torch.randn(3, FEATURES), tmp_path / "m.pt2")
    assert check.format == "TorchScript"


def test_samples_that_depend_on_one_another(tmp_path: Path) -> None:
    class BatchSecond(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.RNN(FEATURES, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x)[0].flip(0)

    def notes(model: nn.Module, x: Tensor, name: str) -> str:
        return " ".join(decent_train.export(model, x, tmp_path / name).notes)

    assert "depends on the other samples" in notes(BatchSecond(), torch.randn(3, 5, FEATURES), "second.pt")
    assert "depends on the other samples" not in notes(Cnn(), torch.randn(3, 3, 16, 16), "first.pt")


@pytest.mark.parametrize("last", [1, 4, 10])
def test_an_interrupt_leaves_nothing(last: int, tmp_path: Path) -> None:
    """Ctrl-C in the first evaluation, in training, and while torch.export traces."""
    calls: list[bool] = []

    class Interrupted(Net):
        def forward(self, x: Tensor) -> Tensor:
            calls.append(self.training)
            if len(calls) == last:
                raise KeyboardInterrupt
            return super().forward(x)

    model, x = Interrupted().eval(), torch.randn(3, FEATURES)
    before = everything(model)
    with pytest.raises(KeyboardInterrupt):
        decent_train.export(model, x, tmp_path / "m.pt2")
    assert len(calls) == last
    assert everything(model) == before and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("inputs", "message"), [
    ((torch.randn(3, FEATURES), torch.randn(3)), r"do not fit forward\(x"),
    ({"z": torch.randn(3, FEATURES)}, r"do not fit forward\(x"),
    ((), r"do not fit forward\(x"),
    ("x", "example_inputs is of type str"),
    (([1.0],), "is of type list"),
    (torch.tensor(1.0), "dimension 0 of each input has to be the batch"),
    (torch.randn(0, FEATURES), "a batch of 0 samples"),
    (torch.randn(3, FEATURES + 1), "the module itself fails in eval mode, 4 samples: .*shapes cannot be multiplied"),
])
def test_wrong_inputs(inputs: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=message):
        decent_train.export(Net(), inputs, tmp_path / "m.pt2")
    assert list(tmp_path.iterdir()) == []


def test_wrong_paths_and_modules(tmp_path: Path) -> None:
    x = torch.randn(3, FEATURES)
    closed = tmp_path / "closed"
    closed.mkdir()
    for path, message in ((tmp_path / "m.pth", r"has to end in .pt2 \(torch.export\)"), (tmp_path / "no" / "m.pt2", "is not there")):
        with pytest.raises(ExportError, match=message):
            decent_train.export(Net(), x, path)
    if os.getuid() != 0:  # root may write everywhere
        closed.chmod(stat.S_IRUSR | stat.S_IXUSR)
        with pytest.raises(ExportError, match="no permission"):
            decent_train.export(Net(), x, closed / "m.pt2")
    for module, message in ((Net, "is of type type"), (torch.jit.script(Cnn()), "TorchScript already"),
                            (Net().bfloat16(), r"parameters of 16 bits \('first.weight', .*module.float\(\)"),
                            (Net().requires_grad_(False), "all of its parameters have requires_grad=False")):
        with pytest.raises(ExportError, match=message):
            decent_train.export(module, x, tmp_path / "m.pt2")


def test_without_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DECENT_TRAIN", str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match="DECENT_TRAIN names it"):
        decent_train.export(Net(), torch.randn(3, FEATURES), tmp_path / "m.pt2")


def test_inside_of_a_script_that_torchrun_has_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in launcher_variables(rank=1, workers=8, port=1).items():
        monkeypatch.setenv(name, str(value))
    assert decent_train.export(Net(), torch.randn(3, FEATURES), tmp_path / "m.pt2").path.exists()


def test_a_program_that_fails_is_not_the_files_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No TorchScript file takes the place of the .pt2."""
    failing = tmp_path / "failing"
    failing.write_text("#!/bin/sh\necho 'decent-train: error: no space left' >&2\nexit 6\n")
    failing.chmod(0o755)
    monkeypatch.setenv("DECENT_TRAIN", str(failing))
    with pytest.raises(TrainingError, match="^no space left$") as error:
        decent_train.export(Net(), torch.randn(3, FEATURES), tmp_path / "m.pt2")
    assert error.value.code == 6 and list(tmp_path.iterdir()) == [failing]


def test_free_lengths(tmp_path: Path) -> None:
    """dynamic_shapes free more than the batch."""
    from torch.export import Dim

    model = python_zoo.Tied()
    shapes = {"x": {0: Dim("batch"), 1: Dim("length", max=64)}}
    check = decent_train.export(model, torch.randint(32, (3, 6)), tmp_path / "m.pt2", dynamic_shapes=shapes)
    program = torch.export.load(check.path).module()
    assert program(torch.randint(32, (5, 9))).shape == (5, 9, python_zoo.WORDS)
