"""model.weights is data: no file makes the program run anything, whatever it holds.

What files would run makes a file, the canary. PyTorch itself, told to run them, shows that it would appear.
"""

from __future__ import annotations

import copyreg
import io
import os
import pickle
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from runs import assert_says, attempt, error_message, recipe
from weights import exported, no_weights, save, save_scripted, start

CANARY = Path()  # set by the fixture: code in a file knows it by its path alone
EXTENSION_CODE = 0xF7


def touch(path: str) -> str:
    Path(path).touch()
    return path


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    global CANARY
    CANARY = tmp_path / "canary"
    return CANARY


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "model.pt"
    save_scripted(nn.Linear(3, 2), path)
    return path


# ---- objects whose pickles run something ---------------------------------------------------------------------------

class Reduce:
    """__reduce__: a call of anything."""

    def __init__(self, function: Callable, *arguments: Callable[[], str]) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, tuple(argument() for argument in self.arguments)


class New:
    def __new__(cls, path: str | None = None):
        if path:
            touch(path)
        return super().__new__(cls)

    def __getnewargs__(self):
        return (str(CANARY),)


class NewEx:
    def __new__(cls, *, path: str | None = None):
        if path:
            touch(path)
        return super().__new__(cls)

    def __getnewargs_ex__(self):
        return (), {"path": str(CANARY)}


class SetState:
    def __getstate__(self):
        return {"path": str(CANARY)}

    def __setstate__(self, state: dict) -> None:
        touch(state["path"])


class Append(list):
    def extend(self, items) -> None:
        touch(list(items)[0])

    append = extend


class SetItem(dict):
    def __setitem__(self, key: str, value: str) -> None:
        touch(value)


class Extension:
    def __reduce__(self):
        return touch, (str(CANARY),)


class Bare:
    """These very instructions."""

    def __init__(self, code: Callable[[], bytes]) -> None:
        self.code = code


class PicklerOfBare(pickle._Pickler):
    def save(self, thing, save_persistent_id: bool = True) -> None:
        if isinstance(thing, Bare):
            self.write(thing.code())
        else:
            super().save(thing, save_persistent_id)


class BareModule:
    Pickler, dump = PicklerOfBare, staticmethod(pickle.dump)


def command() -> str:
    return f"touch {CANARY}"


def text(string: str) -> bytes:
    return b"X" + len(string).to_bytes(4, "little") + string.encode()


def make_append() -> Append:
    thing = Append()
    list.append(thing, str(CANARY))
    return thing


def make_set_item() -> SetItem:
    thing = SetItem()
    dict.__setitem__(thing, "path", str(CANARY))
    return thing


THINGS: dict[str, tuple[Callable[[], object], dict]] = {
    **{f"os.system-{n}": (lambda: Reduce(os.system, command), {"pickle_protocol": n}) for n in (2, 4)},
    "eval": (lambda: Reduce(eval, lambda: f"open({str(CANARY)!r}, 'w')"), {}),
    "exec": (lambda: Reduce(exec, lambda: f"open({str(CANARY)!r}, 'w')"), {}),
    "subprocess": (lambda: Reduce(subprocess.check_call, lambda: ["touch", str(CANARY)]), {}),
    "NEWOBJ": (New, {}),
    "NEWOBJ_EX": (NewEx, {"pickle_protocol": 4}),
    "BUILD": (SetState, {}),
    "APPENDS": (make_append, {}),
    "SETITEMS": (make_set_item, {}),
    "EXT1": (Extension, {}),
    "INST": (lambda: Bare(lambda: b"(" + text(command()) + b"ios\nsystem\n"), {"pickle_module": BareModule}),
    "OBJ": (lambda: Bare(lambda: b"(c" + b"test_weights_hostile\nNew\n" + text(str(CANARY)) + b"o"),
            {"pickle_module": BareModule}),
    "tensor_of_any_function": (lambda: Reduce(torch._tensor._rebuild_from_type_v2, lambda: os.system,
                                              lambda: torch.Tensor, lambda: (command(),), lambda: None), {}),
    "parameter_of_a_call": (lambda: Reduce(torch._utils._rebuild_parameter, lambda: Reduce(os.system, command),
                                           lambda: True, lambda: None), {}),
}


@pytest.fixture
def extension_registry():
    copyreg.add_extension("test_weights_hostile", "touch", EXTENSION_CODE)
    yield
    copyreg.remove_extension("test_weights_hostile", "touch", EXTENSION_CODE)


def good() -> dict[str, Tensor]:
    torch.manual_seed(1)
    return {"weight": torch.randn(2, 3), "bias": torch.randn(2)}


# Where the thing is -> what torch.save writes, and what the program says; None: it takes what is good in the file.
PLACES: dict[str, tuple[Callable[[object], object], list[str] | None]] = {
    "root": (lambda thing: thing, ["state_dict", "From Python, save the weights alone"]),
    "beside": (lambda thing: {"args": thing, "state_dict": good(), "more": [thing]}, None),
    "as_a_tensor": (lambda thing: {**good(), "bias": thing}, ["'bias' is "]),
}


def assert_torch_runs(load: Callable[[], object], canary: Path) -> None:
    """The check below can fail: who runs the file makes the canary."""
    try:
        load()
    except Exception:  # what it makes is no tensor; it has run by then
        pass
    assert canary.exists()
    canary.unlink()


@pytest.mark.usefixtures("extension_registry")
@pytest.mark.parametrize("place, old", [*((place, False) for place in PLACES), ("beside", True)],
                         ids=[*PLACES, "beside-old"])
@pytest.mark.parametrize("name", THINGS)
def test_nothing_of_a_pickle_is_run(name: str, place: str, old: bool, own: Path, canary: Path, tmp_path: Path) -> None:
    make, how = THINGS[name]
    contain, texts = PLACES[place]
    path = tmp_path / "w.pt"
    save(contain(make()), path, _use_new_zipfile_serialization=not old, **how)
    canary.unlink(missing_ok=True)
    assert_torch_runs(lambda: torch.load(path, weights_only=False), canary)
    ended = start(own, path, tmp_path)
    assert not canary.exists()
    if texts is None:
        state = exported(ended, tmp_path)
        assert all(torch.equal(state[name], tensor) for name, tensor in good().items())
    else:
        assert_says(error_message(ended), "model.weights", path, *texts)


class RunsWhenLoaded(nn.Module):
    """TorchScript has __setstate__, too, and an operator that writes a file."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, 3))
        self.path = path

    @torch.jit.export
    def __getstate__(self) -> tuple[Tensor, str, bool]:
        return (self.weight, self.path, self.training)

    @torch.jit.export
    def __setstate__(self, state: tuple[Tensor, str, bool]) -> None:
        self.weight = state[0]
        self.path = state[1]
        self.training = state[2]
        torch.save(state[0], state[1])

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.t()


@pytest.mark.parametrize("inside", [False, True])
def test_nothing_of_torchscript_is_run(inside: bool, own: Path, canary: Path, tmp_path: Path) -> None:
    module = RunsWhenLoaded(str(canary))
    path = tmp_path / "w.pt"
    save_scripted(nn.Sequential(module) if inside else module, path)
    canary.unlink(missing_ok=True)
    assert_torch_runs(lambda: torch.jit.load(path), canary)
    ended = start(own, path, tmp_path)
    assert not canary.exists()
    assert_says(error_message(ended), "'0'" if inside else "the module", "RunsWhenLoaded", "__setstate__", "is not run",
                "torch.jit.load(..).state_dict()")


@pytest.mark.parametrize("flags, runs", [(["--print-config"], False), (["--dry-run"], True),
                                         (["--eval-only", "--checkpoint", "none"], True),
                                         (["--export", "out.pt", "--checkpoint", "none"], True)],
                         ids=lambda value: value[0] if isinstance(value, list) else "")
def test_a_model_is_a_program(flags: list[str], runs: bool, canary: Path, tmp_path: Path) -> None:
    """What the documentation warns of: which commands load model.path, a .pt file, and so run what it holds."""
    save_scripted(RunsWhenLoaded(str(canary)), tmp_path / "model.pt")
    canary.unlink(missing_ok=True)
    attempt(tmp_path, recipe(tmp_path / "model.pt"), *flags)
    assert canary.exists() == runs


# ---- files that would take all memory or time ----------------------------------------------------------------------

def archive(pickled: bytes, **storages: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in {"data.pkl": pickled, **{f"data/{key}": value for key, value in storages.items()}}.items():
            file.writestr(f"w/{name}", content)
    return buffer.getvalue()


def tensor(shape: bytes, strides: bytes, offset: bytes = b"K\x00", count: bytes = b"K\x06", key: str = "s") -> bytes:
    """{"weight": a tensor of float32 over a storage that should have six elements}."""
    storage = b"((" + text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text("cpu") + count + b"tQ"
    call = b"ctorch._utils\n_rebuild_tensor_v2\n" + storage + offset + shape + strides + b"\x89Ntr"[:-1] + b"R"
    return b"\x80\x02}" + text("weight") + call + b"s."


def long(value: int) -> bytes:
    return b"\x8a\x08" + value.to_bytes(8, "little", signed=True)


SIX = {"s": bytes(24)}
PAIR = b"K\x02K\x03\x86"
STRIDES = b"K\x03K\x01\x86"
BOMBS: dict[str, tuple[bytes, list[str]]] = {
    "doubled_tuples": (archive(b"\x80\x02)" + b"2\x86" * 3000 + b"."), ["holds a tuple"]),
    "deep_tuples": (archive(b"\x80\x02)" + b"\x85" * 1_000_000 + b"."), ["holds a tuple"]),
    "in_itself": (archive(b"\x80\x02}q\x00" + text("model") + b"h\x00s."), ["holds no state_dict"]),
    "marks": (archive(b"\x80\x02" + b"(" * 6_000_000 + b"."), ["too many marks"]),
    "values": (archive(b"\x80\x02" + b"N0" * 6_000_000 + b"."), ["more than 4194304 values", "state_dict"]),
    "stack": (archive(b"\x80\x02N" + b"2" * 6_000_000 + b"."), ["too many values"]),
    "memo": (archive(b"\x80\x02N" + b"".join(b"r" + i.to_bytes(4, "little") for i in range(4_200_000)) + b"."),
             ["remembers too many"]),
    "long_text": (archive(b"\x80\x04\x8d" + b"\xff" * 8 + b"x."), ["ends too early"]),
    "long_integer": (archive(b"\x80\x02\x8b" + b"\xff\xff\xff\x7f" + b"x."), ["ends too early"]),
    "buffers": (archive(b"\x80\x05\x96" + b"\xff" * 7 + b"\x7fx."), ["ends too early"]),
    "no_stop": (archive(b"\x80\x02}"), ["ends too early"]),
    "empty_stack": (archive(b"\x80\x02."), ["a value that is not there"]),
    "over_a_mark": (archive(b"\x80\x02N(0."), ["a value that is not there"]),
    "no_mark": (archive(b"\x80\x02NNt."), ["a mark that is not there"]),
    "no_memo": (archive(b"\x80\x02h\x07."), ["did not remember"]),
    "protocol_6": (archive(b"\x80\x06N."), ["protocol 6"]),
    "protocol_0_inside": (archive(b"\x80\x02I1\n."), ["an instruction (73)"]),
    "huge_shape": (archive(tensor(long(2**62) + long(2**62) + b"\x86", STRIDES), **SIX), ["'weight'", "too large"]),
    "huge_strides": (archive(tensor(PAIR, long(2**62) + long(2**62) + b"\x86"), **SIX), ["'weight'", "damaged"]),
    "huge_offset": (archive(tensor(PAIR, STRIDES, offset=long(2**63 - 1)), **SIX), ["'weight'", "the 6 elements"]),
    "offset": (archive(tensor(PAIR, STRIDES, offset=b"K\x01"), **SIX), ["'weight'", "[2, 3]", "the 6 elements"]),
    "negative_offset": (archive(tensor(PAIR, STRIDES, offset=long(-1)), **SIX), ["'weight'", "offset is no count"]),
    "negative_size": (archive(tensor(long(-2) + b"K\x03\x86", STRIDES), **SIX), ["'weight'", "a size is no count"]),
    "negative_stride": (archive(tensor(PAIR, long(-3) + b"K\x01\x86"), **SIX), ["'weight'", "a stride is no count"]),
    "few_strides": (archive(tensor(PAIR, b"K\x01\x85"), **SIX), ["'weight'", "strides are too few"]),
    "dimensions": (archive(tensor(b"(" + b"K\x01" * 65 + b"t", b"(" + b"K\x01" * 65 + b"t"), **SIX),
                   ["its shape is no tuple of at most 64 counts"]),
    "lying_count": (archive(tensor(PAIR, STRIDES, count=long(2**40)), s=bytes(20)), ["'weight'", "the 5 elements"]),
    "no_storage": (archive(tensor(PAIR, STRIDES, key="../../s"), **SIX), ["'weight'", "'../../s' is not in the file"]),
    "tensors": (archive(b"\x80\x02}(" + (text("a") + b"q\x00" + tensor(PAIR, STRIDES)[14:-2] + b"q\x01") +
                        b"h\x00h\x01" * 1_000_000 + b"u.", **SIX), ["too many tensors"]),
    "long_name": (archive(tensor(PAIR, STRIDES).replace(text("weight"), text("w" * 2000)), **SIX),
                  ["is too long a name"]),
    "repeated": (archive(tensor(long(2**40) + b"K\x03\x86", b"K\x00K\x01\x86"), **SIX),
                 ["'weight' is float32[1099511627776, 3]"]),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name: str, own: Path, tmp_path: Path) -> None:
    content, texts = BOMBS[name]
    (tmp_path / "w.pt").write_bytes(content)
    assert_says(no_weights(own, tmp_path / "w.pt", tmp_path), "model.weights", *texts)


def script_archive(pickled: bytes, code: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(zipfile.ZipInfo("w/data.pkl"), pickled)
        file.writestr("w/code/__torch__.py", code)
    return buffer.getvalue()


MODULE = 'class Net(Module):\n  __parameters__ = ["weight", ]\n  __buffers__ = []\n'
NEW = b"c__torch__\nNet\n)\x81"


@pytest.mark.parametrize("pickled, code, texts", [
    (b"\x80\x02" + NEW + b"q\x00}" + text("a") + b"h\x00sb.", MODULE, ["too deep"]),
    (b"\x80\x02" + NEW + b"}b" + b"q\x00" + b"".join(
        NEW + b"}(" + text("a") + b"h\x00" + text("b") + b"h\x00ub" + b"q\x00" for _ in range(40)) + b".", MODULE,
     ["too many attributes"]),
    (b"\x80\x02" + NEW + b"}b.", "class Other(Module):\n", ["it has no class '__torch__.Net'"]),
    (b"\x80\x02c__torch__.deep\nNet\n)\x81}b.", MODULE, ["it has no code '__torch__/deep.py'"]),
    (b"\x80\x02" + NEW + b".", MODULE, ["'__torch__.Net'", "makes its state by code"]),
    (b"\x80\x02" + NEW + b"}" + text("weight") + b"K\x01sb.", MODULE, ["'weight' is a number, not a tensor"]),
    (b"\x80\x02" + NEW + b"}b.", " " * 70_000_000, ["its code is too long"]),
    (b"\x80\x02" + NEW + b"}b.", MODULE.replace('"weight"', ", ".join(f'"{i}"' for i in range(1_000_001))),
     ["its code declares too much"]),
    (b"\x80\x02" + NEW + b"}b.", "class A(Module):\n" * 1_000_001, ["its code declares too much"]),
    (b"\x80\x02" + NEW + b"}" + text("w" * 2000) + b"K\x01sb.", MODULE, ["is too long a name"]),
], ids=["in_itself", "doubled_modules", "no_class", "no_code", "no_state", "number", "long_code", "names",
        "classes", "long_name"])
def test_bombs_of_torchscript(pickled: bytes, code: str, texts: list[str], own: Path, tmp_path: Path) -> None:
    (tmp_path / "w.pt").write_bytes(script_archive(pickled, code))
    assert_says(no_weights(own, tmp_path / "w.pt", tmp_path), "model.weights", *texts)
