"""Checkpoints that lack files, or hold what no save wrote; and those that a resumed run leaves behind."""

from __future__ import annotations

import json
import shutil
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import xxhash

from damaged import (ALLOW, LONG, MANIFEST, OFFER, REPLICA, assert_refused, attempt_alone, copy, copy_of,
                     fields_of, resume, passed_over, relist, sealed, set_aside, short, undisturbed, with_fields)
from folders import contents, snapshot
from runs import Run, assert_same_run, assert_says, attempt, error_message
from tensors import differing, read_safetensors, write_safetensors


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
        expected = resume(twins, folder)
        assert [e.err for e in expected.ended] == ["", ""]
        for run, choice in ((copy, "auto"), (named, named.checkpoint(12))):
            (run.checkpoint(12) / REPLICA).unlink()
            resumed = resume(run, choice, *ALLOW)
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
    resumed = resume(copy, "auto")
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
    resumed = resume(copy, "auto")
    assert_says(" ".join(passed_over(resumed.ended)), folder, MANIFEST)
    assert_same_run(resumed, undisturbed)
    assert sorted(contents(set_aside(resumed, folder.name))) == ["data.json", "rank-0000.safetensors", REPLICA]


def test_empty_folder(copy: Run, undisturbed: Run) -> None:
    folder = copy.checkpoint(13)
    folder.mkdir()
    assert_refused(copy, folder, folder, MANIFEST)
    resumed = resume(copy, "auto")
    assert_says(" ".join(passed_over(resumed.ended)), folder, MANIFEST)
    assert f"resuming from '{copy.checkpoint(12)}', after step 12 of 14" in resumed.ended[0].out
    assert_same_run(resumed, undisturbed)
    assert contents(set_aside(resumed, folder.name)) == {}


@pytest.mark.parametrize(("name", "workers"), [("missing", 1), ("missing", 2), ("run.log", 2), ("metrics.jsonl", 1)])
def test_no_checkpoint_at_all(name: str, workers: int, copy: Run) -> None:
    """Something that the user can fix."""
    folder = copy.folder / name
    assert OFFER not in assert_refused(copy, folder, folder, "no checkpoint", code=2, workers=workers)


# ---- manifests that somebody or something else wrote ---------------------------------------------------------------

def test_manifest_can_be_checked_by_others(short: Run) -> None:
    """Its checksums are those of Python's xxhash; the tests below count on it."""
    assert short.checkpoints == [4, 8, 12]
    for step in short.checkpoints:
        folder = short.checkpoint(step)
        manifest = (folder / MANIFEST).read_bytes()
        assert sealed(manifest.partition(b"\n")[2]) == manifest
        fields = fields_of(manifest)
        assert (fields["step"], fields["world_size"], fields["version"]) == (step, 2, 1)
        assert len(fields["files"]) == 2
        for rank, file in enumerate(fields["files"]):
            content = (folder / f"rank-{rank:04}.safetensors").read_bytes()
            assert file == {"name": f"rank-{rank:04}.safetensors", "bytes": len(content),
                            "xxh3_128": xxhash.xxh3_128_hexdigest(content)}


def test_later_version(copy: Run, undisturbed: Run) -> None:
    """No damage: another program can read it."""
    manifest = copy.checkpoint(12) / MANIFEST
    manifest.write_bytes(with_fields(manifest.read_bytes(), version=4))
    assert_refused(copy, manifest.parent, manifest, "version 4", "versions 1 to 3", code=2)
    resumed = resume(copy, "auto")
    assert_says(" ".join(passed_over(resumed.ended)), manifest, "version 4")
    assert_same_run(resumed, undisturbed)
    assert fields_of((set_aside(resumed, "step-00000012") / MANIFEST).read_bytes())["version"] == 4


def wrong_manifests(good: bytes) -> list[bytes]:
    """All with a checksum that fits."""
    fields = fields_of(good)
    files = fields["files"]
    first = files[0]
    bad_fields: dict[str, list[object]] = {
        "format": ["another checkpoint", 1, None],
        "version": ["1", 1.5, -1, None],
        "run": [1, None],
        "program": [1, None],
        "step": ["12", 12.5, -1, True, None, [], 2**63, 2**64],
        "epoch": ["0", -1, {}],
        "consumed": [[], -1, 1e300],
        "epochs_done": ["0.1", None, [0.1]],
        "world_size": ["2", 0, -2, 1, 3, 2**40],
        "metrics": [[], None, 0.5, {"loss": "low"}, {"loss": {}}],
        "evaluations": [[], None, 0.5, {"stop.best": "low"}, {"stop.best": {}}],
        "facts": [[], None, "seed", {"seed": 0}],
        "recipe": [None, 1, {}],
        "files": [{}, None, "", [], files[:1], files[::-1], [*files, first], ["rank-0000.safetensors", REPLICA],
                  [None, None], *([{**first, **entry}, files[1]] for entry in (
                      {"name": "../step-00000008/rank-0000.safetensors"}, {"name": "/etc/passwd"},
                      {"name": None}, {"bytes": -1}, {"bytes": "214856"}, {"bytes": 1.5}, {"bytes": 2**64},
                      {"xxh3_128": None}, {"xxh3_128": 7}))],
    }
    changed = [with_fields(good, **{name: value}) for name, values in bad_fields.items() for value in values]
    for name in fields.keys() - {"run", "evaluations", "data"}:  # which older ones do not have
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
        assert len(said) == 1 and said[0].endswith("; it is skipped"), (step, place.read_bytes()[:300], said)
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
    resumed = resume(copy, "auto")
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
    resumed = resume(copy, copy.checkpoint(4))
    said = "".join(e.err for e in resumed.ended).splitlines()
    assert len(said) == 2
    for step, line in zip((12, 8), said):
        assert_says(line, "warning: ", copy.checkpoint(step), set_aside(copy, f"step-{step:08}"))
    assert_same_run(resumed, undisturbed)
    assert resumed.checkpoints == [8, 12, 14]

    second = {step: contents(copy.checkpoint(step)) for step in (8, 12, 14)}
    shutil.copytree(short.checkpoint(4), copy.checkpoint(4))  # checkpoint.keep had removed it
    assert_same_run(resume(copy, copy.checkpoint(4)), undisturbed)
    kept = {f"step-{step:08}": files for step, files in first.items()}
    kept |= {f"step-{step:08}" + (".2" if step in first else ""): files for step, files in second.items()}
    assert {folder.name: contents(folder) for folder in set_aside(copy, "").iterdir()} == kept
