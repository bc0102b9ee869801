"""The build, installed once into an empty prefix outside the source tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from package import BUILD, CMAKE, Package, build_examples
from program import ROOT


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("install")


@pytest.fixture(scope="session")
def package(folder: Path) -> Package:
    """It is used where it was moved to, so that nothing may depend on the prefix; a blank is in both paths."""
    first, moved = folder / "first prefix", folder / "moved prefix"
    subprocess.run([CMAKE, "--install", BUILD, "--prefix", first], check=True, stdout=subprocess.DEVNULL)
    first.rename(moved)
    return Package(moved)


@pytest.fixture(scope="session")
def examples(folder: Path, package: Package) -> dict[str, Path]:
    names = sorted(path.parent.name for path in (ROOT / "examples").glob("*/CMakeLists.txt"))
    return build_examples(names, folder / "examples", package)
