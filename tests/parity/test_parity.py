"""decent-train against decent-dp, decent-optim-wrapper and a plain PyTorch reference: the same model file, data and
hyperparameters must give the same loss at every step and the same averaged model at the end.
"""

from __future__ import annotations

import dataclasses
import fnmatch

import numpy as np
import pytest

import launch
from cases import CASES, Case
from compare import LOSS_TOLERANCE, TENSOR_TOLERANCE, compare_losses, compare_tensor


def names() -> list[str]:
    """Those of low precision are in test_all_reduce.py."""
    return [name for name, case in CASES.items() if not case.scaler and case.comm_dtype == "fp32"]


def compare_tensors(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], tolerance: float = TENSOR_TOLERANCE) -> None:
    """ours: state_dict name -> averaged tensor; theirs: a result, see reference.result."""
    expected = {}
    for kind, start in (("param/", "start/"), ("buffer/", "start_buffer/")):
        for key in theirs:
            if key.startswith(kind):
                name = key.removeprefix(kind)
                expected[name] = (theirs[key], theirs[start + name])
    # Integer buffers (batch norm's counters) are not averaged and are not compared here.
    assert {n for n, t in ours.items() if t.dtype.kind == "f"} == set(expected)
    for name, (theirs_tensor, start) in expected.items():
        compare_tensor(name, ours[name], theirs_tensor, start, tolerance)


def compare_norms(case: Case, ours: np.ndarray, theirs: dict[str, np.ndarray]) -> None:
    """grad_norm of the train lines; a float32 norm of a few thousand elements, and gradients as far apart as losses."""
    assert len(ours) == (case.steps if case.clip else 0)
    if "norms" in theirs and case.clip:
        np.testing.assert_allclose(ours, theirs["norms"], rtol=LOSS_TOLERANCE)
        assert (ours < case.clip).any() and (ours > case.clip).any(), "the case clips always, or never"


def tensors_of(result: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {key.split("/", 1)[1]: t for key, t in result.items() if key.startswith(("param/", "buffer/"))}


def stays(case: Case, name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in (*case.freeze, *(case.unused or ())))


def check_that_training_moved(case: Case, result: dict[str, np.ndarray]) -> None:
    """Without this, two programs that do nothing would agree."""
    losses = result["losses"]
    assert np.nanmean(losses[-4:]) < 0.9 * np.nanmean(losses[:4])  # NaN: a step that float16 leaves out
    for key in result:
        if key.startswith("param/"):
            moved = np.linalg.norm(result[key] - result[key.replace("param/", "start/")])
            assert (moved == 0) == stays(case, key.removeprefix("param/")), key


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
