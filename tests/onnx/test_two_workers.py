"""Two workers train an exported network as they train its TorchScript twin."""

from __future__ import annotations

import pytest

from agreement import assert_agrees
from eager import Trained, state_of
from harness import cases
from matching import match

# Forms in which nothing is folded and no weight has other dimensions than in the twin: the same tensors decay.
FORMS = ("O", "LN")
CHOSEN = {"O": ["several_outputs"], "LN": ["resnet18", "gpt", "lstm"]}


@pytest.mark.parametrize(("name", "form"), cases(CHOSEN, FORMS))
def test_two_workers_follow_the_twin(name: str, form: str, trained) -> None:
    ours, twin = trained(name, form, "adamw", workers=2), trained(name, "pt", "adamw", workers=2)
    imported, start = ours.imported(), state_of(twin.start())
    weights = twin.run.weights
    reference = Trained(twin.run.losses, twin.run.evaluation["loss"], start, {key: weights[key] for key in start})
    assert_agrees(name, ours.run, imported, match(imported.tensors, start), reference)
    distance = twin.run.evaluation["consensus_distance"]
    assert distance > 0 and ours.run.evaluation["consensus_distance"] == pytest.approx(distance, rel=1e-3)
