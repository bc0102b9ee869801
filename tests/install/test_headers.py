"""Every installed header compiles by itself, with the flags that the package gives."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from package import Package, flags_of
from program import ROOT

# These compile where LibTorch's headers are not even to be found.
TORCH_FREE = re.compile(r"decent/(core|topology|optim)/.*"
                        r"|decent/comm/(control|launch|socket)\.h"
                        r"|decent/data/(digits|formats|npz_source|safetensors_source|sampler|shards|source)\.h"
                        r"|decent/data/transforms/\w+\.h")

def without_torch(command: list[str]) -> list[str]:
    kept = list(command)
    while "-isystem" in kept:
        at = kept.index("-isystem")
        del kept[at:at + 2]
    return kept


def test_every_header_compiles_alone(package: Package, tmp_path: Path) -> None:
    flags = flags_of(package, tmp_path / "flags")

    def errors(header: str) -> str:
        command = without_torch(flags) if TORCH_FREE.fullmatch(header) else flags
        compiled = subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], input=f"#include <{header}>\n",
                                  capture_output=True, text=True)
        return compiled.stderr if compiled.returncode else ""

    assert any(TORCH_FREE.fullmatch(header) for header in package.headers)
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(package.headers, pool.map(errors, package.headers)))
    assert {header: text for header, text in found.items() if text} == {}


def test_a_module_by_value_does_not_compile(package: Package, tmp_path: Path) -> None:
    """With the words that docs/library.md has for it."""
    manual = (ROOT / "docs" / "library.md").read_text()
    message = re.search(r"a module by value \| does not compile: ([^|]*) \|", manual)[1]
    program = """
#include <decent/parallel/decentralized_data_parallel.h>
#include <torch/nn/module.h>
struct Net : torch::nn::Module {};
void wrap(std::shared_ptr<decent::Communicator> workers) {
  decent::DecentralizedDataParallel model(%s, workers, {});
}
"""
    flags = [*flags_of(package, tmp_path / "flags"), "-fsyntax-only", "-x", "c++", "-"]
    for argument, fits in (("Net()", False), ("std::make_shared<Net>()", True)):
        compiled = subprocess.run(flags, input=program % argument, capture_output=True, text=True)
        assert (compiled.returncode == 0) == fits, compiled.stderr
        assert (message in compiled.stderr) != fits, compiled.stderr
