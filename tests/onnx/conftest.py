"""Fixtures: networks are exported, data is written and each training is run once, when the first test asks for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import exports
import harness
from catalogue import make_data
from tensors import write_safetensors

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """(network, form) -> its file; the form "pt" is TorchScript. Each in a folder of its own, for external data."""
    folder = tmp_path_factory.mktemp("exports")

    @functools.cache
    def get(name: str, form: str) -> Path:
        own = folder / f"{name}.{form}"
        own.mkdir()
        return exports.script(name, own) if form == "pt" else exports.export(name, form, own)

    return get


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Network -> its data as safetensors."""
    folder = tmp_path_factory.mktemp("data")

    @functools.cache
    def get(name: str) -> Path:
        path = folder / f"{name}.safetensors"
        write_safetensors(path, make_data(name))
        return path

    return get


@pytest.fixture(scope="session")
def trained(exported, data, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., harness.TrainedRun]:
    """(network, form, optimizer, workers) -> the run."""
    @functools.cache
    def get(name: str, form: str, optimizer: str, workers: int = 1) -> harness.TrainedRun:
        folder = tmp_path_factory.mktemp(f"{name}-{form}-{optimizer}-{workers}")
        settings = harness.make_recipe(name, exported(name, form), data(name), optimizer)
        return harness.train_recipe(folder, settings, workers)

    return get
