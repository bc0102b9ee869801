"""Disk full, disk broken, kill -9 at every call that a save makes to the file system: what was saved before stays, and
--resume auto ends as if nothing had happened. The calls fail in support/faults.c, which is preloaded."""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import fault_layer
from program import Ended
from runs import Run, assert_same_run, assert_says, attempt, error_message, recipe, train

STEPS = 12
FIRST, SECOND, LAST = SAVES = 4, 8, 12  # steps after which the run saves
KINDS = ("kill", "ENOSPC", "EIO")
# In checkpoints/, but no checkpoint's: nobody may remove these.
FOREIGN = ("notes.txt", "step-00000004.mine/rank-0000.safetensors", ".hidden/manifest.json")


@dataclass(frozen=True)
class Setting:
    """A run, and which of its workers has the fault."""

    workers: int = 1
    rank: int = 0
    keep: int = 10
    background: bool = False

    @property
    def recipe(self) -> dict:
        checkpoint = {"every_steps": FIRST, "keep": self.keep, "background": self.background}
        return recipe(train={"steps": STEPS}, checkpoint=checkpoint)


@dataclass(frozen=True)
class Call:
    """A call of one worker of an undisturbed run that changes something in checkpoints/."""

    name: str
    number: int  # among those of this name
    path: str
    save: int  # the step that is being saved
    standing: frozenset[int]  # steps whose checkpoints are there before it

    def __str__(self) -> str:
        return f"{self.name} {self.number} ({self.path})"


@dataclass(frozen=True)
class Fault:
    setting: Setting
    call: Call
    kind: str

    def __str__(self) -> str:
        where = "background" if self.setting.background else "foreground"
        return f"{self.kind} at {self.call} of worker {self.setting.rank} of {self.setting.workers}, {where}"


# ---- runs and their calls ------------------------------------------------------------------------------------------

@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled fault layer."""
    return fault_layer.build(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Run]:
    """Number of workers -> the undisturbed run, with all of its checkpoints."""
    folder = tmp_path_factory.mktemp("undisturbed")

    @functools.cache
    def get(workers: int) -> Run:
        return train(folder / str(workers), Setting(workers).recipe, workers=workers)

    return get


@pytest.fixture(scope="session")
def calls(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Setting, int], list[Call]]:
    """The calls of the worker with the fault during the save after a step."""
    folder = tmp_path_factory.mktemp("counted")

    @functools.cache
    def of_run(setting: Setting) -> list[Call]:
        own = folder / f"{setting.workers}-{setting.rank}-{setting.keep}"
        log = own / "calls.log"
        ended = start(own, setting, library, FAULT_KIND="count", FAULT_LOG=log)
        assert [e.code for e in ended] == [0] * setting.workers, ended
        return calls_in(fault_layer.read_log(log))

    return lambda setting, step: [call for call in of_run(setting) if call.save == step]


def start(folder: Path, setting: Setting, library: Path, **fault: object) -> list[Ended]:
    checkpoints = folder / "run" / "checkpoints"
    for name in FOREIGN:
        (checkpoints / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoints / name).write_text("mine")
    return attempt(folder, setting.recipe, "--resume", "auto", "--quiet", workers=setting.workers,
                   **fault_layer.variables(library, checkpoints, FAULT_RANK=setting.rank, **fault))


def calls_in(log: list[tuple[str, str]]) -> list[Call]:
    result: list[Call] = []
    numbers: Counter[str] = Counter()
    save = 0
    standing: frozenset[int] = frozenset()
    for name, path in log:
        begun = re.match(r"\.step-(\d+)\.writing", path)
        if begun and int(begun[1]) > save:
            if save > 0:
                standing |= {save}  # published by another worker, where this is not the one that does
            save = int(begun[1])
        numbers[name] += 1
        result.append(Call(name, numbers[name], path, save, standing))
        if name == "rename" and (moved := re.fullmatch(r"(\.?)step-(\d+)(\.writing)?", path)):
            step = {int(moved[2])}
            standing = standing | step if moved[1] else standing - step
    return result


# ---- what must hold ------------------------------------------------------------------------------------------------

def name_of(step: int) -> str:
    return f"step-{step:08}"


def find(calls: list[Call], name: str, path: str) -> Call:
    """The first call of that name whose path ends so."""
    return next(call for call in calls if call.name == name and call.path.endswith(path))


def check_all(faults: list[Fault], folder: Path, library: Path, reference: Run) -> None:
    """Tells of all that went wrong, not of the first alone."""
    def outcome(number: int, fault: Fault) -> str:
        try:
            check(folder / str(number), fault, library, reference)
        except AssertionError as error:
            return f"{fault}:\n{error}"
        return ""

    assert faults
    with ThreadPoolExecutor(2) as pool:
        problems = [text for text in pool.map(outcome, range(len(faults)), faults) if text]
    assert not problems, f"{len(problems)} of {len(faults)}:\n" + "\n\n".join(problems)


def check(folder: Path, fault: Fault, library: Path, reference: Run) -> None:
    setting, call = fault.setting, fault.call
    ended = start(folder, setting, library, FAULT_KIND=fault.kind, FAULT_CALL=call.name, FAULT_AT=call.number)
    check_codes(ended, fault)
    check_what_stands(folder / "run", call, reference)
    if fault.kind != "kill":
        last = json.loads((folder / "run" / "metrics.jsonl").read_text().splitlines()[-1])
        assert (last["kind"], last["status"]) == ("end", "failed")
    gone_on = train(folder, setting.recipe, "--resume", "auto", workers=setting.workers)
    check_begin(gone_on.ended[0].out, max(call.standing, default=0))
    assert_same_run(gone_on, reference)
    kept = SAVES[-setting.keep:]
    check_checkpoints(gone_on.folder, kept, reference)
    check_names(gone_on.folder, {name_of(step) for step in kept}, set())
    check_message(ended, fault)  # last: what is lost matters more than what is said


def check_codes(ended: list[Ended], fault: Fault) -> None:
    codes = [3 if fault.kind == "kill" else 6] * len(ended)
    if fault.kind == "kill":
        codes[fault.setting.rank] = -signal.SIGKILL
    assert [e.code for e in ended] == codes, ended


def check_message(ended: list[Ended], fault: Fault) -> None:
    if fault.kind != "kill":
        assert_says(error_message(ended, 6), "checkpoints", os.strerror(getattr(errno, fault.kind)))
        return
    rank = fault.setting.rank
    assert ended[rank].err == "", ended
    if others := ended[:rank] + ended[rank + 1:]:
        assert_says(error_message(others, 3), f"lost worker {rank} on ")


def check_what_stands(run: Path, call: Call, reference: Run) -> None:
    """After a fault: what was saved, the figures up to there, nothing half done under a checkpoint's name."""
    check_checkpoints(run, call.standing, reference)
    # While one worker removes, another may have begun the next save.
    half_written = {f".{name_of(step)}.writing" for step in SAVES if step >= call.save}
    half_removed = {f".{name_of(step)}.removing" for step in SAVES if step < call.save}
    check_names(run, {name_of(step) for step in call.standing}, half_written | half_removed)
    assert (run / "recipe.yaml").exists() and (run / "run.log").exists()
    saved = max(call.standing, default=0)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()[:saved]]
    assert [line["loss"] for line in lines] == list(reference.losses[:saved])


def check_checkpoints(run: Path, steps: Iterable[int], reference: Run) -> None:
    """The same as those of the undisturbed run, but for the recipe."""
    for step in steps:
        folder, good = (base / "checkpoints" / name_of(step) for base in (run, reference.folder))
        assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in good.iterdir())
        for path in good.glob("rank-*"):
            assert (folder / path.name).read_bytes() == path.read_bytes(), path
        manifest, good_manifest = (json.loads((base / "manifest.json").read_text()) for base in (folder, good))
        for key in ("step", "epoch", "consumed", "world_size", "files"):
            assert manifest[key] == good_manifest[key], key


def check_names(run: Path, needed: set[str], allowed: set[str]) -> None:
    folder = run / "checkpoints"
    foreign = {Path(name).parts[0] for name in FOREIGN}
    names = {path.name for path in folder.iterdir()}
    assert needed | foreign <= names <= needed | foreign | allowed, names
    assert all((folder / name).read_text() == "mine" for name in FOREIGN)


def check_begin(out: str, step: int) -> None:
    """Where a resumed run says that it goes on."""
    said = re.search(r"resuming from '.*', after step (\d+) of", out)
    assert (int(said[1]) if said else 0) == step, out
    assert said or "no checkpoint to resume from: the run starts afresh" in out, out


# ---- tests ---------------------------------------------------------------------------------------------------------

def test_calls_are_seen(calls: Callable[[Setting, int], list[Call]]) -> None:
    """Else the tests below could pass without a fault at the places that matter."""
    save = [str(call) for call in calls(Setting(), SECOND)]
    for name in ("mkdir", "open", "write", "fsync", "rename"):
        assert any(text.startswith(f"{name} ") for text in save), save
    published = find(calls(Setting(), SECOND), "rename", f".{name_of(SECOND)}.writing")
    assert published.standing == {FIRST}
    pruning = calls(Setting(keep=1), SECOND)
    assert pruning[0].standing == {FIRST} and pruning[-1].standing == {SECOND}
    assert find(pruning, "rename", name_of(FIRST)).standing == {FIRST, SECOND}
    assert find(pruning, "remove", "").standing == {SECOND}


@pytest.mark.parametrize("kind", KINDS)
def test_every_call_of_a_save(kind: str, calls: Callable[[Setting, int], list[Call]], library: Path,
                              reference: Callable[[int], Run], tmp_path: Path) -> None:
    """The second save of a run; half of the faults in the thread that saves beside training."""
    def setting(number: int) -> Setting:
        return Setting(background=(number + KINDS.index(kind)) % 2 == 0)

    faults = [Fault(setting(i), call, kind) for i, call in enumerate(calls(Setting(), SECOND))]
    check_all(faults, tmp_path, library, reference(1))


@pytest.mark.parametrize("kind", KINDS)
def test_every_call_of_a_removal(kind: str, calls: Callable[[Setting, int], list[Call]], library: Path,
                                 reference: Callable[[int], Run], tmp_path: Path) -> None:
    """keep: 1. The second save removes the first checkpoint once its own is there."""
    pruning = Setting(keep=1, background=kind != "EIO")
    save = calls(replace(pruning, background=False), SECOND)
    removal = save[save.index(find(save, "rename", name_of(FIRST))):]
    check_all([Fault(pruning, call, kind) for call in removal], tmp_path, library, reference(1))


@pytest.mark.parametrize("kind", KINDS)
def test_first_and_last_save(kind: str, calls: Callable[[Setting, int], list[Call]], library: Path,
                             reference: Callable[[int], Run], tmp_path: Path) -> None:
    """Without a checkpoint the run starts afresh; after the last step there is nothing left to train."""
    places = {"kill": ("rename", ".writing"), "ENOSPC": ("write", "manifest.json.tmp"), "EIO": ("fsync", ".")}
    faults = [Fault(Setting(background=step == LAST), find(calls(Setting(), step), *places[kind]), kind)
              for step in (FIRST, LAST)]
    check_all(faults, tmp_path, library, reference(1))


# Of one worker of two: background, keep, kind, the save after which step, the call.
OF_RANK_0 = [
    (True, 10, "kill", SECOND, "write", "manifest.json.tmp"),
    (False, 10, "kill", SECOND, "fsync", "."),
    (True, 10, "ENOSPC", SECOND, "fsync", "rank-0000.safetensors.tmp"),
    (False, 10, "ENOSPC", SECOND, "write", "manifest.json.tmp"),
    (True, 10, "EIO", LAST, "rename", ".writing"),
    (False, 1, "kill", SECOND, "remove", "rank-0001.safetensors"),
    (True, 1, "EIO", SECOND, "remove", "rank-0001.safetensors"),
]
OF_RANK_1 = [
    (True, 10, "kill", SECOND, "write", "rank-0001.safetensors.tmp"),
    (False, 10, "kill", SECOND, "rename", "rank-0001.safetensors.tmp"),
    (True, 10, "ENOSPC", SECOND, "write", "rank-0001.safetensors.tmp"),
    (True, 10, "ENOSPC", LAST, "open", "rank-0001.safetensors.tmp"),
    (False, 10, "EIO", SECOND, "fsync", ".writing"),
]


@pytest.mark.parametrize(("rank", "places"), [(0, OF_RANK_0), (1, OF_RANK_1)], ids=["rank 0", "rank 1"])
def test_one_of_two_workers(rank: int, places: list[tuple[bool, int, str, int, str, str]],
                            calls: Callable[[Setting, int], list[Call]], library: Path,
                            reference: Callable[[int], Run], tmp_path: Path) -> None:
    faults = []
    for background, keep, kind, step, name, path in places:
        setting = Setting(workers=2, rank=rank, keep=keep)
        call = find(calls(setting, step), name, path)
        faults.append(Fault(replace(setting, background=background), call, kind))
    check_all(faults, tmp_path, library, reference(2))
