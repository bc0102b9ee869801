"""Damaged checkpoints: the file is named (exit 4), nothing is lost, --resume auto takes the one before."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from damaged import (AT_ONCE, FILES, MANIFEST, REPLICA, Damage, assert_refused, attempt_alone, copy,
                     copy_of, damages, resume, passed_over, set_aside, short, undisturbed, with_fields)
from folders import contents, snapshot
from runs import Run, assert_same_run, assert_says, error_message


@FILES
@pytest.mark.parametrize("kind", ["cut", "flip"])
def test_any_damage_is_found(kind: str, file: str, short: Run, tmp_path: Path) -> None:
    def check(case: tuple[int, Damage]) -> None:
        number, damage = case
        with copy_of(short, tmp_path / str(number)) as run:
            folder = run.checkpoint(12)
            damage.do(folder / file)
            message = assert_refused(run, folder, folder, file)
            assert re.search("is damaged|is not whole", message), message

    # Each costs the start of a program; test_auto_passes_over_any_damage takes all of them in one.
    every = 1 if "DECENT_ALL_COMBINATIONS" in os.environ else 4
    cases = list(enumerate(damages(kind, (short.checkpoint(12) / file).stat().st_size)))[::every]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for result in [pool.submit(check, case) for case in cases]:
            result.result()


@FILES
@pytest.mark.parametrize("kind", ["cut", "flip"])
def test_auto_passes_over_any_damage(kind: str, file: str, copy: Run) -> None:
    """64 damaged checkpoints that are later than the good one of step 12."""
    good = contents(copy.checkpoint(12))
    damaged = [copy.checkpoint(step) for step in range(13, 77)]
    for folder, damage in zip(damaged, damages(kind, len(good[file]))):
        folder.mkdir()
        for name, content in good.items():
            (folder / name).write_bytes(content)
        step = int(folder.name.removeprefix("step-"))
        (folder / MANIFEST).write_bytes(with_fields(good[MANIFEST], step=step))
        damage.do(folder / file)
    before = snapshot(copy.folder)
    ended = attempt_alone(copy, "--dry-run", "--resume", "auto")
    assert ended.code == 0, ended.err
    warnings = passed_over([ended])
    assert len(warnings) == len(ended.err.splitlines()) == 64
    for folder in damaged:
        said = [line for line in warnings if str(folder) in line]
        assert len(said) == 1 and file in said[0], (folder, said)
    assert f"resuming from '{copy.checkpoint(12)}', after step 12" in ended.out
    assert snapshot(copy.folder) == before


@FILES
@pytest.mark.parametrize("kind", ["cut", "flip"])
@pytest.mark.parametrize("number", [0, 20, 63])
def test_auto_takes_the_checkpoint_before(number: int, kind: str, file: str, copy: Run, undisturbed: Run) -> None:
    folder = copy.checkpoint(12)
    damages(kind, (folder / file).stat().st_size)[number].do(folder / file)
    damaged = contents(folder)
    resumed = resume(copy, "auto")
    warnings = passed_over(resumed.ended)
    assert len(warnings) == 1
    assert_says(warnings[0], folder, file)
    assert f"resuming from '{copy.checkpoint(8)}', after step 8 of 14" in resumed.ended[0].out
    assert_same_run(resumed, undisturbed)
    assert resumed.checkpoints == [8, 12, 14]
    assert contents(set_aside(resumed, folder.name)) == damaged


@pytest.mark.parametrize(("kind", "file"), [("flip", MANIFEST), ("cut", REPLICA), ("flip", REPLICA)])
def test_two_workers_tell_of_damage_once(kind: str, file: str, copy: Run) -> None:
    folder = copy.checkpoint(12)
    damages(kind, (folder / file).stat().st_size)[30].do(folder / file)
    assert_refused(copy, folder, folder, file, workers=2)


@FILES
def test_other_uses_of_a_damaged_checkpoint(file: str, copy: Run) -> None:
    folder = copy.checkpoint(12)
    Damage("flip", 1000).do(folder / file)
    before = snapshot(copy.folder)
    for flags in (("--eval-only",), ("--export", copy.folder.parent / "out.safetensors")):
        assert_says(error_message(attempt_alone(copy, *flags, "--checkpoint", folder), code=4), folder / file)
    assert_says(error_message(attempt_alone(copy, "--dry-run", "--resume", folder), code=4), folder / file)
    assert snapshot(copy.folder) == before
    assert not (copy.folder.parent / "out.safetensors").exists()


@FILES
def test_one_byte_too_many(file: str, copy: Run) -> None:
    folder = copy.checkpoint(12)
    (folder / file).write_bytes((folder / file).read_bytes() + b"\n")
    assert_refused(copy, folder, folder, file)


@FILES
@pytest.mark.parametrize("kind", ["cut", "flip"])
def test_every_checkpoint_is_damaged(kind: str, file: str, copy: Run, undisturbed: Run) -> None:
    """A file that is cut short is damaged, as one with a flipped bit is; it is not missing."""
    damaged = {}
    for step in (4, 8, 12):
        folder = copy.checkpoint(step)
        Damage(kind, 1000).do(folder / file)
        damaged[folder.name] = contents(folder)
    resumed = resume(copy, "auto")
    warnings = passed_over(resumed.ended)
    assert len(warnings) == 3
    for step, warning in zip((12, 8, 4), warnings):
        assert_says(warning, copy.checkpoint(step), file)
    assert "no checkpoint to resume from: the run starts afresh" in resumed.ended[0].out
    assert_same_run(resumed, undisturbed)
    assert {name: contents(set_aside(resumed, name)) for name in damaged} == damaged
