"""decent-train against decent-dp, decent-optim-wrapper and a plain PyTorch reference: the same model file, data and
hyperparameters must give the same loss at every step and the same averaged model at the end.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import launch
from cases import CASES, Case
from compare import LOSS_TOLERANCE, check_that_training_moved, compare_losses, compare_tensors, tensors_of


def names() -> list[str]:
    """Those of low precision are in test_all_reduce.py."""
    return [name for name, case in CASES.items() if not case.scaler and case.comm_dtype == "fp32"]


def compare_norms(case: Case, ours: np.ndarray, theirs: dict[str, np.ndarray]) -> None:
    """grad_norm of the train lines; a float32 norm of a few thousand elements, and gradients as far apart as losses."""
    assert len(ours) == (case.steps if case.clip else 0)
    if "norms" in theirs and case.clip:
        np.testing.assert_allclose(ours, theirs["norms"], rtol=LOSS_TOLERANCE)
        assert (ours < case.clip).any() and (ours > case.clip).any(), "the case clips always, or never"


@pytest.mark.parametrize("name", names())
def test_peers_agree_with_reference(name: str, peer_result, reference_result) -> None:
    """If this fails, the yardstick is bent: do not look for the mistake in decent-train."""
    case = CASES[name]
    theirs = reference_result(case)
    check_that_training_moved(case, theirs)
    for peer in case.peers:
        ours = peer_result(case, peer)
        compare_losses(ours["losses"], theirs["losses"])
        compare_tensors(tensors_of(ours), theirs)


def check_decent_train(case: Case, run: dict[str, np.ndarray], references: list[dict[str, np.ndarray]]) -> None:
    ours = {key.removeprefix("tensor/"): t for key, t in run.items() if key.startswith("tensor/")}
    for theirs in references:
        check_that_training_moved(case, theirs)
        assert len(theirs["losses"]) == case.steps
        compare_losses(run["losses"], theirs["losses"])
        compare_tensors(ours, theirs)
        compare_norms(case, run["norms"], theirs)


@pytest.mark.parametrize("name", names())
def test_decent_train_agrees(name: str, folder, tmp_path, peer_result, reference_result) -> None:
    case = CASES[name]
    run = launch.run_decent_train(case, folder, tmp_path)
    check_decent_train(case, run, [reference_result(case), *(peer_result(case, peer) for peer in case.peers)])


@pytest.mark.parametrize("name", ["adamw-ring-mlp-n2", "clip-bucket-cnn-n2", "accumulation-2-ring-cnn-n2",
                                  "all-reduce-clip-bucket-cnn-n3"])
def test_in_backward_and_after_backward_are_the_same(name: str, folder, tmp_path) -> None:
    """Bit for bit."""
    runs = []
    for update in ("in_backward", "after_backward"):
        case = dataclasses.replace(CASES[name], update=update)
        runs.append(launch.run_decent_train(case, folder, (tmp_path / update)))
    assert runs[0].keys() == runs[1].keys()
    for key in runs[0]:
        np.testing.assert_array_equal(runs[0][key], runs[1][key], err_msg=key)


@pytest.mark.parametrize("launcher", ["agent-store", "static"])
@pytest.mark.parametrize("name", ["adamw-ring-mlp-n2", "adamw-alternating-exp-ring-cnn-n4"])
def test_decent_train_agrees_under_torchrun(name: str, launcher: str, folder, tmp_path, peer_result) -> None:
    case = CASES[name]
    run = launch.run_decent_train(case, folder, tmp_path, launch.torchrun_options()[launcher])
    check_decent_train(case, run, [peer_result(case, peer) for peer in case.peers])
