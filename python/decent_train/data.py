"""save_data: arrays as a file that a recipe names as a source of data."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_AT_ONCE = 1 << 24  # elements that are searched for NaN at a time


def save_data(path: str | os.PathLike[str], /, **arrays: object) -> Path:
    """Writes arrays as a safetensors file: `data.train: {format: safetensors, path: FILE}` of a recipe reads it.

    Each array is a field of the data, of shape [samples, ..]: a NumPy array, a torch tensor, a pandas Series or DataFrame of
    numbers, or nested lists. Numbers in lists become int64, or float32 if one of them has a fraction. Other arrays keep their
    dtype, which must be bool, uint8, int8 to int64, float16, bfloat16, float32 or float64 (docs/data.md).

    Returns the path. An existing file is replaced; until the new one is whole, the old one stays.

    Raises ValueError if the arrays differ in their number of samples, if one is empty or holds NaN or infinity, or if a name or
    the path cannot be used; TypeError if an array does not consist of numbers of such a dtype; OSError if the file cannot be
    written.
    """
    path = Path(path)
    if path.suffix != ".safetensors":
        raise ValueError(f"save_data('{path}'): the file's name must end in .safetensors")
    if not arrays:
        raise ValueError(f"save_data('{path}'): no arrays were given; expected for example x=images, y=labels")
    tensors = {_checked_name(name): tensor_of(name, array) for name, array in arrays.items()}
    _check_samples(tensors)
    for name, tensor in tensors.items():
        _check_finite(name, tensor)
    write(path, tensors)
    return path


def write(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Raises OSError, naming the file, if it cannot be written."""
    from .tensor_files import write_tensors

    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write '{path}': there is no folder '{path.parent}'")
    try:
        write_tensors(path, tensors)
    except OSError as error:  # it may name a temporary file
        raise OSError(error.errno, error.strerror, str(path)) from error


def tensor_of(name: str, array: object) -> Tensor:
    """The array as a tensor on the CPU. Raises TypeError and ValueError as save_data does."""
    import torch

    from .tensor_files import DTYPES

    array = array.to_numpy() if hasattr(array, "to_numpy") else array
    dtype = getattr(array, "dtype", None)
    if getattr(dtype, "kind", "") in ("O", "U", "S", "M", "m", "V"):
        raise TypeError(f"array '{name}' holds {_what(dtype)}, not numbers")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*not writable.*")  # nothing writes to the tensor
            tensor = torch.as_tensor(_in_order(array)).detach()
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise TypeError(f"array '{name}' is not an array of numbers: {error}") from error
    if tensor.dtype not in DTYPES:
        names = ", ".join(str(each).removeprefix("torch.") for each in DTYPES)
        raise TypeError(f"array '{name}' has elements of {str(tensor.dtype).removeprefix('torch.')}; the program reads {names}")
    if tensor.layout != torch.strided or tensor.is_meta:
        raise TypeError(f"array '{name}' is no dense tensor: to_dense() makes one")
    if tensor.dim() == 0:
        raise ValueError(f"array '{name}' is a single number; its first dimension must count the samples")
    if tensor.numel() == 0:
        raise ValueError(f"array '{name}' is empty: its shape is {list(tensor.shape)}")
    return tensor.cpu().resolve_conj().resolve_neg()


def _in_order(array: object) -> object:
    """NumPy's arrays as torch takes them: in the machine's byte order, and with no negative strides."""
    dtype: Any = getattr(array, "dtype", None)
    if not hasattr(dtype, "newbyteorder"):
        return array
    import numpy

    ordered = numpy.asarray(array, dtype=dtype.newbyteorder("="))
    return ordered.copy() if any(stride < 0 for stride in ordered.strides) else ordered


def _what(dtype: object) -> str:
    kinds = {"O": "Python objects", "U": "texts", "S": "bytes", "M": "dates", "m": "durations", "V": "records"}
    return f"{kinds[getattr(dtype, 'kind')]} (dtype {dtype})"


def _checked_name(name: str) -> str:
    if name == "__metadata__" or not name or not name.isprintable():
        raise ValueError(f"{name!r} cannot be the name of an array: safetensors keeps '__metadata__' for itself, and a "
                         "name has at least one character and no line breaks")
    return name


def _check_samples(tensors: Mapping[str, Tensor]) -> None:
    first = next(iter(tensors))
    for name, tensor in tensors.items():
        if len(tensor) != len(tensors[first]):
            raise ValueError(f"array '{name}' has {len(tensor)} samples, and '{first}' has {len(tensors[first])}: the first "
                             "dimension counts the samples, and every array needs the same number")


def _check_finite(name: str, tensor: Tensor) -> None:
    import torch

    if not tensor.is_floating_point():
        return
    per_sample = math.prod(tensor.shape[1:])
    rows = max(1, _AT_ONCE // per_sample)
    for begin in range(0, len(tensor), rows):
        found = torch.nonzero(~torch.isfinite(tensor[begin:begin + rows]))
        if len(found) == 0:
            continue
        place = found[0].tolist()
        value = tensor[begin:begin + rows][tuple(place)].item()
        place[0] += begin
        raise ValueError(f"array '{name}' holds {value} at {place}: every number must be finite")
