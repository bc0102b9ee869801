"""ONNX files that are broken or made to do harm: nothing crashes, hangs or takes more memory than 4 times the file's
size and 64 MB, and each error is one clear message. What a message says is tested in full in tests/unit/onnx.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from costly import COSTLY, WITHIN_BOUNDS, deep_graphs
from hostile import chain, external, model, read_file, read_files, small_model, tensor, times_w, write

ELEMENTS = np.arange(8, dtype=np.float32).tobytes()


def refusal(path: Path, made: ModelProto | bytes) -> str:
    outcome = read_file(write(path, made))
    assert outcome.refused
    return outcome.message


def test_a_whole_model_is_read(tmp_path: Path) -> None:
    assert not read_file(write(tmp_path / "m.onnx", small_model())).refused


# ---- damaged files -------------------------------------------------------------------------------------------------

def test_cut_short_at_any_length(tmp_path: Path) -> None:
    """The operator sets come after the graph: nothing shorter is a model."""
    whole = small_model()
    del whole.metadata_props[:]
    content = whole.SerializeToString()
    outcomes = read_files([write(tmp_path / f"{length}.onnx", content[:length]) for length in range(len(content) + 1)])
    assert [outcome.refused for outcome in outcomes] == [True] * len(content) + [False]


@pytest.mark.parametrize("seed", range(4))
def test_bytes_that_changed(tmp_path: Path, seed: int) -> None:
    content = small_model().SerializeToString()
    choose = random.Random(seed)
    paths = []
    for i in range(500):
        damaged = bytearray(content)
        for _ in range(choose.choice([1, 1, 2, 8])):
            damaged[choose.randrange(len(damaged))] = choose.randrange(256)
        paths.append(write(tmp_path / f"{i}.onnx", bytes(damaged)))
    refused = [outcome.refused for outcome in read_files(paths)]
    assert any(refused)


def test_pieces_put_elsewhere(tmp_path: Path) -> None:
    """Parts of the file removed, doubled or moved: lengths that are whole but wrong."""
    content = small_model().SerializeToString()
    choose = random.Random(0)
    paths = []
    for i in range(500):
        begin, end, to = sorted(choose.randrange(len(content)) for _ in range(3))
        piece = content[begin:end]
        made = choose.choice([content[:begin] + content[end:], content[:to] + piece + content[to:],
                              content[:begin] + content[end:to] + piece + content[to:]])
        paths.append(write(tmp_path / f"{i}.onnx", made))
    assert any(outcome.refused for outcome in read_files(paths))


# ---- what onnx.checker accepts -------------------------------------------------------------------------------------

def typed(kind: int, dims: list[int], field_name: str, values: list) -> TensorProto:
    made = TensorProto(name="w", data_type=kind, dims=dims)
    getattr(made, field_name).extend(values)
    return made


W = [[1, 2], [3, 4]]
BROKEN: dict[str, tuple[Callable[[], ModelProto], str]] = {
    "raw_data_too_long": (lambda: times_w(tensor("w", W, raw_data=ELEMENTS)),
                          "tensor 'w': raw_data has 32 bytes, float32 [2, 2] takes 16"),
    "raw_data_too_short": (lambda: times_w(tensor("w", W, raw_data=ELEMENTS[:8])), "raw_data has 8 bytes"),
    "unknown_type": (lambda: times_w(tensor("w", W, data_type=99)), "the unknown type 99"),
    "type_not_imported": (lambda: times_w(tensor("w", W, data_type=TensorProto.INT4)), "elements of type int4"),
    "negative_dims": (lambda: times_w(tensor("w", W, dims=[-2, -2])), "its dims are [-2, -2]; none may be negative"),
    "dims_that_overflow": (lambda: times_w(tensor("w", W, dims=[2**32, 2**32])), "too large for any memory"),
    "dims_of_a_terabyte": (lambda: times_w(tensor("w", W, dims=[2**19, 2**19])), "raw_data has 16 bytes"),
    "two_data_fields": (lambda: times_w(tensor("w", W, float_data=[1.0] * 4)),
                        "has elements in both raw_data and float_data"),
    "wrong_data_field": (lambda: times_w(typed(TensorProto.FLOAT, [1], "int32_data", [1])),
                         "has elements in int32_data; those of float32 are in float_data"),
    "elements_out_of_range": (lambda: times_w(typed(TensorProto.INT8, [1], "int32_data", [300])),
                              "300 in int32_data is not a int8 (-128 to 127)"),
    "opset_99": (lambda: small_model(opset=99), "is of opset 99; opsets 9 to 28 are read"),
    "opset_1": (lambda: small_model(opset=1), "is of opset 1; opsets 9 to 28 are read"),
    "ir_version_99": (lambda: small_model(ir_version=99), "is of IR version 99; 3 to 14 are read"),
    "unsorted": (lambda: model([helper.make_node("Relu", ["a"], ["y"]), helper.make_node("Relu", ["x"], ["a"])]),
                 "uses 'a' before node that makes 'a' (Relu) makes it"),
    "cycle": (lambda: model([helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
                             helper.make_node("Relu", ["b"], ["y"])]), "uses 'b' before node that makes 'b'"),
    "made_twice": (lambda: model([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["x"], ["y"])]),
                   "makes 'y', which is there already"),
    "initializer_twice": (lambda: model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("w", W)] * 2),
                          "an initializer is named 'w', and so is another value"),
    "unknown_input": (lambda: model([helper.make_node("Add", ["x", "k"], ["y"])]), "uses 'k', which is no input"),
    "unknown_domain": (lambda: model([helper.make_node("Relu", ["x"], ["y"], domain="com.acme")]),
                       "is of domain 'com.acme', whose version opset_import does not give"),
    "external_without_a_name": (lambda: times_w(external("w", "")), "this is not a file's name"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_models(tmp_path: Path, name: str) -> None:
    make, said = BROKEN[name]
    assert said in refusal(tmp_path / "m.onnx", make())


def test_functions_that_call_themselves(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    functions = [helper.make_function("f", a, ["i"], ["o"], [helper.make_node(b, ["i"], ["o"], domain="f")], opsets)
                 for a, b in (("A", "B"), ("B", "C"), ("C", "A"))]
    made = model([helper.make_node("A", ["x"], ["y"], domain="f")], functions=functions, imports=opsets[1:])
    assert "calls itself, perhaps through another" in refusal(tmp_path / "m.onnx", made)


# ---- external data -------------------------------------------------------------------------------------------------

@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder, with a secret beside it."""
    (tmp_path / "secret").write_bytes(ELEMENTS)
    made = tmp_path / "model"
    made.mkdir()
    (made / "w.bin").write_bytes(ELEMENTS)
    return made


def external_refusal(folder: Path, location: str, **entries: object) -> str:
    return refusal(folder / "m.onnx", times_w(external("w", location, **entries)))


def test_external_data_is_read(folder: Path) -> None:
    assert not read_file(write(folder / "m.onnx", times_w(external("w", "w.bin", offset=8, length=16)))).refused


@pytest.mark.parametrize("location", ["../secret", "a/../../secret", "./../secret", "..", "../model/w.bin"])
def test_paths_that_lead_out(folder: Path, location: str) -> None:
    assert "it must lie in the model's folder" in external_refusal(folder, location, length=16)


def test_absolute_paths(folder: Path) -> None:
    for location in (folder.parent / "secret", folder / "w.bin", "/dev/zero", "/etc/passwd"):
        assert "must be relative to the model's folder" in external_refusal(folder, str(location), length=16)


def test_links(folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent / "secret")
    (folder / "inside").symlink_to("w.bin")
    (folder / "up").symlink_to("..")
    (folder / "loop").symlink_to("loop")
    for location in ("link", "inside", "up/secret", "loop"):
        assert "symbolic link" in external_refusal(folder, location, length=16)
    os.link(folder.parent / "secret", folder / "hard")
    assert "has a second name (a hard link)" in external_refusal(folder, "hard", length=16)


def test_devices_pipes_and_folders(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    for location in ("pipe", "folder"):
        assert "not a file" in external_refusal(folder, location, length=16)


@pytest.mark.parametrize(("entries", "said"), [
    ({"offset": 24, "length": 16}, "the file is cut short"),
    ({"offset": 33, "length": 16}, "begins behind the file's end"),
    ({"offset": -8, "length": 16}, "the offset of its external data is '-8', not a number of bytes"),
    ({"offset": 2**63, "length": 16}, "not a number of bytes"),
    ({"offset": 2**63 - 1, "length": 2**63 - 1}, "begins behind the file's end"),
    ({"length": 2**63 - 1}, "the file is cut short"),
    ({"length": 8}, "has 8 bytes, its type and dims take 16"),
    ({}, "has 32 bytes, its type and dims take 16"),
    ({"dims": [2**30, 2**30], "length": 2**62}, "the file is cut short"),
])
def test_ranges_that_are_not_there(folder: Path, entries: dict, said: str) -> None:
    assert said in external_refusal(folder, "w.bin", **entries)


def test_ranges_that_overlap(folder: Path) -> None:
    made = model([helper.make_node("Gemm", ["x", "w", "v"], ["y"])],
                 [external("w", "w.bin", length=16), external("v", "./w.bin", offset=12, length=16)])
    assert "bytes 12 to 28, overlaps that of tensor 'w', bytes 0 to 16" in refusal(folder / "m.onnx", made)


# ---- absurd counts and depths --------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", COSTLY)
def test_absurd_counts(tmp_path: Path, name: str) -> None:
    """Refused, or read where that costs no more than it may."""
    outcome = read_file(write(tmp_path / "m.onnx", COSTLY[name]()))
    assert outcome.refused == (name not in WITHIN_BOUNDS), outcome.message


def test_graphs_inside_graphs(tmp_path: Path) -> None:
    assert not read_file(write(tmp_path / "m.onnx", deep_graphs(30))).refused
    for depth in (40, 1000):
        assert "more than 100 deep" in refusal(tmp_path / "m.onnx", deep_graphs(depth))


def test_many_nodes_are_still_read(tmp_path: Path) -> None:
    """As many as there may be, as one chain; one more is refused."""
    assert not read_file(write(tmp_path / "m.onnx", chain(100_000))).refused
    assert "has more than 100000 nodes" in refusal(tmp_path / "m.onnx", chain(100_001))


def test_functions_that_grow(tmp_path: Path) -> None:
    """Each calls the one before twice: 2^40 nodes."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    functions = [helper.make_function("f", "F0", ["i"], ["o"], [helper.make_node("Relu", ["i"], ["o"])], opsets)]
    for i in range(1, 41):
        calls = [helper.make_node(f"F{i - 1}", ["i"], ["m"], domain="f"),
                 helper.make_node(f"F{i - 1}", ["m"], ["o"], domain="f")]
        functions.append(helper.make_function("f", f"F{i}", ["i"], ["o"], calls, opsets))
    made = model([helper.make_node("F40", ["x"], ["y"], domain="f")], functions=functions, imports=opsets[1:])
    assert "when its functions are put in place of their calls" in refusal(tmp_path / "m.onnx", made)


def test_messages_are_one_line_of_text(tmp_path: Path) -> None:
    """Names are shown without control characters and cut."""
    name = "\n\x1b[31m\x00" + "n" * 100_000
    made = model([helper.make_node("Relu", [name], ["y"], name)])
    message = refusal(tmp_path / "m.onnx", made)
    assert "uses '??[31m?nnn" in message and ".." in message and len(message) < 500
