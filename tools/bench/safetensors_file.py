"""Safetensors files of the few types that the benchmarks use."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

DTYPES = {"U8": np.uint8, "I64": np.int64, "F32": np.float32}


def read_safetensors(path: str | Path) -> dict[str, np.ndarray]:
    raw = Path(path).read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    return {name: np.frombuffer(raw[slice(*(start + o for o in entry["data_offsets"]))], DTYPES[entry["dtype"]])
            .reshape(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}


def write_safetensors(path: str | Path, tensors: dict[str, np.ndarray]) -> None:
    names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
    header, offset = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": names[tensor.dtype], "shape": tensor.shape,
                        "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    text = json.dumps(header).encode()
    Path(path).write_bytes(len(text).to_bytes(8, "little") + text +
                           b"".join(np.ascontiguousarray(t).tobytes() for t in tensors.values()))
