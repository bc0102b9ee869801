"""Which elements of an imported tensor are which elements of eager's parameters.

Exporters rename, transpose, split, pack and reorder weights (`onnx::MatMul_12`, `val_5`, gates in the order iofc). All
elements of the networks differ (catalogue.make_model), so that each is found again by its value, wherever it went.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Tensors = dict[str, np.ndarray]


@dataclass(frozen=True)
class Match:
    """`places` has an imported tensor's shape and holds positions in eager's tensors, flat and one after the other."""

    places: dict[str, np.ndarray]  # imported name -> places
    offsets: dict[str, range]  # eager name -> its positions
    close: dict[str, str]  # imported name -> eager name, where the export computed a value (folded batch norm)

    def sources(self, imported: str) -> set[str]:
        """Eager's tensors that the imported one is made of."""
        places = self.places[imported]
        return {name for name, own in self.offsets.items() if ((places >= own.start) & (places < own.stop)).any()}

    def of(self, eager: str) -> dict[str, int]:
        """Imported tensors that hold eager's, with how many of its elements."""
        own = self.offsets[eager]
        counts = {name: int(((places >= own.start) & (places < own.stop)).sum())
                  for name, places in self.places.items()}
        return {name: count for name, count in counts.items() if count}

    def gather(self, imported: str, eager: Tensors) -> np.ndarray:
        """The imported tensor, made of eager's elements."""
        flat = np.concatenate([eager[name].ravel() for name in self.offsets])
        return flat[self.places[imported]]


def match(imported: Tensors, eager: Tensors) -> Match:
    """Tensors of `imported` that are in no way eager's are left out."""
    result = same_layout(eager)
    result.places.clear()
    flat = np.concatenate([tensor.ravel() for tensor in eager.values()])
    for name, tensor in imported.items():
        found = _find_in(name, tensor, flat, result.offsets)
        found = _find(tensor, flat) if found is None else found
        if found is not None:
            result.places[name] = found
    _tell_copies_apart(result, eager)
    _match_close(result, imported, eager)
    return result


def _find_in(name: str, tensor: np.ndarray, flat: np.ndarray, offsets: dict[str, range]) -> np.ndarray | None:
    """Places in eager's tensor of that name."""
    own = offsets.get(name, range(0))
    found = _find(tensor, flat[own.start:own.stop])
    return None if found is None else found + own.start


def _find(tensor: np.ndarray, flat: np.ndarray) -> np.ndarray | None:
    """Places of all the tensor's elements, or None if one is not there; of equal elements the first."""
    order = flat.argsort(kind="stable")
    if tensor.size == 0 or tensor.dtype != flat.dtype or len(order) == 0:
        return None
    at = np.searchsorted(flat[order], tensor).clip(max=len(order) - 1)
    return order[at] if (flat[order[at]] == tensor).all() else None


def _tell_copies_apart(result: Match, eager: Tensors) -> None:
    """Weights that were tied are equal: an embedding, and a later linear layer, whose weight MatMul has transposed."""
    names = list(eager)
    for i, first in enumerate(names):
        for second in names[i + 1:]:
            if np.array_equal(eager[first], eager[second]):
                for name in {**result.of(first), **result.of(second)}:
                    places = np.arange(eager[first].size).reshape(eager[first].shape)
                    transposed = result.places[name].shape == places.T.shape
                    own = result.offsets[second if transposed else first]
                    result.places[name] = (places.T if transposed else places) + own.start


def same_layout(tensors: Tensors) -> Match:
    """Where names and layouts are the same."""
    offsets, end = {}, 0
    for name, tensor in tensors.items():
        offsets[name] = range(end, end + tensor.size)
        end += tensor.size
    return Match({name: np.array(offsets[name]).reshape(t.shape) for name, t in tensors.items()}, offsets, {})


def _match_close(result: Match, imported: Tensors, eager: Tensors) -> None:
    """Tensors that are equal but for rounding, of the same shape or transposed; the exact matches are done."""
    left = [name for name in eager if not result.of(name)]
    for name, tensor in imported.items():
        if name in result.places or tensor.dtype != np.float32 or tensor.size == 0:
            continue
        for own in sorted(left, key=lambda own: own != name):
            places = np.array(result.offsets[own]).reshape(eager[own].shape)
            layout = _close_layout(tensor, eager[own], places)
            if layout is not None:
                result.places[name], result.close[name] = layout, own
                left.remove(own)
                break


def _close_layout(tensor: np.ndarray, own: np.ndarray, places: np.ndarray) -> np.ndarray | None:
    for a, b in ((own, places), (own.T, places.T)):
        if a.shape == tensor.shape and np.allclose(tensor, a, rtol=1e-5, atol=1e-6):
            return b
    return None
