"""The figures of an evaluation, and which of their values are better (docs/metrics.md, docs/recipe.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# As the program has them for `checkpoint.keep_best`, and the distance between the copies, which every evaluation
# measures.
LOWER = ("loss", "perplexity", "bits_per_byte", "mse", "mae", "consensus_distance")
HIGHER = ("accuracy", "precision", "recall", "f1", "mean_iou", "dice", "auc", "r2")
_TOP = re.compile(r"top[1-9][0-9]*")
ALWAYS = ("loss", "consensus_distance")
# With these losses an evaluation measures the accuracy if the recipe does not say what to measure.
_WITH_ACCURACY = ("cross_entropy", "nll", "focal", "kl", "bce_with_logits")


def direction_of(metric: str) -> str | None:
    """minimize or maximize; None for a metric that the program does not have."""
    if metric in HIGHER or _TOP.fullmatch(metric):
        return "maximize"
    return "minimize" if metric in LOWER else None


def measured(recipe: Mapping[str, Any]) -> list[str]:
    """The figures that evaluations of a resolved recipe have."""
    metrics = recipe["eval"]["metrics"]
    if metrics is None:
        metrics = ["accuracy"] if recipe["model"]["loss"] in _WITH_ACCURACY else []
    return list(dict.fromkeys([*ALWAYS, *metrics]))
