"""Who may include or import whom: the picture of docs/architecture.md, checked on the sources. One test a rule; it names all
that break it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from program import ROOT

LIB = ROOT / "lib" / "decent"
UNIT = ROOT / "tests" / "unit"

# Module -> the modules whose headers its files may include, besides its own.
MAY_INCLUDE = {
    "core": set(),
    "checkpoint": {"core"},
    "config": {"core", "optim"},
    "topology": {"core"},
    "onnx": {"core"},
    "pt2": {"core"},
    "model": {"core", "onnx", "pt2"},
    "data": {"core"},
    "comm": {"core"},
    "supervisor": {"core", "comm"},
    "optim": {"core"},
    "codec": {"core"},
    "cuda": {"core", "comm", "optim", "codec"},
    "parallel": {"core", "codec", "optim", "topology", "comm"},
    "runfolder": {"core", "checkpoint"},
    "report": {"core", "config", "optim", "topology", "runfolder"},
    "task": {"core", "checkpoint", "config", "model", "data", "comm", "parallel", "runfolder"},
    "resume": {"core", "checkpoint", "config", "comm", "optim", "parallel", "runfolder"},
    "train": {"core", "checkpoint", "config", "topology", "model", "data", "comm", "optim", "parallel", "report", "resume",
              "runfolder", "task"},
}

# Folders of a module, each with what it may include of the others.
ONNX_FOLDERS = {"format": set(), "graph": {"format"}, "patterns": {"format", "graph"}}
ONNX_FOLDERS["classify"] = ONNX_FOLDERS["patterns"] | {"patterns"}
ONNX_FOLDERS["translate"] = ONNX_FOLDERS["classify"] | {"classify"}
ONNX_FOLDERS["operators"] = ONNX_FOLDERS["report"] = ONNX_FOLDERS["translate"] | {"translate"}
ONNX_FOLDERS["write"] = {"format", "patterns"}
PT2_FOLDERS = {"program": set(), "json": set(), "archive": {"program", "json"}, "write": {"program", "archive", "analyse"},
               "analyse": {"program"}, "translate": {"program", "analyse"}, "rules": {"program", "analyse", "translate"},
               "report": {"program", "archive", "analyse", "translate"}}
FOLDERS = {"onnx": ONNX_FOLDERS, "pt2": PT2_FOLDERS}

# Without PyTorch's headers: these compile fast and can be fuzzed by themselves.
TORCH_FREE_MODULES = ("core", "checkpoint", "config", "topology", "optim", "codec", "onnx", "pt2", "report", "runfolder", "supervisor")
TORCH_FREE_FOLDERS = ("data/csv", "data/formats", "data/images", "data/transforms")
TORCH_FREE_FILES = ("data/source", "data/digits", "data/formats", "data/safetensors_source", "data/permutation", "data/sampler",
                    "data/weighted_order", "data/npz",
                    *(f"model/weights/{name}" for name in ("formats", "script_module", "state_dict")))
WITH_TORCH = {"core/torch_dtype.h"}  # the one header for modules that use PyTorch anyway
TORCH = re.compile(r"(ATen|torch|c10|caffe2|c10d|gloo)/")


def includes(file: Path) -> list[tuple[str, str]]:
    """(quote or bracket, path) of every #include."""
    return re.findall(r'^\s*#\s*include\s*(["<])([^">]+)[">]', file.read_text(), re.MULTILINE)


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cpp", ".cu", ".cuh"))


def module_of(included: str) -> str:
    return included.split("/")[1]


@cache
def reached(file: Path) -> frozenset[str]:
    """Everything that the file includes, directly or through headers of this project."""
    found: set[str] = set()
    for _, path in includes(file):
        if path in found:
            continue
        found.add(path)
        if path.startswith("decent/"):
            found |= reached(ROOT / "lib" / path)
    return frozenset(found)


def none_of(wrong: Iterable[str]) -> None:
    """Fails with all of them, a line each."""
    found = sorted(wrong)
    assert not found, "\n".join(["", *found])


def including(file: Path, path: str, folder: Path = ROOT) -> str:
    return f"{file.relative_to(folder)} includes {path}"


def test_kernels_do_without_torch() -> None:
    """nvcc takes 20 to 110 s for a file with PyTorch's headers."""
    kernels = [file for file in sources(LIB) if file.suffix in (".cu", ".cuh")]
    assert kernels
    none_of(including(file, path) for file in kernels for path in reached(file) if TORCH.match(path))


def test_only_the_library_for_gpus_includes_cuda() -> None:
    """The program runs, and is built, where there is nothing of CUDA."""
    cuda = re.compile(r"(cuda|nccl)[^/]*\.h$|(c10|ATen)/cuda/|.*ProcessGroupNCCL")
    found = [(file, path) for file in sources(LIB) for mark, path in includes(file) if mark == "<" and cuda.match(path)]
    assert found
    none_of(including(file, path) for file, path in found if file.parent != LIB / "cuda")


def test_every_module_is_known() -> None:
    for module, folders in FOLDERS.items():
        assert {path.name for path in (LIB / module).iterdir() if path.is_dir()} == set(folders)
    assert {path.name for path in LIB.iterdir() if path.is_dir()} == set(MAY_INCLUDE)
    none_of(f"{folder} has no sources" for folder in (*MAY_INCLUDE, *TORCH_FREE_FOLDERS) if not sources(LIB / folder))


def test_modules_include_only_what_they_may() -> None:
    none_of(including(file, path) for module, others in MAY_INCLUDE.items() for file in sources(LIB / module)
            for _, path in includes(file) if path.startswith("decent/") and module_of(path) not in others | {module})


def test_folders_include_only_what_they_may() -> None:
    none_of(including(file, path) for module, folders in FOLDERS.items() for folder, others in folders.items()
            for file in sources(LIB / module / folder) for _, path in includes(file)
            if path.startswith(f"decent/{module}/") and path.split("/")[2] not in others | {folder})


def test_formats_of_models_are_known_in_one_place() -> None:
    """Headers in the folder of a format are included there and by the table of formats."""
    inside = re.compile(r"decent/model/(torchscript|onnx|pt2|safetensors)/")
    table = LIB / "model" / "formats.cpp"
    assert {found[1] for _, path in includes(table) if (found := inside.match(path))} == {"torchscript", "onnx", "pt2", "safetensors"}
    none_of(including(file, path) for file in sources(LIB) + sources(ROOT / "app") for _, path in includes(file)
            if (found := inside.match(path)) and file != table and file.parent != LIB / "model" / found[1])


def test_what_formats_say_is_read_without_torch() -> None:
    """Flags and messages ask for the names of formats."""
    none_of(f"{header} reaches {path}" for header in ("model/formats.h", "model/origin.h")
            for path in reached(LIB / header) if TORCH.match(path))


def test_modules_link_only_what_they_may_include() -> None:
    """CMake's DEPENDS say the same."""
    linked = {module: set(re.findall(r"\bdecent::(\w+)", (LIB / module / "CMakeLists.txt").read_text())) & set(MAY_INCLUDE)
              for module in MAY_INCLUDE}
    none_of(f"{module} links {other}" for module, others in linked.items() for other in others - MAY_INCLUDE[module])
    assert [module for module, others in linked.items() if not others] == ["core"]


def test_headers_are_named_in_full() -> None:
    """decent/<module>/<name>.h, or of a folder in the module, in quotes, in the tree as after install; and the file
    exists.
    """
    def good(mark: str, path: str) -> bool:
        own = path.startswith("decent/")
        return own == (mark == '"') and (not own or (len(path.split("/")) >= 3 and (ROOT / "lib" / path).exists()))

    none_of(including(file, mark + path) for file in sources(LIB) for mark, path in includes(file) if not good(mark, path))


def test_app_includes_the_library_and_its_own() -> None:
    found = [(file, mark, path) for file in sources(ROOT / "app") for mark, path in includes(file)]
    assert found
    none_of(including(file, path) for file, mark, path in found
            if TORCH.match(path) or not (mark == "<" or path.startswith("decent/") or (file.parent / path).exists()))


def torch_free_sources() -> list[Path]:
    files = [file for module in TORCH_FREE_MODULES for file in sources(LIB / module)]
    files += [file for folder in TORCH_FREE_FOLDERS for file in sources(LIB / folder)]
    files += [LIB / f"{name}{ending}" for name in TORCH_FREE_FILES for ending in (".h", ".cpp")]
    return [file for file in files if str(file.relative_to(LIB)) not in WITH_TORCH]


def test_no_torch_header_is_reached() -> None:
    none_of(f"{file.relative_to(LIB)} reaches {path}" for file in torch_free_sources()
            for path in reached(file) if TORCH.match(path))


def test_json_is_only_where_values_travel() -> None:
    """Its header costs about 2 s a file: stages without a value do without it."""
    with_json = {str(file.relative_to(LIB)) for file in sources(LIB) if file.suffix == ".h"
                 for path in reached(file) if path.startswith("nlohmann/")}
    assert with_json == {"comm/cbor.h", "comm/gather.h"}


def test_torch_is_noticed() -> None:
    """The check above would see it: through a header of another module, too."""
    assert any(TORCH.match(path) for path in reached(LIB / "task" / "task.cpp"))
    assert not any(TORCH.match(path) for _, path in includes(LIB / "task" / "task.h"))
    assert any(TORCH.match(path) for path in reached(LIB / "task" / "task.h"))


# ---- tests ---------------------------------------------------------------------------------------------------------

def foreign_includes(unit: Path) -> list[str]:
    """What tests of a room include besides the library, their own room's headers and those in support/."""
    def may(file: Path, path: str) -> bool:
        place = (file.parent / path).resolve()
        return place.is_relative_to(unit) and place.relative_to(unit).parts[0] in (file.relative_to(unit).parts[0], "support")

    return [including(file, path, unit) for file in sources(unit) for mark, path in includes(file)
            if mark == '"' and not path.startswith("decent/") and not may(file, path)]


def test_unit_tests_include_their_own_room_and_support() -> None:
    assert {file.relative_to(UNIT).parts[0] for file in sources(UNIT)} >= set(MAY_INCLUDE)
    none_of(foreign_includes(UNIT))


def test_an_include_across_rooms_is_noticed(tmp_path: Path) -> None:
    for place, text in {"core/bytes.h": "", "support/folder.h": '#include "../core/bytes.h"\n',
                        "data/test_csv.cpp": '#include "../support/folder.h"\n#include "own.h"\n#include "decent/core/text.h"\n',
                        "data/own.h": '#include <string>\n#include "../core/bytes.h"\n#include "../../fuzz/input.h"\n'}.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    assert sorted(foreign_includes(tmp_path)) == ["data/own.h includes ../../fuzz/input.h", "data/own.h includes ../core/bytes.h",
                                                  "support/folder.h includes ../core/bytes.h"]


# ---- Python --------------------------------------------------------------------------------------------------------

def python_files() -> list[Path]:
    return sorted(file for folder in ("app", "examples", "models", "tests", "tools") for file in (ROOT / folder).rglob("*.py"))


def imports(file: Path) -> set[str]:
    """The modules that the file imports, anywhere in it; of a package its name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.name for alias in node.names}
    return {name.split(".")[0] for name in found}


def imported_tests(files: list[Path]) -> list[str]:
    return [f"{file} imports {name}" for file in files for name in sorted(imports(file)) if name.startswith("test_")]


def test_no_file_imports_a_test_file() -> None:
    assert any(file.name.startswith("test_") for file in python_files())
    none_of(imported_tests(python_files()))


def test_an_imported_test_file_is_noticed(tmp_path: Path) -> None:
    for name, text in {"a.py": "import test_b\n", "b.py": "def late():\n    from test_c import helper\n",
                       "c.py": "from . import test_d\n", "d.py": "import testing, my_test_e\nfrom best_f import test_g\n"}.items():
        (tmp_path / name).write_text(text)
    assert imported_tests(sorted(tmp_path.iterdir())) == [
        f"{tmp_path / name}.py imports {test}" for name, test in (("a", "test_b"), ("b", "test_c"), ("c", "test_d"))]


def in_circles(files: list[Path]) -> list[str]:
    """The files that import themselves by way of others. A name stands for the file beside, where there is one."""
    named: dict[str, list[Path]] = {}
    for file in files:
        named.setdefault(file.stem, []).append(file)

    def meant(file: Path, name: str) -> list[Path]:
        candidates = named.get(name, [])
        return [each for each in candidates if each.parent == file.parent] or candidates

    imported = {file: {other for name in imports(file) for other in meant(file, name)} for file in files}
    found = []
    for file in files:
        seen: set[Path] = set()
        new = imported[file]
        while new:
            seen |= new
            new = {other for each in new for other in imported[each]} - seen
        if file in seen:
            found.append(str(file))
    return found


def test_python_imports_go_in_no_circle() -> None:
    none_of(in_circles(python_files()))


def test_a_circle_of_imports_is_noticed(tmp_path: Path) -> None:
    """Also through a third, and where a file imports late."""
    for name, text in {"a.py": "import b\n", "b.py": "from c import x\n", "c.py": "def late():\n    import a\n",
                       "d.py": "import a\n"}.items():
        (tmp_path / name).write_text(text)
    assert in_circles(sorted(tmp_path.iterdir())) == [str(tmp_path / name) for name in ("a.py", "b.py", "c.py")]
