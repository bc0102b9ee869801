"""The wheel: built, installed into an empty environment, run from there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bundles import (CUDA_IS_BUILT, LICENCES, SHORT, VERSION, assert_licences, assert_no_path_of_this_machine,
                     assert_trained, elf_files, search_paths)
from ports import free_port
from program import ROOT, Ended, environment, run_commands

# Beyond those that every system has, and torch's.
LIBRARIES = ("libyaml-cpp", "libspdlog", "libfmt", "libxxhash", "libz", "libjpeg", "libpng16", "libwebp")

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
DIGITS = [ROOT / "configs" / "digits.yaml", *SHORT]
TORCH_VERSION = distribution("torch").version.partition("+")[0]


def with_dependencies(name: str, known: set[str]) -> None:
    """Into known, by the names that are asked for."""
    for text in distribution(name).requires or []:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        for dependency in {requirement.name, *extras_of(requirement)} - known:
            known.add(dependency)
            with_dependencies(dependency, known)


def extras_of(requirement: Requirement) -> set[str]:
    """The packages that `name[extra, ..]` adds."""
    found = set()
    for text in distribution(requirement.name).requires or []:
        own = Requirement(text)
        if own.marker is not None and any(own.marker.evaluate({"extra": extra}) for extra in requirement.extras):
            found.add(own.name)
    return found


def link_torch_into(site: Path) -> None:
    """torch and all that it depends on, file by file as links in folders of their own, instead of a download of GBs."""
    names = {"torch"}
    with_dependencies("torch", names)
    tops: set[Path] = set()
    for name in names:
        package = distribution(name)
        own = Path(package.locate_file(""))
        tops |= {own / file.parts[0] for file in package.files or [] if file.parts[0] not in ("..", "__pycache__")}
    subprocess.run(["cp", "-as", *sorted(tops), site], check=True)


@dataclass(frozen=True)
class Environment:
    folder: Path

    @property
    def site(self) -> Path:
        return next(self.folder.glob("lib/python*/site-packages"))

    @property
    def package(self) -> Path:
        return self.site / "decent_train"

    def run(self, *command: object, **variables: object) -> Ended:
        """As in a shell where the environment is active, in an empty folder."""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        started = self.folder / "bin" / str(command[0])
        own = environment(PATH=path, **variables)
        own.pop("DECENT_TRAIN", None)  # which would name another program than the wheel's
        return run_commands([[started, *command[1:]]], [own], None)[0]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [*PIP, "wheel", ROOT, "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", folder]
    two_at_a_time = {**os.environ, "CMAKE_BUILD_PARALLEL_LEVEL": "2"}
    built = subprocess.run(command, env=two_at_a_time, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    made, = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """pip finds all dependencies there, or fails."""
    made = Environment(tmp_path_factory.mktemp("environment") / "with a blank")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made.folder], check=True)
    link_torch_into(made.site)
    python = made.folder / "bin" / "python"
    subprocess.run([*PIP, "--python", python, "install", "--quiet", "--no-index", wheel], check=True)
    return made


def test_names(wheel: Path) -> None:
    assert wheel.name == f"decent_train-{VERSION}-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"decent_train-{VERSION}.dist-info/METADATA").decode()
        folders = {name.split("/")[0] for name in archive.namelist()}
    assert folders == {"decent_train", f"decent_train-{VERSION}.dist-info"}
    required = re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE)
    assert [text for text in required if "extra ==" not in text] == [f"torch=={TORCH_VERSION}"]
    assert set(re.findall(r"^Provides-Extra: (.*)$", metadata, re.MULTILINE)) == {"search", "track"}
    assert f"torch=={TORCH_VERSION}\n" in (ROOT / "requirements.txt").read_text()


def test_what_is_inside(installed: Environment) -> None:
    libraries = {path.name.split(".so")[0] for path in (installed.package / "lib").iterdir()}
    ours = {"libdecent_cuda"} if CUDA_IS_BUILT else set()
    assert libraries == set(LIBRARIES) | ours
    assert_licences(installed.package / "licenses", *LICENCES)


def test_nothing_of_this_machine(installed: Environment) -> None:
    files = elf_files(installed.package)
    for file in files:
        assert all(folder.startswith("$ORIGIN/") for folder in search_paths(file)), file
    assert search_paths(installed.package / "bin" / "decent-train") == ["$ORIGIN/../lib", "$ORIGIN/../../torch/lib"]
    assert_no_path_of_this_machine(files)


@pytest.mark.parametrize("workers", [1, 2])
def test_console_script_trains(installed: Environment, tmp_path: Path, workers: int) -> None:
    started = ["--workers", workers] if workers > 1 else []
    ended = installed.run("decent-train", *DIGITS, "--set", f"output={tmp_path / 'run'}", *started)
    assert ended.code == 0, ended.err
    assert workers == 1 or f"average of {workers} models" in ended.out
    assert_trained(tmp_path / "run", ended.out)


# What users type: DATA is short for the digits that the program has.
THREE_LINES = """
decent_train.export(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)), torch.randn(8, 1, 8, 8), "net.pt2")
run = decent_train.train({"model": {"path": "net.pt2"}, "data": DATA, "train": {"epochs": 10}, "optimizer": {"lr": 0.02}}, workers=2)
print(type(run.metrics()).__name__, run.lines("eval")[-1]["accuracy"])
"""


def test_three_lines_of_python_train(installed: Environment, tmp_path: Path) -> None:
    """With nothing else in the environment than torch."""
    script = tmp_path / "three.py"
    digits = {name: {"format": "builtin", "name": "digits", "split": split} for name, split in (("train", "train"), ("eval", "test"))}
    script.write_text(f"import os, sys, torch, decent_train\nos.chdir(sys.argv[1])\nDATA = {digits}\n{THREE_LINES}")
    ended = installed.run("python", script, tmp_path)
    assert ended.code == 0, ended.err
    kind, accuracy = ended.out.split()[-2:]
    assert kind == "list" and float(accuracy) > 0.8


@pytest.mark.parametrize(("command", "extra"), [("decent-sweep", "search"), ("decent-track", "track")])
def test_commands_name_the_package_that_they_miss(installed: Environment, tmp_path: Path, command: str, extra: str) -> None:
    (tmp_path / "sweep.yaml").write_text("recipe: x.yaml\n")
    arguments = [tmp_path / "sweep.yaml"] if extra == "search" else [tmp_path, "--to", "mlflow"]
    ended = installed.run(command, *arguments)
    assert ended.code == 2, ended.err
    assert f"pip install 'decent-train[{extra}]'" in ended.err and "Traceback" not in ended.err


def test_takes_its_own_libraries(installed: Environment) -> None:
    """All but the system's from this environment."""
    ended = installed.run("decent-train", "--version", LD_DEBUG="files")
    assert ended.out.startswith(f"decent-train {VERSION} "), ended.err
    opened = {os.path.normpath(path) for path in re.findall(r"calling init: (/.*)", ended.err)}
    site = str(installed.site)
    assert any(path == f"{site}/torch/lib/libtorch_cpu.so" for path in opened)
    for name in LIBRARIES:
        assert [path for path in opened if f"/{name}.so" in path and not path.startswith(site)] == []
        assert [path for path in opened if f"/{name}.so" in path] != []


def test_the_script_becomes_the_program(installed: Environment) -> None:
    """Signals sent to it reach the program, and the exit code is the program's."""
    ended = installed.run("decent-train", "--config", "/nowhere/recipe.yaml")
    assert ended.code == 2 and "/nowhere/recipe.yaml" in ended.err
    assert installed.run("python", "-m", "decent_train", "--version").out.startswith(f"decent-train {VERSION} ")


@pytest.mark.parametrize("how", [["--no-python", "decent-train"], ["-m", "decent_train"]], ids=["--no-python", "-m"])
def test_torchrun(installed: Environment, tmp_path: Path, how: list[str]) -> None:
    ended = installed.run("python", "-m", "torch.distributed.run", "--nproc-per-node", "2", *how, *DIGITS, "--set",
                          f"output={tmp_path / 'run'}", PET_MASTER_PORT=free_port())
    assert ended.code == 0, ended.err
    assert "average of 2 models" in ended.out
    assert_trained(tmp_path / "run", ended.out)


# Last: these change the environment.

def test_another_torch(installed: Environment) -> None:
    version_file = installed.site / "torch" / "version.py"
    version_file.unlink()  # the link
    version_file.write_text("__version__ = '2.3.1+cpu'\n")
    ended = installed.run("decent-train", "--version")
    assert ended.code == 2
    assert f"was built for torch {TORCH_VERSION}, and '{installed.site}' has torch 2.3.1+cpu: pip install" in ended.err


def test_no_torch(installed: Environment) -> None:
    (installed.site / "torch").rename(installed.site / "torch-away")
    ended = installed.run("decent-train", "--version")
    assert ended.code == 2
    assert f"the package torch is not in '{installed.site}'" in ended.err
