"""--predict: files of predictions made and read back, and what PyTorch says of the same samples."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

from program import Ended, run_workers
from tensors import read_safetensors

FORMATS = (".npz", ".safetensors", ".csv", ".jsonl")


def predict(folder: Path, settings: dict, name: str = "out.npz", *flags: object, workers: int = 1,
            **variables: object) -> list[Ended]:
    """Runs the recipe with --predict in `folder`, whatever comes of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "predict.yaml").write_text(json.dumps({"output": str(folder / "run"), **settings}))
    return run_workers(workers, "--config", folder / "predict.yaml", "--predict", name, *flags, cwd=folder, **variables)


def predicted(folder: Path, settings: dict, name: str = "out.npz", *flags: object, workers: int = 1) -> dict[str, np.ndarray]:
    """What the file holds after a run that must go well."""
    ended = predict(folder, settings, name, *flags, workers=workers)
    assert [e.code for e in ended] == [0] * workers, "\n".join(e.err + e.out for e in ended)
    return read_predictions(folder / name)


def read_predictions(path: Path) -> dict[str, np.ndarray]:
    """Arrays by name, whatever the format; classes as they stand in the file."""
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return dict(arrays)
    if path.suffix == ".safetensors":
        return {**read_safetensors(path), **{key: np.array(json.loads(text)) for key, text in metadata_of(path).items()}}
    if path.suffix == ".csv":
        return read_csv(path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    floats = {key: np.array(columns.pop(key), np.float32) for key in ("output", "probability") if key in columns}
    return {**{key: np.array(values) for key, values in columns.items()}, **floats}


def metadata_of(path: Path) -> dict[str, str]:
    raw = path.read_bytes()
    return json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")]).get("__metadata__", {})


def text_in_cell(cell: str) -> str:
    """Without the mark of a text that spreadsheets would take for a formula."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in "=+-@\t\r'" else cell


def read_csv(path: Path) -> dict[str, np.ndarray]:
    """Numbered columns as [rows, columns]."""
    with path.open(newline="") as text:
        rows = list(csv.DictReader(text))
    arrays: dict[str, np.ndarray] = {}
    for key in ("output", "class", "probability"):
        several = [name for name in rows[0] if name.startswith(key + "_")]
        names = several or ([key] if key in rows[0] else [])
        cells = np.array([[text_in_cell(row[name]) if key == "class" else row[name] for name in names] for row in rows])
        if names:
            arrays[key] = cells if several else cells[:, 0]
    for key in ("output", "probability"):
        if key in arrays:
            arrays[key] = arrays[key].astype(np.float32)
    if "class" in arrays and all(cell.isdigit() for cell in arrays["class"].flat):
        arrays["class"] = arrays["class"].astype(np.int64)
    for key in ("row", "file_row"):
        if key in rows[0]:
            arrays[key] = np.array([int(row[key]) for row in rows])
    if "file" in rows[0]:
        arrays["file"] = np.array([text_in_cell(row["file"]) for row in rows])
    return arrays


def outputs_of(model: Path, *inputs: np.ndarray, batch: int = 256) -> np.ndarray:
    """What PyTorch makes of the samples, in batches of that size. Each batch is a tensor of PyTorch's own, as in the program: on
    some processors the last bits of a product depend on where in memory its factors begin.
    """
    import torch

    torch.set_num_threads(1)
    module = torch.jit.load(str(model)).eval()
    with torch.no_grad():
        parts = [module(*(torch.from_numpy(x[at:at + batch]).clone() for x in inputs)) for at in range(0, len(inputs[0]), batch)]
        return torch.cat(parts).numpy()


def softmax(output: np.ndarray, dim: int = -1) -> np.ndarray:
    powers = np.exp(output.astype(np.float64) - output.max(dim, keepdims=True))
    return powers / powers.sum(dim, keepdims=True)
