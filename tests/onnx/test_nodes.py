"""Every operator of the import's table computes what the onnx package says, in every one of its node tests."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

import nodes
from excluded import EXCLUDED
from program import ROOT

ONNX_RUN = Path(os.environ["DECENT_ONNX_RUN"])

# What PyTorch's exporters wrote of 39 models of all families, in every form.
WRITTEN_BY_EXPORTERS = """
Constant Concat Reshape Shape Add Expand Gemm Mul Identity Unsqueeze CastLike Gather Slice Transpose Cast ReduceMean Conv
Div Dropout ConstantOfShape MatMul Relu Equal Flatten Squeeze Sub LayerNormalization Where BatchNormalization Range
Softmax Sqrt GlobalAveragePool Gelu MaxPool Sigmoid Less Pow GatherND Max Split Tanh SequenceAt SplitToSequence Greater
And Attention Erf LessOrEqual Mod Not Pad RandomUniformLike Resize Trilu CumSum IsNaN Reciprocal AveragePool
ConcatFromSequence ConvTranspose GRU GreaterOrEqual HardSigmoid HardSwish If InstanceNormalization LSTM LeakyRelu Loop Neg
PRelu ReduceMax ReduceSum ScatterND SequenceEmpty SequenceInsert Size Abs Clip Cos DepthToSpace Elu Exp GatherElements
GroupNormalization Log LogSoftmax Min RMSNormalization RNN RandomNormalLike ReduceL2 ReduceProd Sin Softplus LRN Sum
""".split()


@cache
def table() -> frozenset[str]:
    lines = subprocess.run([ONNX_RUN, "--operators"], capture_output=True, text=True, check=True).stdout
    return frozenset(lines.split())


def covered() -> list[str]:
    """Cases in which only operators of the table occur."""
    return [name for name in nodes.cases() if nodes.operators_of(name) <= table()]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """What is wrong with each covered case, if anything is."""
    names = [name for name in covered() if name not in EXCLUDED]
    return nodes.results(names, ONNX_RUN, tmp_path_factory.mktemp("nodes"))


def test_the_table_has_what_exporters_write() -> None:
    assert set(WRITTEN_BY_EXPORTERS) - table() == set()


def test_all_pass(found: dict[str, str | None]) -> None:
    assert {name: message for name, message in found.items() if message} == {}


def test_exclusions_are_of_covered_cases() -> None:
    """A list of what cannot pass, not of what nobody looked at."""
    assert set(EXCLUDED) - set(covered()) == set()
    assert all(EXCLUDED.values())


def test_the_document_has_the_numbers(found: dict[str, str | None]) -> None:
    sentence = (f"{len(found)} of the {len(nodes.cases())} node tests of onnx {nodes.onnx.__version__} run and pass; "
                f"{len(EXCLUDED)} are left out, each with its reason; "
                f"{len(nodes.cases()) - len(found) - len(EXCLUDED)} are about operators that are not in the table")
    assert sentence in re.sub(r"\s+", " ", (ROOT / "docs" / "onnx.md").read_text())
