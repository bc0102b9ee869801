"""Wheels without content, for a pip that may install from nowhere else."""

from __future__ import annotations

import importlib.metadata
import zipfile
from pathlib import Path


def write_wheel(folder: Path, name: str, version: str, files: dict[str, bytes]) -> None:
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    described = {f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
                 f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    described = {**described, **files}
    record = "".join(f"{path},,\n" for path in [*described, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl", "w") as wheel:
        for path, content in {**described, f"{info}/RECORD": record.encode()}.items():
            wheel.writestr(path, content)


def write_own_pip(folder: Path) -> str:
    """The pip that this Python has, as a wheel again. Its version."""
    pip = importlib.metadata.distribution("pip")
    files = {str(path): path.locate().read_bytes() for path in pip.files or []
             if path.parts[0] == "pip" and path.suffix != ".pyc"}
    assert len(files) > 100, "the files of pip were not found"
    write_wheel(folder, "pip", pip.version, files)
    return pip.version
