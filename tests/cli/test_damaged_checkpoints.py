"""Damaged and incomplete checkpoints: the file is named (exit 4), nothing is lost, --resume auto takes the one before."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

from program import Ended, run_alone
from runs import Run, assert_same_run, assert_says, attempt, error_message, merged, recipe, train
from tensors import differing, read_safetensors, write_safetensors
from test_output_folder import snapshot

SHORT = recipe(train={"steps": 12}, eval={"every_steps": 4},
               checkpoint={"every_steps": 4, "every_epochs": None, "keep": 3})
LONG = merged(SHORT, {"train": {"steps": 14}})
MANIFEST, REPLICA = "manifest.json", "rank-0001.safetensors"
FILES = pytest.mark.parametrize("file", [MANIFEST, REPLICA])
ALLOW = ("--set", "checkpoint.allow_missing=true")
OFFER = "--set checkpoint.allow_missing=true"
AT_ONCE = 2


# ---- the runs ------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two workers, checkpoints after steps 4, 8 and 12. The tests go on from copies of it, to step 14."""
    return train(tmp_path_factory.mktemp("short"), SHORT, workers=2)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """To step 14 in one go."""
    return train(tmp_path_factory.mktemp("undisturbed"), LONG, workers=2)


@contextmanager
def copy_of(run: Run, folder: Path) -> Iterator[Run]:
    """In <folder>/run. Goes away with the case: hundreds of them would fill the disk."""
    copy = folder / "run"
    shutil.copytree(run.folder, copy)
    try:
        yield Run(copy, [])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def copy(short: Run, tmp_path: Path) -> Iterator[Run]:
    with copy_of(short, tmp_path) as run:
        yield run


def set_aside(run: Run, name: str) -> Path:
    return run.folder / "checkpoints" / "set-aside" / name


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def go_on(run: Run, *flags: object) -> Run:
    """Trains to step 14; it must go well."""
    return train(run.folder.parent, LONG, "--resume", *flags, workers=2)


def attempt_alone(run: Run, *flags: object) -> Ended:
    """One worker: enough to find damage, and it starts quickly."""
    config = run.folder.parent / "recipe.yaml"
    config.write_text(json.dumps({"output": str(run.folder), **LONG}))
    return run_alone("--config", config, *flags, cwd=run.folder.parent)


def assert_refused(run: Run, choice: object, *texts: object, code: int = 4, workers: int = 1) -> str:
    """--resume `choice` ends with one message that says these texts; the output folder stays as it is."""
    before = snapshot(run.folder)
    if workers == 1:
        ended = [attempt_alone(run, "--resume", choice)]
    else:
        ended = attempt(run.folder.parent, LONG, "--resume", choice, workers=workers)
    message = error_message(ended, code)
    assert_says(message, *texts)
    assert snapshot(run.folder) == before, message
    return message


def passed_over(ended: list[Ended]) -> list[str]:
    """The warnings of checkpoints that --resume auto did not take."""
    lines = "".join(e.err for e in ended).splitlines()
    return [line for line in lines if line.startswith("warning: ") and line.endswith("; it is passed over")]


# ---- damage --------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Damage:
    kind: str  # "cut": only `position` bytes are left; "flip": one bit of the byte there is another
    position: int
    bit: int = 0

    def of(self, content: bytes) -> bytes:
        if self.kind == "cut":
            return content[:self.position]
        flipped = bytes([content[self.position] ^ 1 << self.bit])
        return content[:self.position] + flipped + content[self.position + 1:]

    def do(self, file: Path) -> None:
        file.write_bytes(self.of(file.read_bytes()))


def damages(kind: str, size: int, many: int = 64) -> list[Damage]:
    """Spread over the file; a few at its ends, where lengths and the checksum of the manifest are."""
    chance = random.Random(size)
    ends = [0, 1, 7, 20, 47, 48, 49, size - 1]
    rest = many - len(ends)
    spread = [chance.randrange(50 + i * (size - 51) // rest, 50 + (i + 1) * (size - 51) // rest) for i in range(rest)]
    result = [Damage(kind, position, chance.randrange(8)) for position in ends + spread]
    assert len({damage.position for damage in result}) == many
    return result


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
    resumed = go_on(copy, "auto")
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
    resumed = go_on(copy, "auto")
    warnings = passed_over(resumed.ended)
    assert len(warnings) == 3
    for step, warning in zip((12, 8, 4), warnings):
        assert_says(warning, copy.checkpoint(step), file)
    assert "no checkpoint to resume from: the run starts afresh" in resumed.ended[0].out
    assert_same_run(resumed, undisturbed)
    assert {name: contents(set_aside(resumed, name)) for name in damaged} == damaged


# ---- files that are missing ----------------------------------------------------------------------------------------

def test_missing_replica(copy: Run) -> None:
    (copy.checkpoint(12) / REPLICA).unlink()
    for workers in (1, 2):
        assert_refused(copy, copy.checkpoint(12), copy.checkpoint(12), "replica 1 of 2", REPLICA, OFFER,
                       workers=workers)


def test_no_replica_is_left(copy: Run) -> None:
    """There is nothing to go on from, so that nothing is offered."""
    for rank in range(2):
        (copy.checkpoint(12) / f"rank-{rank:04}.safetensors").unlink()
    message = assert_refused(copy, copy.checkpoint(12), "replicas 0, 1 of 2", "rank-0000.safetensors")
    assert OFFER not in message
    ended = attempt_alone(copy, *ALLOW, "--resume", copy.checkpoint(12))
    assert_says(error_message(ended, code=4), copy.checkpoint(12), "rank-0000.safetensors")


def test_missing_replica_is_allowed(copy: Run, short: Run, tmp_path: Path) -> None:
    """The average of one replica is that replica: the run is that of two workers that both had it."""
    with copy_of(short, tmp_path / "twins") as twins, copy_of(short, tmp_path / "named") as named:
        folder = twins.checkpoint(12)
        shutil.copy(folder / "rank-0000.safetensors", folder / REPLICA)
        relist(folder)
        expected = go_on(twins, folder)
        assert [e.err for e in expected.ended] == ["", ""]
        for run, choice in ((copy, "auto"), (named, named.checkpoint(12))):
            (run.checkpoint(12) / REPLICA).unlink()
            resumed = go_on(run, choice, *ALLOW)
            warnings = "".join(e.err for e in resumed.ended).splitlines()
            assert len(warnings) == 1
            assert_says(warnings[0], "warning: ", run.checkpoint(12), "replica 1 of 2", "the average of the others")
            assert f"resuming from '{run.checkpoint(12)}', after step 12 of 14" in resumed.ended[0].out
            assert_same_run(resumed, expected)


def test_average_of_the_replicas_that_are_left(copy: Run) -> None:
    """Three replicas, the middle one is gone."""
    folder = copy.checkpoint(12)
    shutil.copy(folder / REPLICA, folder / "rank-0002.safetensors")
    relist(folder)
    (folder / REPLICA).unlink()
    out = copy.folder.parent / "out.safetensors"
    ended = attempt_alone(copy, *ALLOW, "--export", out, "--checkpoint", folder)
    assert ended.code == 0, ended.err
    assert_says(ended.err, "replica 1 of 3", "the average of the others")
    first, last = (read_safetensors(folder / f"rank-{rank:04}.safetensors") for rank in (0, 2))
    exported = read_safetensors(out)
    assert exported and not differing(exported, {
        name: ((first[f"model.{name}"].astype(np.float64) + last[f"model.{name}"]) / 2).astype(np.float32)
        for name in exported})


def test_auto_passes_over_a_missing_replica(copy: Run, undisturbed: Run) -> None:
    (copy.checkpoint(12) / REPLICA).unlink()
    left = contents(copy.checkpoint(12))
    resumed = go_on(copy, "auto")
    warnings = passed_over(resumed.ended)
    assert len(warnings) == 1
    assert_says(warnings[0], copy.checkpoint(12), "replica 1 of 2", REPLICA)
    assert f"resuming from '{copy.checkpoint(8)}', after step 8 of 14" in resumed.ended[0].out
    assert_same_run(resumed, undisturbed)
    assert contents(set_aside(resumed, "step-00000012")) == left


@pytest.mark.parametrize("workers", [1, 2])
def test_auto_with_nothing_but_a_missing_replica(workers: int, copy: Run) -> None:
    """To start afresh would throw away what one flag saves."""
    for step in (4, 8):
        shutil.rmtree(copy.checkpoint(step))
    (copy.checkpoint(12) / REPLICA).unlink()
    before = snapshot(copy.folder)
    ended = attempt(copy.folder.parent, LONG, "--resume", "auto", workers=workers)
    assert [e.code for e in ended] == [4] * workers and {e.out for e in ended} == {""}
    said = "".join(e.err for e in ended)
    warning, found, message = said.partition("decent-train: error: ")
    assert passed_over(ended) == [warning.rstrip("\n")] and found, said
    assert_says(message, copy.checkpoint(12), "replica 1 of 2", REPLICA, OFFER)
    assert len(message.splitlines()) <= 5 and "decent-train: error: " not in message
    assert snapshot(copy.folder) == before


def test_missing_manifest(copy: Run, undisturbed: Run) -> None:
    folder = copy.checkpoint(12)
    (folder / MANIFEST).unlink()
    assert_refused(copy, folder, folder, MANIFEST)
    resumed = go_on(copy, "auto")
    assert_says(" ".join(passed_over(resumed.ended)), folder, MANIFEST)
    assert_same_run(resumed, undisturbed)
    assert sorted(contents(set_aside(resumed, folder.name))) == ["rank-0000.safetensors", REPLICA]


def test_empty_folder(copy: Run, undisturbed: Run) -> None:
    folder = copy.checkpoint(13)
    folder.mkdir()
    assert_refused(copy, folder, folder, MANIFEST)
    resumed = go_on(copy, "auto")
    assert_says(" ".join(passed_over(resumed.ended)), folder, MANIFEST)
    assert f"resuming from '{copy.checkpoint(12)}', after step 12 of 14" in resumed.ended[0].out
    assert_same_run(resumed, undisturbed)
    assert contents(set_aside(resumed, folder.name)) == {}


@pytest.mark.parametrize(("name", "workers"), [("missing", 1), ("missing", 2), (".", 2), ("metrics.jsonl", 1)])
def test_no_checkpoint_at_all(name: str, workers: int, copy: Run) -> None:
    """Something that the user can fix."""
    folder = copy.folder / name
    assert OFFER not in assert_refused(copy, folder, folder, "no checkpoint", code=2, workers=workers)


# ---- manifests that somebody or something else wrote ---------------------------------------------------------------

def sealed(body: bytes) -> bytes:
    """A manifest with the right checksum over anything."""
    return b'{"checksum": "' + xxhash.xxh3_128_hexdigest(body).encode() + b'",\n' + body


def fields_of(manifest: bytes) -> dict[str, Any]:
    fields = json.loads(manifest)
    del fields["checksum"]
    return fields


def with_fields(manifest: bytes, **changes: object) -> bytes:
    return sealed(json.dumps({**fields_of(manifest), **changes}, indent=1).partition("\n")[2].encode() + b"\n")


def relist(folder: Path) -> None:
    """Makes the manifest that of the replicas that are in the folder."""
    files = [{"name": file.name, "bytes": file.stat().st_size,
              "xxh3_128": xxhash.xxh3_128_hexdigest(file.read_bytes())} for file in sorted(folder.glob("rank-*"))]
    manifest = folder / MANIFEST
    manifest.write_bytes(with_fields(manifest.read_bytes(), files=files, world_size=len(files)))


def test_manifest_can_be_checked_by_others(short: Run) -> None:
    """Its checksums are those of Python's xxhash; the tests below count on it."""
    for step in short.checkpoints:
        folder = short.checkpoint(step)
        manifest = (folder / MANIFEST).read_bytes()
        assert sealed(manifest.partition(b"\n")[2]) == manifest
        fields = fields_of(manifest)
        assert (fields["step"], fields["world_size"], fields["version"]) == (step, 2, 1)
        for rank, file in enumerate(fields["files"]):
            content = (folder / f"rank-{rank:04}.safetensors").read_bytes()
            assert file == {"name": f"rank-{rank:04}.safetensors", "bytes": len(content),
                            "xxh3_128": xxhash.xxh3_128_hexdigest(content)}


def test_later_version(copy: Run, undisturbed: Run) -> None:
    """No damage: another program can read it."""
    manifest = copy.checkpoint(12) / MANIFEST
    manifest.write_bytes(with_fields(manifest.read_bytes(), version=2))
    assert_refused(copy, manifest.parent, manifest, "version 2", "version 1", code=2)
    resumed = go_on(copy, "auto")
    assert_says(" ".join(passed_over(resumed.ended)), manifest, "version 2")
    assert_same_run(resumed, undisturbed)
    assert fields_of((set_aside(resumed, "step-00000012") / MANIFEST).read_bytes())["version"] == 2


def wrong_manifests(good: bytes) -> list[bytes]:
    """All with a checksum that fits."""
    fields = fields_of(good)
    files = fields["files"]
    first = files[0]
    bad_fields: dict[str, list[object]] = {
        "format": ["another checkpoint", 1, None],
        "version": ["1", 1.5, -1, None],
        "program": [1, None],
        "step": ["12", 12.5, -1, True, None, [], 2**63, 2**64],
        "epoch": ["0", -1, {}],
        "consumed": [[], -1, 1e300],
        "epochs_done": ["0.1", None, [0.1]],
        "world_size": ["2", 0, -2, 1, 3, 2**40],
        "metrics": [[], None, 0.5, {"loss": "low"}, {"loss": {}}],
        "facts": [[], None, "seed", {"seed": 0}],
        "recipe": [None, 1, {}],
        "files": [{}, None, "", [], files[:1], files[::-1], [*files, first], ["rank-0000.safetensors", REPLICA],
                  [None, None], *([{**first, **entry}, files[1]] for entry in (
                      {"name": "../step-00000008/rank-0000.safetensors"}, {"name": "/etc/passwd"},
                      {"name": None}, {"bytes": -1}, {"bytes": "214856"}, {"bytes": 1.5}, {"bytes": 2**64},
                      {"xxh3_128": None}, {"xxh3_128": 7}))],
    }
    changed = [with_fields(good, **{name: value}) for name, values in bad_fields.items() for value in values]
    for name in fields:
        rest = {key: value for key, value in fields.items() if key != name}
        changed.append(sealed(json.dumps(rest, indent=1).partition("\n")[2].encode()))
    body = good.partition(b"\n")[2]
    bodies = [b"", b"}", b"]", b"\0", b'"step": 1', b"nonsense", body[:-3], body + b"{}", b"{" + body,
              body.replace(b'"format"', b'"format\xff"'), body.replace(b'"step": 12', b'"step": 1e999'),
              b'"format": ' + b"[" * 200_000, b'"format": ' + b'{"a":' * 200_000]
    return [*changed, *map(sealed, bodies)]


def test_wrong_fields(copy: Run) -> None:
    """Some on their own, all of them with auto."""
    manifest = copy.checkpoint(12) / MANIFEST
    good = manifest.read_bytes()
    wrong = wrong_manifests(good)
    assert len(set(wrong) - {good}) == len(wrong) > 80
    for text in wrong[::13]:
        manifest.write_bytes(text)
        assert_refused(copy, manifest.parent, f"'{manifest}' is damaged: ")
    manifest.write_bytes(good)
    places = {}
    for text, step in zip(wrong, count(13)):
        copy.checkpoint(step).mkdir()
        places[step] = copy.checkpoint(step) / MANIFEST
        places[step].write_bytes(text)
    ended = attempt_alone(copy, "--dry-run", "--resume", "auto")
    assert ended.code == 0, ended.err
    warnings = ended.err.splitlines()
    for step, place in places.items():
        said = [line for line in warnings if line.startswith(f"warning: '{place}' is damaged: ")]
        assert len(said) == 1 and said[0].endswith("; it is passed over"), (step, place.read_bytes()[:300], said)
    assert len(warnings) == len(places)
    assert f"resuming from '{copy.checkpoint(12)}', after step 12" in ended.out


@pytest.mark.parametrize("change", ["another shape", "another type", "no safetensors"])
def test_replica_that_does_not_fit(change: str, copy: Run) -> None:
    """All checksums are right, but the file does not hold what the manifest says of it."""
    folder = copy.checkpoint(12)
    tensors = read_safetensors(folder / REPLICA)
    name = "model.fc1.weight"
    tensors[name] = tensors[name][:, 1:] if change == "another shape" else tensors[name].astype(np.float64)
    write_safetensors(folder / REPLICA, tensors)
    if change == "no safetensors":
        (folder / REPLICA).write_bytes(b"nonsense" * 1000)
    relist(folder)
    ended = attempt(copy.folder.parent, LONG, "--resume", folder, workers=2)
    assert [e.code for e in ended] == [4, 4]
    said = "".join(e.err for e in ended)
    assert said.startswith("decent-train: error: ") and said.count("decent-train: error: ") == 1, said
    assert_says(said, *([folder, REPLICA] if change == "no safetensors" else ["is damaged", name]))


def test_manifest_of_another_step(copy: Run, undisturbed: Run) -> None:
    """Somebody copied or renamed: with auto its place in the order is not to be trusted."""
    shutil.copytree(copy.checkpoint(4), copy.checkpoint(13))
    resumed = go_on(copy, "auto")
    warnings = passed_over(resumed.ended)
    assert len(warnings) == 1
    assert_says(warnings[0], copy.checkpoint(13), "step 4")
    assert f"resuming from '{copy.checkpoint(12)}', after step 12 of 14" in resumed.ended[0].out
    assert_same_run(resumed, undisturbed)
    assert (set_aside(resumed, "step-00000013") / MANIFEST).exists()


# ---- what is set aside ---------------------------------------------------------------------------------------------

def test_later_checkpoints_are_set_aside(copy: Run, short: Run, undisturbed: Run) -> None:
    """Twice from step 4: all that was ever saved is still there."""
    first = {step: contents(copy.checkpoint(step)) for step in (8, 12)}
    resumed = go_on(copy, copy.checkpoint(4))
    said = "".join(e.err for e in resumed.ended).splitlines()
    assert len(said) == 2
    for step, line in zip((12, 8), said):
        assert_says(line, "warning: ", copy.checkpoint(step), set_aside(copy, f"step-{step:08}"))
    assert_same_run(resumed, undisturbed)
    assert resumed.checkpoints == [8, 12, 14]

    second = {step: contents(copy.checkpoint(step)) for step in (8, 12, 14)}
    shutil.copytree(short.checkpoint(4), copy.checkpoint(4))  # checkpoint.keep had removed it
    assert_same_run(go_on(copy, copy.checkpoint(4)), undisturbed)
    kept = {f"step-{step:08}": files for step, files in first.items()}
    kept |= {f"step-{step:08}" + (".2" if step in first else ""): files for step, files in second.items()}
    assert {folder.name: contents(folder) for folder in set_aside(copy, "").iterdir()} == kept
