"""optimizer.name: muon, as a user meets it; its updates against PyTorch's are cases of tests/parity."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs import assert_same_run, assert_says, merged, recipe, refused, train

MUON = {"name": "muon", "lr": 0.01}


def settings(**changes: object) -> dict:
    return merged(recipe(optimizer=MUON, train={"steps": 40}, parallel={"topology": "ring"}, eval={"every_steps": 20}), changes)


@pytest.mark.parametrize("dtype", ["modulo2", "modulo4", "fp32"])
def test_goes_on_after_a_resume(dtype: str, tmp_path: Path) -> None:
    own = settings(parallel={"comm_dtype": dtype}, checkpoint={"every_steps": 10, "keep": 9})
    wanted = train(tmp_path / "wanted", own, workers=2)
    train(tmp_path / "parts", own, "--set", "train.steps=20", workers=2)
    assert_same_run(train(tmp_path / "parts", own, "--resume", "auto", workers=2), wanted)


@pytest.mark.parametrize("adjust", ["match_rms_adamw", "original"])
@pytest.mark.parametrize("dtype", ["modulo2", "modulo4"])
def test_codes_reach_its_steps(dtype: str, adjust: str, tmp_path: Path) -> None:
    """Few weights leave the range of the codes, whose grid follows the size of steps, and the loss is that of whole weights."""
    lr = {"match_rms_adamw": 0.01, "original": 0.03}[adjust]
    own = settings(optimizer={"adjust_lr_fn": adjust, "lr": lr}, train={"steps": 120}, eval={"every_steps": 120})
    whole = train(tmp_path / "fp32", own, workers=4)
    coded = train(tmp_path / dtype, merged(own, {"parallel": {"comm_dtype": dtype}}), workers=4)
    assert max(line["wrap_share"] for line in coded.lines("train") if "wrap_share" in line) < 0.05
    wanted, loss = whole.lines("eval")[-1]["loss"], coded.lines("eval")[-1]["loss"]
    assert wanted < 0.3 and abs(loss - wanted) < 0.2 * wanted, (loss, wanted)


def test_mistakes(tmp_path: Path) -> None:
    groups = {"param_groups": [{"match": "*", "optimizer": "adamw"}]}
    assert_says(refused(tmp_path, settings(optimizer={"name": "sgd", "lr": 0.1, **groups})), "optimizer.param_groups.optimizer: is for", "it is sgd")
    groups = {"param_groups": [{"match": "*", "optimizer": "sgd"}]}
    assert_says(refused(tmp_path, settings(optimizer=groups)), "optimizer.param_groups.optimizer: expected adamw", 'got "sgd"')
    assert_says(refused(tmp_path, settings(optimizer={"ns_steps": 0})), "optimizer.ns_steps", "[1, 99]")
