"""The learning rate of PyTorch programs that train as decent-train does."""

from __future__ import annotations

import math

ETA_MIN, WARM_UP_DECAY = 1e-6, 0.01  # decent-train's defaults


def rate(step: int, steps: int, peak: float, warm_up: int) -> float:
    """decent-train's cosine_warmup, of steps 1, 2, .."""
    u = step - 1
    if u < warm_up:
        return peak * (WARM_UP_DECAY + (1 - WARM_UP_DECAY) * u / warm_up)
    return ETA_MIN + (peak - ETA_MIN) * (1 + math.cos(math.pi * (u - warm_up) / (steps - warm_up))) / 2
