"""Lists of tensors."""

from typing import List

from torch import Tensor


# SequenceErase (opset 11).
def _erased(self, sequence: List[Tensor], place: int) -> List[Tensor]:
    place = place + len(sequence) if place < 0 else place
    return sequence[:place] + sequence[place + 1:]
