"""The node tests of the onnx package, through the importer: what every operator must compute.

    python tests/onnx/nodes.py --run build/bin/onnx_run            # all that the table covers, a summary by message
    python tests/onnx/nodes.py --run build/bin/onnx_run Add Sub    # those in which these operators occur, with messages
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase

from excluded import EXCLUDED


@cache
def cases() -> dict[str, TestCase]:
    """By name. They are made in memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, about what the cases do on purpose
        from onnx.backend.test.loader import load_model_tests
        return {case.name: case for case in load_model_tests(kind="node")}


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph and all inside it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs(attribute.g)


@cache
def operators_of(name: str) -> frozenset[str]:
    """Operators that a case needs; those of other domains with their domain."""
    model = cases()[name].model
    nodes = [node for graph in graphs(model.graph) for node in graph.node]
    nodes += [node for function in model.functions for node in function.node]
    own = {(function.domain, function.name) for function in model.functions}
    return frozenset(f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
                     for node in nodes if (node.domain, node.op_type) not in own)


def raised(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model at opset 9, the oldest that is read, where its operators are still the same there."""
    versions = [each for each in model.opset_import if each.domain in ("", "ai.onnx") and each.version < 9]
    same = all(onnx.defs.has(node.op_type) and onnx.defs.get_schema(node.op_type, 9).since_version
               == onnx.defs.get_schema(node.op_type, each.version).since_version
               for each in versions for node in model.graph.node)
    for each in versions if same else []:
        each.version = 9
    return model


def write_tensor(path: Path, value: Any) -> None:
    tensor = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value))
    path.write_bytes(tensor.SerializeToString())


def write_case(case: TestCase, folder: Path, inputs: list[Any]) -> None:
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(raised(case.model).SerializeToString())
    for i, value in enumerate(inputs):
        if isinstance(value, list):
            for j, element in enumerate(value):
                write_tensor(folder / f"input_{i}_{j}.pb", element)
        else:
            write_tensor(folder / f"input_{i}.pb", value)


def as_array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return [as_array(each) for each in value] if isinstance(value, list) else np.asarray(value)


def difference(got: Any, want: Any, rtol: float, atol: float) -> str | None:
    """What is wrong with an output, if anything is. Tolerances are those of the case."""
    if isinstance(want, list) or isinstance(got, list):
        if not isinstance(want, list) or not isinstance(got, list) or len(got) != len(want):
            return f"expected {want}, got {got}"
        return next((wrong for a, b in zip(got, want, strict=True) if (wrong := difference(a, b, rtol, atol))), None)
    array = got
    if array.shape != want.shape or array.dtype != want.dtype:
        return f"expected {want.dtype}{list(want.shape)}, got {array.dtype}{list(array.shape)}"
    if want.dtype.kind in "biu":
        return None if np.array_equal(array, want) else f"expected {want.ravel()[:8]}, got {array.ravel()[:8]}"
    if want.dtype.name == "bfloat16":
        array, want = array.astype(np.float32), want.astype(np.float32)
    close = np.isclose(array, want, rtol=rtol, atol=atol, equal_nan=True)
    return None if close.all() else f"expected {want[~close].ravel()[:6]}, got {array[~close].ravel()[:6]}"


def read_outputs(folder: Path) -> list[Any]:
    """Arrays, and lists of them, as onnx_run wrote them."""
    outputs: list[Any] = []
    for line in (folder / "outputs.txt").read_text().splitlines():
        name, kind, *numbers = line.split()
        if kind == "list":
            outputs.append([])
            continue
        dtype = np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
        array = np.frombuffer((folder / name).read_bytes(), dtype).reshape([int(number) for number in numbers])
        (outputs[-1] if name.count("_") == 2 else outputs).append(array)
    return outputs


def check(case: TestCase, folder: Path, wants: list[Any]) -> str | None:
    error = folder / "error.txt"
    if error.exists():
        return error.read_text()
    if not (folder / "outputs.txt").exists():
        return "no output: the program ended"
    for i, (got, want) in enumerate(zip(read_outputs(folder), wants, strict=True)):
        if wrong := difference(got, as_array(want), case.rtol, case.atol):
            return f"output {i}: {wrong}"
    return None


def results(names: Iterable[str], onnx_run: Path, folder: Path) -> dict[str, str | None]:
    """What is wrong with each case, or None."""
    folders = {(name, i): folder / f"{name}-{i}" for name in names for i in range(len(cases()[name].data_sets))}
    for (name, i), place in folders.items():
        write_case(cases()[name], place, cases()[name].data_sets[i][0])
    (folder / "list").write_text("".join(f"{place}\n" for place in folders.values()))
    subprocess.run([onnx_run, folder / "list"], check=False)
    found: dict[str, str | None] = {}
    for (name, i), place in folders.items():
        found[name] = found.get(name) or check(cases()[name], place, cases()[name].data_sets[i][1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="the program onnx_run")
    parser.add_argument("--keep", type=Path, help="an empty folder for the cases, kept")
    parser.add_argument("operators", nargs="*")
    options = parser.parse_args()
    table = subprocess.run([options.run, "--operators"], capture_output=True, text=True, check=True).stdout.split()
    names = [name for name in cases() if name not in EXCLUDED and operators_of(name) <= set(table)
             and (not options.operators or operators_of(name) & set(options.operators))]
    with tempfile.TemporaryDirectory() as temporary:
        found = results(names, options.run, options.keep or Path(temporary))
    wrong = {name: message for name, message in found.items() if message}
    if options.operators:
        for name, message in wrong.items():
            print(f"{name}: {message}")
    else:
        counts = Counter(message.splitlines()[-1] for message in wrong.values())
        for message, count in counts.most_common(200):
            print(f"{count:5} {message[:200]}")
    print(f"{len(found) - len(wrong)} of {len(found)} pass; {len(EXCLUDED)} excluded")


if __name__ == "__main__":
    main()
