"""Seeded, learnable data sets for the parity models, and safetensors files without the safetensors package."""

import json
from pathlib import Path

import numpy as np

CLASSES = 5
DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32, "U8": np.uint8}


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
    header, offset = {}, 0
    for name, tensor in tensors.items():
        end = offset + tensor.nbytes
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(np.ascontiguousarray(t).tobytes() for t in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(raw[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def make_data(model: str, samples: int) -> dict[str, np.ndarray]:
    """Fields x (float32) and y: a class per sample (int64), or three targets for the regressor (float32)."""
    rng = np.random.default_rng(7)
    shape = (1, 8, 8) if model == "cnn" else (16,)
    if model == "regressor":
        x = rng.normal(size=(samples, *shape))
        y = np.tanh(x @ rng.normal(size=(16, 3)) / 2)
        return {"x": x.astype(np.float32), "y": y.astype(np.float32)}
    if model == "cnn":  # a texture per class: 2x2 pixels, repeated
        centres = np.tile(rng.normal(size=(CLASSES, 1, 2, 2)), (1, 1, 4, 4))
    else:
        centres = rng.normal(size=(CLASSES, *shape))
    y = rng.integers(CLASSES, size=samples)
    x = centres[y] + rng.normal(size=(samples, *shape))
    return {"x": x.astype(np.float32), "y": y.astype(np.int64)}


def data_file(folder: Path, model: str, samples: int) -> Path:
    return folder / f"{model}-{samples}.safetensors"
