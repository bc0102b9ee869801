"""Runs with checkpoints, copies of them to damage, and what is checked of each."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import xxhash

from folders import snapshot
from program import Ended, run_alone
from runs import Run, assert_says, attempt, error_message, merged, recipe, train

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


def resume(run: Run, *flags: object) -> Run:
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
    return [line for line in lines if line.startswith("warning: ") and line.endswith("; it is skipped")]


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


# ---- manifests -----------------------------------------------------------------------------------------------------

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
