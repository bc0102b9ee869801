"""Sources of data made of what Python has at hand."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .data import tensor_of, write

# Ending of a file -> its format. Others, and folders, have the format of the run's training data.
_FORMATS = {".safetensors": "safetensors", ".npz": "npz", ".csv": "csv"}


def source_of(data: object, recipe: Mapping[str, Any], fields: Sequence[str], folder: Path) -> dict[str, object]:
    """A source as a recipe has it. Arrays are written into `folder`.

    fields: those that are needed. Raises ValueError and TypeError as save_data does, and if a field
    is missing.
    """
    whole: dict[str, object] = {"limit": None, "holdout": None}  # not the training data's
    if isinstance(data, (str, os.PathLike)):
        train = recipe["data"]["train"]
        path = Path(data).absolute()
        return {**whole, "format": _FORMATS.get(path.suffix, train["format"]), "path": str(path)}
    if hasattr(data, "to_csv"):  # pandas
        data.to_csv(folder / "data.csv", index=False)
        return {**whole, "format": "csv", "path": str(folder / "data.csv")}
    if isinstance(data, Mapping) and isinstance(data.get("format"), str):
        return dict(data)
    if not isinstance(data, Mapping):
        if len(fields) > 1:
            raise TypeError(f"the fields {', '.join(fields)} are needed: give a dict of arrays with these names")
        data = {fields[0]: data}
    missing = [name for name in fields if name not in data]
    if missing:
        raise ValueError(f"the data has no field '{missing[0]}'; it has {', '.join(map(str, data))}")
    write(folder / "data.safetensors", {name: tensor_of(name, data[name]) for name in fields})
    return {**whole, "format": "safetensors", "path": str(folder / "data.safetensors")}
