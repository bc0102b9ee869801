"""Fixtures of the parity tests: models and data written once, each peer run once per world size."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
import torch

import all_reduce
import launch
import models
import reference
from cases import CASES, Case
from data import data_file, make_data
from tensors import write_safetensors

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds every exported model, data file and peer result of this session."""
    path = tmp_path_factory.mktemp("parity")
    models.export_all(path)
    for name in {case.model for case in CASES.values() if case.format == "onnx"}:
        models.export_onnx(name, path)
    for case in CASES.values():
        file = data_file(path, case.model, case.samples)
        if not file.exists():
            write_safetensors(file, make_data(case.model, case.samples))
    return path


@pytest.fixture(scope="session")
def reference_result(folder: Path):
    """Case -> result of the plain PyTorch reference."""
    trains = {"gossip": reference.train, "all_reduce": all_reduce.train}
    return functools.cache(lambda case: trains[case.method](case, folder))


@pytest.fixture(scope="session")
def peer_result(folder: Path, request: pytest.FixtureRequest):
    """(case, peer) -> result. The first call of a world size runs all cases of it that this session will ask for."""
    selected = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}

    def get(case: Case, peer: str) -> dict[str, np.ndarray]:
        file = launch.peer_result_file(folder, case, peer)
        if not file.exists():
            launch.run_peers([c for c in CASES.values() if c.workers == case.workers and c.name in selected], folder)
        with np.load(file) as arrays:
            return dict(arrays)

    return functools.cache(get)
