"""Files of 30 GB that take no space on the disk, in the place of any that is read: a message soon, and little memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from program import PROGRAM, environment
from runs import Run, merged, recipe, train, write_recipe

SIZE = 30 << 30
SECONDS, MEMORY = 20, 400 << 20  # LibTorch takes 60 MB for itself; pages of the file itself are the system's
SETTINGS = recipe(train={"steps": 4}, checkpoint={"every_steps": 2})


def make_sparse(path: Path, begin: bytes | None = None) -> None:
    """A file goes on as before, then with zeros."""
    if begin is not None:
        path.write_bytes(begin)
    os.truncate(path, SIZE)


def run(*arguments: object) -> tuple[int, str]:
    """Exit code and messages of a command that neither takes long nor much memory."""
    begin = time.monotonic()
    process = subprocess.Popen([str(each) for each in (PROGRAM, *arguments)], env=environment(), text=True, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    try:
        while process.poll() is None:
            assert time.monotonic() < begin + SECONDS, arguments
            assert anonymous(process.pid) < MEMORY, arguments
            time.sleep(0.02)
    finally:
        process.kill()
    return process.returncode, process.communicate()[1]


def anonymous(process: int) -> int:
    """Bytes of its memory that are no pages of files."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except ProcessLookupError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("whole"), SETTINGS)


@pytest.fixture
def damaged(whole: Run, tmp_path: Path) -> Run:
    shutil.copytree(whole.folder, tmp_path / "run")
    return Run(tmp_path / "run", [])


@pytest.mark.parametrize("name", ["metrics.jsonl", "run.log", "recipe.yaml", "eval-confusion.csv"])
def test_page(name: str, damaged: Run, tmp_path: Path) -> None:
    """The page is there, and says what it could not read."""
    make_sparse(damaged.folder / name, None if (damaged.folder / name).exists() else b"true,a\na,1")
    assert run("--report", damaged.folder, "--out", tmp_path / "page.html") == (0, "")
    problems = (tmp_path / "page.html").read_text().split('"problems":')[1].split("]")[0]
    assert name in problems and "damaged or another file" in problems, problems


@pytest.mark.parametrize("name", ["metrics.jsonl", "data.json"])
def test_resume(name: str, damaged: Run, tmp_path: Path) -> None:
    make_sparse(damaged.folder / name)
    config = write_recipe(tmp_path, merged(SETTINGS, {"train": {"steps": 6}}))
    code, err = run("--config", config, "--resume", "auto")
    assert code == 2 and f"'{damaged.folder / name}' has" in err and "damaged or another file" in err, err


@pytest.mark.parametrize("name", ["manifest.json", "rank-0000.safetensors"])
def test_resume_passes_over_a_checkpoint(name: str, damaged: Run, tmp_path: Path) -> None:
    make_sparse(damaged.checkpoint(4) / name)
    config = write_recipe(tmp_path, merged(SETTINGS, {"train": {"steps": 6}}))
    code, err = run("--config", config, "--resume", "auto")
    assert code == 0 and name in err and "skipped" in err, err


# Begins, and what is said of it.
SOURCES = {"t.csv": ({"format": "csv"}, b"a,b\n1,2\n", "the cell has more than 16 MiB"),
           "zeros.csv": ({"format": "csv"}, b"", "the cell has more than 16 MiB"),
           "cr.csv": ({"format": "csv"}, b"a,b\r1,2\r", "ends lines with CR"),
           "quoted.csv": ({"format": "csv"}, b'a,b\n1,"2', "the cell has more than 16 MiB"),
           "pairs.tsv": ({"format": "pairs", "length": 8}, b"a\tb\n", "the cell has more than 16 MiB"),
           "list.csv": ({"format": "images"}, b"a.png,x\n", "damaged or another file"),
           "d.npz": ({"format": "npz"}, b"PK\x03\x04", "no zip archive"),
           "d.safetensors": ({"format": "safetensors"}, b"", "not a safetensors file")}


@pytest.mark.parametrize("name", SOURCES)
def test_data_to_predict(name: str, tmp_path: Path) -> None:
    source, begin, words = SOURCES[name]
    make_sparse(tmp_path / name, begin)
    config = write_recipe(tmp_path, merged(SETTINGS, {"data": {"predict": {**source, "path": str(tmp_path / name)}}}))
    code, err = run("--config", config, "--checkpoint", "none", "--predict", tmp_path / "p.csv")
    assert code == 2 and err.count("error:") == 1 and name in err and words in err, err


@pytest.mark.parametrize(("key", "name"), [("path", "m.pt"), ("path", "m.pt2"), ("path", "m.onnx"), ("weights", "w.pt"),
                                           ("weights", "w.safetensors")])
def test_model(key: str, name: str, tmp_path: Path) -> None:
    make_sparse(tmp_path / name, b"PK\x03\x04")
    config = write_recipe(tmp_path, merged(SETTINGS, {"model": {key: str(tmp_path / name)}}))
    code, err = run("--config", config, "--dry-run")
    assert code == 2 and err.count("error:") == 1 and name in err, err


def test_recipe(tmp_path: Path) -> None:
    make_sparse(tmp_path / "r.yaml", b"name: x\n")
    code, err = run("--config", tmp_path / "r.yaml", "--dry-run")
    assert code == 2 and "r.yaml" in err and "damaged or another file" in err, err
