"""Safetensors files, written and read with torch alone: neither NumPy nor the package safetensors needs to be there."""

from __future__ import annotations

import ctypes
import json
import math
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

# All that the program reads as data.
DTYPES = {
    torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.int32: "I32", torch.int64: "I64",
    torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64",
}
_BY_NAME = {name: dtype for dtype, name in DTYPES.items()}
_ALIGNMENT = 8  # of the tensors, as the package safetensors has it


@dataclass(frozen=True)
class TensorFile:
    """What a safetensors file holds."""

    tensors: dict[str, Tensor]
    texts: dict[str, str] = field(default_factory=dict)  # its metadata


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes tensors on the CPU, of dtypes in DTYPES. The file appears under its name only when it is whole."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            _write(file, tensors)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_tensors(path: Path) -> TensorFile:
    """Raises ValueError if the file is not a whole safetensors file of these dtypes."""
    content = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8:start])
        texts = header.pop("__metadata__", {})
        return TensorFile({name: _tensor(content, start, entry) for name, entry in header.items()}, texts)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(f"'{path}' is not a whole safetensors file: {error}") from error


def _write(file: BinaryIO, tensors: Mapping[str, Tensor]) -> None:
    # The widest elements first: each tensor then begins at a multiple of its elements' size.
    ordered = sorted(tensors.items(), key=lambda item: -item[1].element_size())
    header, offset = {}, 0
    for name, tensor in ordered:
        end = offset + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    file.write(len(text).to_bytes(8, "little") + text)
    for _, tensor in ordered:
        tensor = tensor.detach().contiguous()
        size = tensor.numel() * tensor.element_size()
        if size > 0:
            file.write((ctypes.c_char * size).from_address(tensor.data_ptr()))


def _tensor(content: bytearray, start: int, entry: Mapping[str, object]) -> Tensor:
    dtype, shape = _BY_NAME[str(entry["dtype"])], [int(size) for size in entry["shape"]]  # type: ignore[attr-defined]
    begin, end = (start + int(offset) for offset in entry["data_offsets"])  # type: ignore[attr-defined]
    count = math.prod(shape)
    if count * dtype.itemsize != end - begin or end > len(content):
        raise ValueError("it was cut off, or its header is damaged")
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    # A copy: its memory is then aligned, and holds nothing but this tensor.
    return torch.frombuffer(content, dtype=torch.uint8, count=end - begin, offset=begin).clone().view(dtype).reshape(shape)
