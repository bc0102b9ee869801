"""Fixtures: models and data are made once, when the first test asks for them. PyTorch is only loaded for these."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tensors import write_safetensors

if TYPE_CHECKING:
    from browser import Page


@pytest.fixture(scope="session")
def zoo():
    import torch

    import zoo

    torch.set_num_threads(1)
    return zoo


@pytest.fixture(scope="session")
def model(zoo, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Name from zoo.MODELS -> its scripted file."""
    folder = tmp_path_factory.mktemp("models")

    @functools.cache
    def get(name: str) -> Path:
        path = folder / f"{name}.pt"
        zoo.save_scripted(zoo.make_model(name), path)
        return path

    return get


@pytest.fixture(scope="session")
def data(zoo, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Name of a data set (zoo.make_data) -> its safetensors file."""
    folder = tmp_path_factory.mktemp("data")

    @functools.cache
    def get(name: str) -> Path:
        path = folder / f"{name}.safetensors"
        write_safetensors(path, zoo.make_data(name))
        return path

    return get


@pytest.fixture(scope="session")
def tab() -> Iterator[Page]:
    """Of headless Chromium."""
    from browser import Browser

    chromium = Browser()
    try:
        yield chromium.page()
    finally:
        chromium.close()


@pytest.fixture
def page(tab: Page) -> Page:
    """The tab as it is at first, which has said nothing yet."""
    tab.open("about:blank")
    tab.console.clear()
    tab.media("light")
    tab.size(1200)
    return tab
