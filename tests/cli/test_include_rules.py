"""Who may include whom: the picture of docs/architecture.md, checked on the sources."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from program import ROOT

LIB = ROOT / "lib" / "decent"

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
    "report": {"core", "config", "optim", "topology"},
    "task": {"core", "checkpoint", "config", "model", "data", "comm", "parallel", "report"},
    "resume": {"core", "checkpoint", "config", "comm", "optim", "parallel", "report"},
    "train": {"core", "checkpoint", "config", "topology", "model", "data", "comm", "optim", "parallel", "report", "resume",
              "task"},
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
TORCH_FREE_MODULES = ("core", "checkpoint", "config", "topology", "optim", "codec", "onnx", "pt2", "report", "supervisor")
TORCH_FREE_FOLDERS = ("data/csv", "data/formats", "data/images", "data/transforms")
TORCH_FREE_FILES = ("data/source", "data/digits", "data/formats", "data/safetensors_source", "data/permutation", "data/sampler",
                    "data/npz",
                    *(f"model/weights/{name}" for name in ("formats", "script_module", "state_dict")))
WITH_TORCH = {"core/torch_dtype.h"}  # the one header for modules that use PyTorch anyway
TORCH = re.compile(r"(ATen|torch|c10|caffe2|c10d|gloo)/")

MOST_LINES = 400
MOST_SOURCES = 25  # .cpp and .cu of a folder of the library
TABLES = {"onnx/operators"}  # one file a family
LONGER: dict[str, str] = {}  # file -> why it is longer
SOURCE_FOLDERS = ("app", "examples", "lib", "cmake", "models", "tests", "tools")
SOURCE_ENDINGS = (".h", ".cpp", ".cu", ".cuh", ".S", ".py", ".cmake")


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


def test_kernels_do_without_torch() -> None:
    """nvcc takes 20 to 110 s for a file with PyTorch's headers."""
    assert {str(file.relative_to(LIB)): path for file in sources(LIB) if file.suffix in (".cu", ".cuh")
            for path in reached(file) if TORCH.match(path)} == {}


def test_only_the_library_for_gpus_includes_cuda() -> None:
    """The program runs, and is built, where there is nothing of CUDA."""
    cuda = re.compile(r"(cuda|nccl)[^/]*\.h$|(c10|ATen)/cuda/|.*ProcessGroupNCCL")
    wrong = [f"{file.relative_to(ROOT)} includes {path}" for file in sources(LIB) if file.parent != LIB / "cuda"
             for mark, path in includes(file) if mark == "<" and cuda.match(path)]
    assert wrong == []


def test_every_module_is_known() -> None:
    for module, folders in FOLDERS.items():
        assert {path.name for path in (LIB / module).iterdir() if path.is_dir()} == set(folders)
    assert {path.name for path in LIB.iterdir() if path.is_dir()} == set(MAY_INCLUDE)
    assert all(sources(LIB / module) for module in MAY_INCLUDE)


@pytest.mark.parametrize("module", MAY_INCLUDE)
def test_module_includes_only_what_it_may(module: str) -> None:
    allowed = MAY_INCLUDE[module] | {module}
    wrong = [f"{file.relative_to(ROOT)} includes {path}" for file in sources(LIB / module)
             for _, path in includes(file) if path.startswith("decent/") and module_of(path) not in allowed]
    assert wrong == []


@pytest.mark.parametrize(("module", "folder"), [(module, folder) for module, folders in FOLDERS.items() for folder in folders])
def test_folder_includes_only_what_it_may(module: str, folder: str) -> None:
    allowed = FOLDERS[module][folder] | {folder}
    wrong = [f"{file.relative_to(ROOT)} includes {path}" for file in sources(LIB / module / folder)
             for _, path in includes(file) if path.startswith(f"decent/{module}/") and path.split("/")[2] not in allowed]
    assert wrong == []


def test_formats_of_models_are_known_in_one_place() -> None:
    """Headers in the folder of a format are included there and by the table of formats."""
    inside = re.compile(r"decent/model/(torchscript|onnx|pt2|safetensors)/")
    table = LIB / "model" / "formats.cpp"
    wrong = [f"{file.relative_to(ROOT)} includes {path}" for file in sources(LIB) + sources(ROOT / "app")
             for _, path in includes(file)
             if (found := inside.match(path)) and file != table and file.parent != LIB / "model" / found[1]]
    assert wrong == []
    assert all(sources(LIB / "model" / folder) for folder in ("torchscript", "onnx", "pt2", "safetensors"))


@pytest.mark.parametrize("header", ["model/formats.h", "model/origin.h"])
def test_what_formats_say_is_read_without_torch(header: str) -> None:
    """Flags and messages ask for the names of formats."""
    assert [path for path in sorted(reached(LIB / header)) if TORCH.match(path)] == []


@pytest.mark.parametrize("module", MAY_INCLUDE)
def test_module_links_only_what_it_may_include(module: str) -> None:
    """CMake's DEPENDS say the same."""
    text = (LIB / module / "CMakeLists.txt").read_text()
    linked = set(re.findall(r"\bdecent::(\w+)", text)) & set(MAY_INCLUDE)
    assert linked <= MAY_INCLUDE[module]
    assert linked or module == "core"


def test_headers_are_named_in_full() -> None:
    """decent/<module>/<name>.h, or of a folder in the module, in quotes, in the tree as after install; and the file
    exists.
    """
    wrong = []
    for file in sources(LIB):
        for mark, path in includes(file):
            own = path.startswith("decent/")
            good = own == (mark == '"') and (not own or (len(path.split("/")) >= 3 and (ROOT / "lib" / path).exists()))
            if not good:
                wrong.append(f"{file.relative_to(ROOT)} includes {mark}{path}")
    assert wrong == []


def test_app_includes_the_library_and_its_own() -> None:
    for file in sources(ROOT / "app"):
        for mark, path in includes(file):
            own = (file.parent / path).exists()
            assert mark == "<" or own or path.startswith("decent/"), f"{file.name} includes {path}"
            assert not TORCH.match(path), f"{file.name} includes {path}"


def torch_free_sources() -> list[Path]:
    files = [file for module in TORCH_FREE_MODULES for file in sources(LIB / module)]
    files += [file for folder in TORCH_FREE_FOLDERS for file in sources(LIB / folder)]
    files += [LIB / f"{name}{ending}" for name in TORCH_FREE_FILES for ending in (".h", ".cpp")]
    return [file for file in files if str(file.relative_to(LIB)) not in WITH_TORCH]


@pytest.mark.parametrize("file", torch_free_sources(), ids=lambda file: str(file.relative_to(LIB)))
def test_no_torch_header_is_reached(file: Path) -> None:
    assert [path for path in sorted(reached(file)) if TORCH.match(path)] == []


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


def test_no_folder_is_too_full() -> None:
    counts = {str(folder.relative_to(LIB)): sum(path.suffix in (".cpp", ".cu") for path in folder.iterdir())
              for folder in LIB.rglob("*") if folder.is_dir()}
    assert {folder: count for folder, count in counts.items() if count > MOST_SOURCES and folder not in TABLES} == {}
    assert TABLES <= set(counts)


def test_no_file_is_too_long() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for folder in SOURCE_FOLDERS
               for path in (ROOT / folder).rglob("*") if path.suffix in SOURCE_ENDINGS}
    too_long = {file: lines for file, lines in lengths.items() if lines > MOST_LINES}
    assert set(too_long) == set(LONGER), too_long
    assert all(LONGER.values())
