"""Safetensors files, read and written without the safetensors package, and comparison bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

DTYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32, "U8": np.uint8,
          "BOOL": np.bool_}


def safetensors_bytes(header: str | dict, data: bytes) -> bytes:
    """A file of any header, also of one that no reader should accept."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return len(text).to_bytes(8, "little") + text + data


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
    header, offset = {}, 0
    for name, tensor in tensors.items():
        end = offset + tensor.nbytes
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    data = b"".join(np.ascontiguousarray(tensor).tobytes() for tensor in tensors.values())
    path.write_bytes(safetensors_bytes(header, data))


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


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def differing(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> list[str]:
    """Names of the tensors that are not the same in both, bit for bit."""
    return [name for name in sorted(a.keys() | b.keys())
            if name not in a or name not in b or not same_bits(a[name], b[name])]
