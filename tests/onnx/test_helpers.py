"""TorchScript methods beside the operators, operators/*.py: files of Python, each of whose functions says which operators
of which version it is for. unit.model compiles every one, unit.onnx compares what the program holds.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import subprocess
from pathlib import Path

import pytest

from program import ROOT

FILES = sorted((ROOT / "lib" / "decent" / "onnx" / "operators").glob("*.py"))
FUNCTION = re.compile(r"((?:^# .*\n)*)^def (_\w+)\(self, ", re.MULTILINE)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_is_python(file: Path) -> None:
    """Names in annotations and defaults are there, so that editors know them, too."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    functions = dict(inspect.getmembers(module, inspect.isfunction))
    assert set(functions) == {name for _, name in FUNCTION.findall(file.read_text())}
    assert module.__doc__
    for function in functions.values():
        signature = inspect.signature(function)
        assert signature.return_annotation is not inspect.Signature.empty
        assert all(each.annotation is not inspect.Parameter.empty for each in list(signature.parameters.values())[1:])


def test_every_function_says_what_it_is_for() -> None:
    table = set(subprocess.run([os.environ["DECENT_ONNX_RUN"], "--operators"], capture_output=True, text=True,
                               check=True).stdout.split())
    comments = {name: comment for file in FILES for comment, name in FUNCTION.findall(file.read_text())}
    assert len(comments) > 90
    assert {name: comment for name, comment in comments.items()
            if not (set(re.findall(r"\w+", comment)) & table and re.search(r"\(.*opset \d+.*\)", comment, re.DOTALL))} == {}


def test_all_files_are_seen() -> None:
    """A family's file has the name of the family's C++ file, but for what several families call."""
    assert {file.stem for file in FILES} - {file.stem for file in FILES[0].parent.glob("*.cpp")} == {"integers"}
