"""libdecent_cuda.so as it was built: what it exports, and for which GPUs it has code. Needs no GPU and no tool of
CUDA's."""

from __future__ import annotations

import struct
import subprocess

import pytest

from program import PROGRAM

LIBRARY = PROGRAM.parent / "libdecent_cuda.so"
PTX, MACHINE_CODE = 1, 2

# tools/setup --tests brings the compiler: with anything but OFF the library must be there.
TURNED_OFF = "DECENT_CUDA:STRING=OFF" in (PROGRAM.parent.parent / "CMakeCache.txt").read_text()

pytestmark = pytest.mark.skipif(TURNED_OFF, reason="built with -DDECENT_CUDA=OFF")


def section(name: bytes) -> bytes:
    """Of the ELF file."""
    data = LIBRARY.read_bytes()
    begin, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, begin + i * size) for i in range(count)]
    name_table = headers[names][4]
    for name_at, _, _, _, offset, length in headers:
        start = name_table + name_at
        if data[start:data.index(b"\0", start)] == name:
            return data[offset:offset + length]
    return b""


def code_in(fatbin: bytes) -> list[tuple[int, int]]:
    """(kind, compute capability times 10) of every piece of code. A container begins with magic, version, size of its
    header and of what follows; a piece with kind, version, size of its header and of its content, and has its
    capability at byte 28."""
    found = []
    at = 0
    while at < len(fatbin):
        magic, _, header, size = struct.unpack_from("<IHHQ", fatbin, at)
        if magic != 0xBA55ED50:  # padding
            at += 8
            continue
        piece, at = at + header, at + header + size
        while piece < at:
            kind, _, header, size = struct.unpack_from("<HHIQ", fatbin, piece)
            found.append((kind, struct.unpack_from("<I", fatbin, piece + 28)[0]))
            piece += header + size
    return found


def test_code_for_every_architecture() -> None:
    """Machine code for Turing, Ampere, Hopper and Blackwell; PTX of Hopper, which drivers compile for other GPUs."""
    assert set(code_in(section(b".nv_fatbin"))) == {
        (MACHINE_CODE, 75), (MACHINE_CODE, 80), (MACHINE_CODE, 90), (MACHINE_CODE, 100), (MACHINE_CODE, 120), (PTX, 90)}


def test_exports_nothing_else() -> None:
    """What the program calls, and typeinfo of LibTorch's and the standard library's classes, which must be one."""
    listed = subprocess.run(["nm", "-D", "-C", "--defined-only", LIBRARY], capture_output=True, text=True, check=True)
    functions = [line.split(" ", 2)[2] for line in listed.stdout.splitlines() if line.split(" ", 2)[1] == "T"]
    assert functions and all(name.startswith("decent_cuda_") for name in functions), functions
    assert not [line for line in listed.stdout.splitlines() if "decent::" in line]
