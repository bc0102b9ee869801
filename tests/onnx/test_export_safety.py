"""--export: external data in one file of the export's own, and what an export leaves that fails or is killed at any call
to the file system: the old file whole, or the new one. The calls fail in support/faults.c, which is preloaded.
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

import fault_layer
import inference
from program import Ended, run_alone
from runs import assert_says, error_message, recipe, write_recipe
from tensors import read_safetensors, write_safetensors

KINDS = ("kill", "ENOSPC", "EIO")
SHAPES = {"fc1.weight": (8, 32), "fc1.bias": (32,), "fc2.weight": (32, 600), "fc2.bias": (600,)}
# Where each tensor's elements lie; None: in the model file.
LAYOUTS: dict[str, dict[str, str | None]] = {
    "one_file": dict.fromkeys(SHAPES, "m.onnx.data"),
    "a_file_each": {name: name for name in SHAPES},
    "folders": {"fc1.weight": "a/w.bin", "fc1.bias": None, "fc2.weight": "a/b/w.bin", "fc2.bias": "w.bin"},
    "name_of_another_program": {"fc1.weight": ".bashrc", "fc1.bias": None, "fc2.weight": None, "fc2.bias": ".bashrc"},
    "name_of_the_export": dict.fromkeys(SHAPES, "other.onnx.data"),
}

Weights = dict[str, np.ndarray]


def weights_of(seed: int) -> Weights:
    values = np.random.default_rng(seed)
    return {name: (0.1 * values.standard_normal(shape)).astype(np.float32) for name, shape in SHAPES.items()}


def write_model(folder: Path, layout: str, seed: int) -> Path:
    """Two dense layers with other weights for each seed."""
    initializers = []
    for name, values in weights_of(seed).items():
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=values.shape)
        location = LAYOUTS[layout][name]
        if location is None:
            tensor.raw_data = values.tobytes()
        else:
            file = folder / location
            file.parent.mkdir(parents=True, exist_ok=True)
            before = file.read_bytes() if file.exists() else b""
            file.write_bytes(before + b"\7" + values.tobytes())
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in {"location": location, "offset": len(before) + 1, "length": values.nbytes}.items():
                tensor.external_data.add(key=key, value=str(value))
        initializers.append(tensor)
    nodes = [helper.make_node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["a"]), helper.make_node("Tanh", ["a"], ["b"]),
             helper.make_node("Gemm", ["b", "fc2.weight", "fc2.bias"], ["y"])]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 600])], initializers)
    path = folder / "m.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
                     .SerializeToString())
    return path


@dataclass(frozen=True)
class Place:
    """Models "old" and "new" with a recipe each, and a folder that they are exported into."""

    folder: Path
    out: Path

    def export(self, which: str, name: str, **variables: object) -> Ended:
        return run_alone("--config", self.folder / which / "recipe.yaml", "--checkpoint", "none", "--export",
                         self.out / name, cwd=self.folder, **variables)

    def export_well(self, which: str, name: str, **variables: object) -> None:
        ended = self.export(which, name, **variables)
        assert ended.code == 0, ended.err

    def names(self) -> set[str]:
        return {path.name for path in self.out.iterdir()}


OLD, NEW = 1, 2  # seeds


def make_place(folder: Path, layout: str) -> Place:
    place = Place(folder, folder / "out")
    place.out.mkdir(parents=True)
    samples = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)
    write_safetensors(folder / "data.safetensors", {"x": samples, "y": np.arange(16, dtype=np.int64)})
    for which, seed in {"old": OLD, "new": NEW}.items():
        (folder / which).mkdir()
        path = write_model(folder / which, layout, seed)
        write_recipe(folder / which, recipe(path, folder / "data.safetensors"))
    return place


def read_weights(path: Path) -> Weights:
    if path.suffix == ".onnx":
        return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(str(path)).graph.initializer}
    if path.suffix == ".pt":
        return {name: value.numpy() for name, value in torch.jit.load(str(path)).state_dict().items()}
    return read_safetensors(path)


def same(a: Weights, b: Weights) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def whose(path: Path) -> str:
    """Whose weights a file holds, each and every one of them."""
    found = read_weights(path)
    return next((which for which, seed in {"old": OLD, "new": NEW}.items() if same(found, weights_of(seed))), "mixed")


# ---- external data -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("layout", LAYOUTS)
def test_external_data_is_one_file_named_after_the_export(layout: str, tmp_path: Path) -> None:
    place = make_place(tmp_path, layout)
    place.export_well("old", "other.onnx")
    assert place.names() == {"other.onnx", "other.onnx.data"}
    assert whose(place.out / "other.onnx") == "old"
    initializers = onnx.load(str(place.out / "other.onnx"), load_external_data=False).graph.initializer
    external = {tensor.name: {entry.key: entry.value for entry in tensor.external_data} for tensor in initializers
                if tensor.data_location == TensorProto.EXTERNAL}
    assert external.keys() == {name for name, location in LAYOUTS[layout].items() if location is not None}
    for name, entries in external.items():
        assert entries["location"] == "other.onnx.data"
        assert int(entries["offset"]) % (4096 if name == "fc2.weight" else 64) == 0
    onnx.checker.check_model(str(place.out / "other.onnx"), full_check=True)
    x = np.random.default_rng(3).standard_normal((5, 8)).astype(np.float32)
    given, written = (inference.run(path, {"x": x})["y"] for path in (tmp_path / "old" / "m.onnx", place.out / "other.onnx"))
    np.testing.assert_array_equal(given, written)


def test_files_that_are_there_stay(tmp_path: Path) -> None:
    """A location in a model file from anywhere does not choose what is written."""
    place = make_place(tmp_path, "name_of_another_program")
    (place.out / ".bashrc").write_text("mine")
    place.export_well("old", "other.onnx")
    assert (place.out / ".bashrc").read_text() == "mine"
    assert whose(place.out / "other.onnx") == "old"


def test_a_second_export_beside_the_first(tmp_path: Path) -> None:
    place = make_place(tmp_path, "a_file_each")
    place.export_well("old", "first.onnx")
    place.export_well("new", "second.onnx")
    assert place.names() == {f"{stem}.onnx{end}" for stem in ("first", "second") for end in ("", ".data")}
    assert (whose(place.out / "first.onnx"), whose(place.out / "second.onnx")) == ("old", "new")


def test_an_export_in_place_of_another(tmp_path: Path) -> None:
    place = make_place(tmp_path, "folders")
    for which, data in (("old", "other.onnx.data"), ("new", "other.onnx.2.data"), ("old", "other.onnx.data")):
        place.export_well(which, "other.onnx")
        assert place.names() == {"other.onnx", data}
        assert whose(place.out / "other.onnx") == which


@pytest.mark.parametrize("name", ["other.onnx", "other.pt", "other.safetensors"])
def test_names_that_look_temporary_are_not_touched(name: str, tmp_path: Path) -> None:
    place = make_place(tmp_path, "one_file")
    (tmp_path / "elsewhere").write_text("mine")
    (place.out / f"{name}.tmp").symlink_to(tmp_path / "elsewhere")
    place.export_well("old", name)
    assert (tmp_path / "elsewhere").read_text() == "mine"
    assert (place.out / f"{name}.tmp").is_symlink()
    assert whose(place.out / name) == "old"


# ---- faults --------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fault_layer.build(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Path], Place]:
    """(name, folder) -> the folder, with "old" exported into it."""
    @functools.cache
    def get(name: str) -> Place:
        place = make_place(tmp_path_factory.mktemp("exported"), "a_file_each")
        place.export_well("old", name)
        return place

    def copied(name: str, out: Path) -> Place:
        place = get(name)
        shutil.copytree(place.out, out)
        return Place(place.folder, out)

    return copied


def calls_of_export(place: Place, name: str, library: Path) -> list[tuple[str, int, str]]:
    """(call, which of that name, path) of the export in place of another. Of a row of writes to one file the first and
    the last.
    """
    log = place.out.with_suffix(".log")
    place.export_well("new", name, **fault_layer.variables(library, place.out, FAULT_KIND="count", FAULT_LOG=log))
    assert whose(place.out / name) == "new"
    calls, numbers = [], Counter()
    logged = fault_layer.read_log(log)
    for i, (call, path) in enumerate(logged):
        numbers[call] += 1
        inside = call == "write" and logged[i - 1] == (call, path) == logged[i + 1]
        if not inside:
            calls.append((call, numbers[call], path))
    return calls


def check(place: Place, name: str, fault: tuple[str, str, int, str], library: Path) -> str:
    """What is wrong after a fault; "" where nothing is."""
    kind, call, number, path = fault
    before = place.names()
    ended = place.export("new", name, **fault_layer.variables(library, place.out, FAULT_KIND=kind, FAULT_CALL=call,
                                                              FAULT_AT=number))
    try:
        found = whose(place.out / name)
        assert found in ("old", "new")
        if kind == "kill":
            assert ended.code == -signal.SIGKILL, ended
        else:
            assert_says(error_message(ended, 6), place.out, os.strerror(getattr(errno, kind)))
            left = place.names() - before
            assert not left if found == "old" else left <= {"other.onnx.2.data"}
        renamed = call == "remove" or (call == "fsync" and path == "." and found == "new")
        assert found == ("new" if renamed else "old")
        place.export_well("new", name)
        assert whose(place.out / name) == "new"
    except AssertionError as error:
        return f"{kind} at {call} {number} ({path}):\n{error}"
    return ""


@pytest.mark.parametrize("name", ["other.onnx", "other.pt", "other.safetensors"])
def test_calls_are_seen(name: str, exported: Callable[[str, Path], Place], library: Path, tmp_path: Path) -> None:
    """Else the tests below could pass without a fault at the places that matter: all is durable under temporary names
    before the first rename, and the data has its name before the model.
    """
    calls = [(call, path) for call, _, path in calls_of_export(exported(name, tmp_path / "out"), name, library)]
    names = ["other.onnx.2.data", "other.onnx"] if name == "other.onnx" else [name]
    renames = [call for call in calls if call[0] in ("rename", "remove") or call == ("fsync", ".")]
    expected = [entry for each in names for entry in (("rename", f"{each}.tmp"), ("fsync", "."))]
    assert renames == expected + ([("remove", "other.onnx.data")] if name == "other.onnx" else [])
    for each in names:
        assert calls.index(("open", f"{each}.tmp")) < calls.index(("write", f"{each}.tmp"))
        assert calls.index(("fsync", f"{each}.tmp")) < calls.index(renames[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["other.onnx", "other.pt", "other.safetensors"])
def test_every_call_of_an_export(name: str, kind: str, exported: Callable[[str, Path], Place], library: Path,
                                 tmp_path: Path) -> None:
    calls = calls_of_export(exported(name, tmp_path / "counted"), name, library)
    places = [exported(name, tmp_path / str(i)) for i in range(len(calls))]
    with ThreadPoolExecutor(2) as pool:
        problems = [text for text in pool.map(lambda place, call: check(place, name, (kind, *call), library), places, calls)
                    if text]
    assert not problems, f"{len(problems)} of {len(calls)}:\n" + "\n\n".join(problems)
