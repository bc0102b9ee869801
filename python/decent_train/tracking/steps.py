"""A set of steps that stays small."""

from __future__ import annotations

from collections.abc import Iterable

# Beyond that the oldest ranges are joined; a regular run has one or two.
_MOST_RANGES = 100


class Steps:
    """Steps are added in rising order, as a run reaches them. They are kept as ranges (first, last, stride), so that
    lines at regular intervals take one range, however many they are.
    """

    def __init__(self, ranges: Iterable[Iterable[int]] = ()) -> None:
        self._ranges = [tuple(each) for each in ranges]

    def __contains__(self, step: int) -> bool:
        return any(first <= step <= last and (step - first) % stride == 0 for first, last, stride in self._ranges)

    def add(self, step: int) -> None:
        """Steps lower than the last one are kept, too, as ranges of their own."""
        if step in self:
            return
        if not self._ranges or step < self._ranges[-1][1]:
            self._ranges.append((step, step, 1))
            self._ranges.sort()
        else:
            self._append(step)
        if len(self._ranges) > _MOST_RANGES:
            (first, _, _), (_, last, _) = self._ranges[:2]
            self._ranges[:2] = [(first, last, 1)]

    def cut(self, step: int) -> None:
        """Removes all later steps."""
        kept = []
        for first, last, stride in self._ranges:
            if first <= step:
                kept.append((first, min(last, first + (step - first) // stride * stride), stride))
        self._ranges = kept

    def ranges(self) -> list[list[int]]:
        return [list(each) for each in self._ranges]

    def _append(self, step: int) -> None:
        first, last, stride = self._ranges[-1]
        if first == last or step - last == stride:
            self._ranges[-1] = (first, step, step - last)
        else:
            self._ranges.append((step, step, 1))
