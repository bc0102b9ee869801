"""The installed package, and programs that are built against it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from program import ROOT, environment

BUILD = Path(os.environ.get("DECENT_BUILD", ROOT / "build")).absolute()
CMAKE = os.environ.get("CMAKE", "cmake")
SANITIZE = os.environ.get("DECENT_SANITIZE", "")


@dataclass(frozen=True)
class Package:
    prefix: Path

    @property
    def headers(self) -> dict[str, Path]:
        """By the name that is included."""
        include = self.prefix / "include"
        return {str(path.relative_to(include)): path for path in sorted(include.rglob("*")) if path.is_file()}

    @property
    def cmake_files(self) -> list[Path]:
        return sorted(self.prefix.rglob("*.cmake"))


@dataclass(frozen=True)
class Configured:
    code: int
    output: str
    build: Path


def configure(source: Path, package: Package, *flags: str, **variables: object) -> Configured:
    """As a user does in an activated virtual environment."""
    build = source / "build"
    flags = ("-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror", *flags)
    if shutil.which("ccache"):
        flags = ("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", *flags)
    if SANITIZE:
        flags = (f"-DCMAKE_EXE_LINKER_FLAGS=-fsanitize={SANITIZE}", *flags)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run([CMAKE, "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={package.prefix}",
                           *flags], env={**environment(), "PATH": path, **variables}, capture_output=True, text=True)
    return Configured(done.returncode, done.stdout + done.stderr, build)


def build_examples(names: list[str], folder: Path, package: Package) -> dict[str, Path]:
    """The programs, built side by side outside the source tree."""
    builds = {}
    for name in names:
        source = Path(shutil.copytree(ROOT / "examples" / name, folder / name))
        configured = configure(source, package)
        assert configured.code == 0, configured.output
        assert "CMake Warning" not in configured.output, configured.output
        builds[name] = configured.build
    running = [subprocess.Popen([CMAKE, "--build", build], stdout=subprocess.PIPE, text=True)
               for build in builds.values()]
    outputs = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0] * len(names), "\n".join(outputs)
    return {name: build / name for name, build in builds.items()}


PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(flags LANGUAGES CXX)
find_package(decent CONFIG REQUIRED)
add_library(flags OBJECT flags.cpp)
target_link_libraries(flags PRIVATE decent::decent)
"""


def flags_of(package: Package, folder: Path) -> list[str]:
    """The compiler and the package's flags; the package's own headers not as the system's, so that it warns of them."""
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(PROJECT)
    (folder / "flags.cpp").touch()
    configured = configure(folder, package, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    assert configured.code == 0, configured.output
    command = shlex.split(json.loads((configured.build / "compile_commands.json").read_text())[0]["command"])
    command = [part for part in command if not part.endswith("ccache")]
    command = command[:command.index("-o")]
    own = command.index(str(package.prefix / "include"))
    assert command[own - 1] == "-isystem"
    command[own - 1] = "-I"
    return command
