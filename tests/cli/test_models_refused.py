"""Models that cannot train, and data that does not fit them: exit 2, one message, nothing written."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from runs import DIGITS_MLP, assert_says, recipe, refused, train
from tensors import write_safetensors

TRAIN_ONLY = {"eval": None}  # the evaluation data is tried first

@pytest.fixture
def saved(zoo, tmp_path_factory: pytest.TempPathFactory):
    """(what torch.save or torch.jit.save is to write, file name) -> path, outside of the run's folder."""
    import torch

    def save(thing: object, name: str = "model.pt") -> Path:
        path = tmp_path_factory.mktemp("refused") / name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if isinstance(thing, bytes):
                path.write_bytes(thing)
            elif isinstance(thing, torch.jit.ScriptModule):
                thing.save(str(path))
            else:
                torch.save(thing, path)
        return path

    return save


@pytest.fixture
def fields(zoo, tmp_path_factory: pytest.TempPathFactory):
    """Fields that differ from the data set "blob" -> file."""
    def write(**changes: np.ndarray) -> Path:
        path = tmp_path_factory.mktemp("fields") / "data.safetensors"
        write_safetensors(path, {**zoo.make_data("blob"), **changes})
        return path

    return write


# ---- files that are no trainable TorchScript -----------------------------------------------------------------------

def test_pickled_module(saved, zoo, data, tmp_path: Path) -> None:
    path = saved(zoo.make_model("mlp"))
    assert_says(refused(tmp_path, recipe(path, data("blob"))), path, "torch.save", "torch.jit.script(model)", "save(")


@pytest.mark.parametrize("how", ["plain", "in a checkpoint", "old"])
def test_state_dict(how: str, saved, zoo, data, tmp_path: Path) -> None:
    """The weights alone, which another key takes."""
    import torch

    weights = zoo.make_model("mlp").state_dict()
    path = saved({"model": weights, "epoch": 3} if how == "in a checkpoint" else weights)
    if how == "old":
        torch.save(weights, path, _use_new_zipfile_serialization=False)
    assert_says(refused(tmp_path, recipe(path, data("blob"))), path, "is a state_dict", "model.weights reads it",
                "torch.jit.script(model)", "save(")


@pytest.mark.parametrize(("name", "said"), [("a.npz", "is a NumPy archive (.npz)"), ("a.npy", "is a single NumPy array (.npy)"),
                                            ("a.safetensors", "holds weights only, not a model: model.weights reads them"),
                                            ("a.csv", "is a text")])
def test_data_in_place_of_a_model(name: str, said: str, data, tmp_path: Path) -> None:
    from tensors import write_safetensors

    path = tmp_path / name
    {".npz": lambda: np.savez(path, x=np.ones(3)), ".npy": lambda: np.save(path, np.ones(3)), ".csv": lambda: path.write_text("a,b\n1,2\n"),
     ".safetensors": lambda: write_safetensors(path, {"w": np.ones(3)})}[path.suffix]()
    assert_says(refused(tmp_path / "run", recipe(path, data("blob"))), path, said, "torch.jit.script(model)")


def test_frozen_by_torch_jit(saved, zoo, data, tmp_path: Path) -> None:
    import torch

    path = saved(torch.jit.freeze(torch.jit.script(zoo.make_model("mlp").eval())))
    assert_says(refused(tmp_path, recipe(path, data("blob"))), path, "torch.jit.freeze", "torch.jit.script(model)")


def test_nothing_requires_grad(model, data, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(model("all_frozen"), data("blob")))
    assert_says(message, model("all_frozen"), "requires_grad", "no trainable parameter", "requires_grad_(True)")


def test_missing_file(data, tmp_path: Path) -> None:
    assert_says(refused(tmp_path, recipe(tmp_path / "nowhere.pt", data("blob"))), tmp_path / "nowhere.pt",
                "does not exist")


def test_folder(data, tmp_path: Path) -> None:
    assert_says(refused(tmp_path, recipe(Path("/usr"), data("blob"))), "/usr", "not a file")


@pytest.mark.parametrize("content", [b"weights: none\n", b"", b"PK\x03\x04 and no more", b"\x80\x02}q\x00."],
                         ids=["text", "empty", "broken zip", "old pickle"])
def test_other_files(content: bytes, saved, data, tmp_path: Path) -> None:
    path = saved(content)
    assert_says(refused(tmp_path, recipe(path, data("blob"))), path, "torch.jit.script(model)")


def test_cut_short(saved, data, tmp_path: Path) -> None:
    path = saved(DIGITS_MLP.read_bytes()[:40_000])
    assert_says(refused(tmp_path, recipe(path)), path)


def test_operator_that_torch_lacks(saved, model, data, tmp_path: Path) -> None:
    """LibTorch's message begins with an empty line; what the user sees does not."""
    import zipfile

    path = saved(b"")
    with zipfile.ZipFile(model("mlp")) as whole, zipfile.ZipFile(path, "w") as changed:
        for name in whole.namelist():
            content = whole.read(name)
            is_code = "/code/" in name and name.endswith(".py")
            changed.writestr(name, content.replace(b"torch.linear", b"torch.liinear") if is_code else content)
    assert_says(refused(tmp_path, recipe(path, data("blob"))), path, "cannot be loaded", "aten::liinear")


def test_onnx(saved, data, tmp_path: Path) -> None:
    path = saved(b"\x08\x07", "model.onnx")
    assert_says(refused(tmp_path, recipe(path, data("blob"))), path, "opset_import")


def test_weights_only(data, tmp_path: Path) -> None:
    assert_says(refused(tmp_path, recipe(data("blob"), data("blob"))), "weights only", "torch.jit.script(model)")


# ---- tensors that share memory -------------------------------------------------------------------------------------

def test_two_parameters_on_one_storage(model, data, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(model("shared_storage"), data("blob")))
    assert_says(message, "'embed.weight'", "'again.weight'", "share memory")


def test_tensor_that_no_checkpoint_can_hold(model, data, tmp_path: Path) -> None:
    """Found before training, not when the first checkpoint is saved."""
    message = refused(tmp_path, recipe(model("complex_buffer"), data("blob")), workers=2)
    assert_says(message, "'rotations' is complex64", "torch.view_as_real")


def test_buffer_on_a_parameters_storage(model, data, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(model("buffer_overlap"), data("blob")))
    assert_says(message, "'fc1.weight'", "'first_row'", "share memory")


# ---- inputs --------------------------------------------------------------------------------------------------------

def test_too_many_inputs(model, data, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(model("mlp"), data("pairs"), model={"inputs": ["left", "right"]}))
    assert_says(message, model("mlp"), "forward(x: Tensor)", "model.inputs")


def test_too_few_inputs(model, data, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(model("two_inputs64"), data("pairs64"), model={"inputs": ["left"]}))
    assert_says(message, "forward(left: Tensor, right: Tensor)", "'right'", "model.inputs")


def test_unknown_argument(model, data, tmp_path: Path) -> None:
    inputs = {"left": "left", "rihgt": "right"}
    message = refused(tmp_path, recipe(model("two_inputs64"), data("pairs64"), model={"inputs": inputs}))
    assert_says(message, "'rihgt'", "did you mean 'right'?")


def test_unknown_field(model, data, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(model("two_inputs64"), data("pairs64"), model={"inputs": ["lefft", "right"]}))
    assert_says(message, "data.train", "'lefft'", "model.inputs", "left, right", "did you mean 'left'?")


def test_unknown_target(model, data, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(model("mlp"), data("blob"), model={"target": "yy"}))
    assert_says(message, "data.train", "'yy'", "model.target", "did you mean 'y'?")


@pytest.mark.parametrize(("names", "target", "said"), [
    (["x", "label"], "y", "`model.target: label` takes it"), (["x", "Targets"], "y", "`model.target: Targets` takes it"),
    (["x", "label", "weight"], "y", "it has label, weight, x; model.target names what it takes"),
    (["x"], "y", "it has x, which is an input: the data has no target"),
    (["x", "yy"], "y", "did you mean 'yy'?")])
def test_target_of_another_name(names: list[str], target: str, said: str, model, tmp_path: Path) -> None:
    """An input is never what was meant."""
    from tensors import write_safetensors

    arrays = {name: np.zeros((64, 6), np.float32) if name == "x" else np.zeros(64, np.int64) for name in names}
    write_safetensors(tmp_path / "d.safetensors", arrays)
    message = refused(tmp_path / "run", recipe(model("mlp"), tmp_path / "d.safetensors"))
    assert_says(message, "data.train has no field 'y', which model.target asks for", said)
    assert "did you mean 'x'" not in message


def test_field_missing_in_the_evaluation_data(model, data, tmp_path: Path) -> None:
    other = {"format": "safetensors", "path": str(data("pairs"))}
    message = refused(tmp_path, recipe(model("mlp"), data("blob"), data={"eval": other}))
    assert_says(message, "data.eval", "'x'", "model.inputs")


@pytest.mark.parametrize("changed, shown", [({"x": np.zeros((200, 6))}, "float64[8, 6]"),
                                            ({"x": np.zeros((200, 6), np.int64)}, "int64[8, 6]"),
                                            ({"x": np.zeros((200, 5), np.float32)}, "float32[8, 5]"),
                                            ({"x": np.zeros((200,), np.float32)}, "float32[8]")],
                         ids=["float64", "int64", "width", "scalar"])
def test_input_that_the_model_cannot_take(changed: dict, shown: str, model, fields, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(model("mlp"), fields(**changed), data=TRAIN_ONLY))
    assert_says(message, "data.train", model("mlp"), "x " + shown)


def test_input_that_only_the_evaluation_data_has_wrong(model, data, fields, tmp_path: Path) -> None:
    other = {"format": "safetensors", "path": str(fields(x=np.zeros((200, 5), np.float32)))}
    message = refused(tmp_path, recipe(model("mlp"), data("blob"), data={"eval": other}, eval={"every_steps": 100}))
    assert_says(message, "data.eval", "x float32[", ", 5]")


# ---- outputs and targets -------------------------------------------------------------------------------------------

def test_tuple_output(model, data, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(model("two_outputs"), data("blob")))
    assert_says(message, model("two_outputs"), "2 outputs", "model.output", "0, 1")


@pytest.mark.parametrize("target, shown", [(np.zeros((200, 3), np.int64), "int64[8, 3]"),
                                           (np.zeros(200, np.float32), "float32[8]"),
                                           (np.zeros((200, 1), np.int64), "int64[8, 1]")],
                         ids=["shape", "float classes", "extra dimension"])
def test_target_that_cross_entropy_cannot_take(target: np.ndarray, shown: str, model, fields, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(model("mlp"), fields(y=target), data=TRAIN_ONLY))
    assert_says(message, "data.train", "float32[8, 3]", shown, "cross_entropy")


@pytest.mark.parametrize("target, shown", [(np.zeros((200, 3), np.float32), "float32[8, 3]"),
                                           (np.zeros(200, np.float32), "float32[8]"),
                                           (np.zeros((200, 1), np.float32), "float32[8, 1]")],
                         ids=["width", "scalar", "broadcast"])
def test_target_that_mse_cannot_take(target: np.ndarray, shown: str, model, fields, tmp_path: Path) -> None:
    settings = recipe(model("regressor"), fields(y=target), model={"loss": "mse"}, data=TRAIN_ONLY)
    message = refused(tmp_path, settings)
    assert_says(message, "data.train", "float32[8, 2]", shown, "mse")


@pytest.mark.parametrize("wrong", [3, -1, 250])
def test_class_out_of_range(wrong: int, model, fields, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(model("mlp"), fields(y=np.full(200, wrong, np.int64)), data=TRAIN_ONLY))
    assert_says(message, "data.train", f"class {wrong}", "3 classes", "0 to 2")


def test_class_out_of_range_in_a_later_step(model, fields, tmp_path: Path) -> None:
    """It is known before the first one."""
    y = np.zeros(200, np.int64)
    y[90] = 7
    message = refused(tmp_path, recipe(model("mlp"), fields(y=y), data={"shuffle": False, "eval": None}))
    assert_says(message, "data.train: sample 90 ('", "'), counted from 0: ", "class 7", "3 classes")


def test_refused_alike_by_three_workers(model, data, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(model("shared_storage"), data("blob")), workers=3)
    assert_says(message, "share memory")
    assert "rank" not in message


def test_buffer_that_changes_its_shape(model, data, tmp_path: Path) -> None:
    assert_says(refused(tmp_path, recipe(model("growing_buffer"), data("blob"))), "'seen'", "shape", "float32[0]")


# ---- models that ask for a GPU, on the CPU --------------------------------------------------------------------------

def needs_a_gpu(how: str):
    """Adds three zeros: those that its source wants on a GPU, or those that are where the input is."""
    import torch
    from torch import Tensor, nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(6, 3)

    class Made(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x) + torch.zeros(3, device="cuda:0")

    class Moved(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x) + torch.zeros(3).to("cuda")

    class Follows(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x) + torch.zeros(3, device=x.device)

    if how == "traced":
        return torch.jit.trace(Follows(), torch.zeros(2, 6))
    return torch.jit.script({"made": Made, "moved": Moved, "follows": Follows}[how]())


def changed_archive(path: Path, change) -> Path:
    """`change` takes a file's name in the archive and its bytes."""
    import zipfile

    other = path.with_name("changed.pt")
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(other, "w") as changed:
        for name in whole.namelist():
            changed.writestr(name, change(name, whole.read(name)))
    return other


def traced_on_a_gpu(saved) -> Path:
    def code(name: str, content: bytes) -> bytes:
        is_code = "/code/" in name and name.endswith(".py")
        return content.replace(b'torch.device("cpu")', b'torch.device("cuda:0")') if is_code else content

    return changed_archive(saved(needs_a_gpu("traced")), code)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how, operator", [("made", "1 x zeros"), ("moved", "1 x to"), ("traced", "1 x zeros")])
def test_model_that_asks_for_a_gpu(how: str, operator: str, workers: int, saved, data, tmp_path: Path) -> None:
    path = traced_on_a_gpu(saved) if how == "traced" else saved(needs_a_gpu(how))
    message = refused(tmp_path, recipe(path, data("blob")), workers=workers)
    assert_says(message, path, f"its code makes tensors on a GPU ({operator}), and it runs on the CPU", "device=x.device",
                "traced on the CPU", "model.device: cuda")
    assert "PythonDispatcher" not in message and "ATen_cuda" not in message


@pytest.mark.parametrize("how", ["follows", "traced"])
def test_ways_out_of_asking_for_a_gpu(how: str, saved, data, tmp_path: Path) -> None:
    assert train(tmp_path, recipe(saved(needs_a_gpu(how)), data("blob"))).lines("train")


def test_constant_that_was_saved_on_a_gpu_comes_to_the_cpu(saved, data, tmp_path: Path) -> None:
    import torch
    from torch import Tensor, nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x) + torch.tensor([1.0, 2.0, 3.0])

    def constants(name: str, content: bytes) -> bytes:
        on_cpu, on_gpu = (b"X" + len(place).to_bytes(4, "little") + place for place in (b"cpu", b"cuda:0"))
        if not name.endswith("constants.pkl"):
            return content
        assert on_cpu in content
        return content.replace(on_cpu, on_gpu)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it becomes a constant
        traced = torch.jit.trace(Net(), torch.zeros(2, 6))
    path = changed_archive(saved(traced), constants)
    assert train(tmp_path, recipe(path, data("blob"))).lines("train")


# ---- what a model says itself --------------------------------------------------------------------------------------

def raising(saved, statement: str) -> Path:
    """A model whose forward raises in every batch: made of a file, as TorchScript wants the source."""
    import torch
    from importlib.util import module_from_spec, spec_from_file_location

    source = saved(f"""
import torch

class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.size(0) > 0:
            {statement}
        return self.fc(x)
""".encode(), "net.py")
    spec = spec_from_file_location("net", source)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return saved(torch.jit.script(module.Net()))


@pytest.mark.parametrize(("statement", "said"), [
    ('raise ValueError("a batch of " + str(x.size(1)))', "ValueError: a batch of 6"), ('raise NotImplementedError("not yet")', "NotImplementedError: not yet"),
    ('raise Exception("no")', "Exception: no"), ('raise RuntimeError("why")', "RuntimeError: why"), ("assert x.size(1) == 7, 'seven'", "AssertionError: seven"),
    ("assert x.size(1) == 7", "AssertionError: assert x.size(1) == 7"), ("raise KeyError", "raise KeyError")])
def test_what_a_model_raises(statement: str, said: str, saved, data, tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(raising(saved, statement), data("blob")))
    assert_says(message, "fails on a batch of x ", said)


def test_batch_norm_of_one_sample(saved, data, tmp_path: Path) -> None:
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3))
    own = recipe(saved(torch.jit.script(net)), data("blob"), data={"batch_size": 1})
    assert_says(refused(tmp_path, own), "ValueError: Expected more than 1 value per channel when training, got input size [1, 4]")
