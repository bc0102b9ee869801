"""What a folder holds, to compare with what it holds later."""

from __future__ import annotations

from pathlib import Path


def contents(folder: Path) -> dict[str, bytes]:
    """Its files, by the path inside the folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """By the path inside the folder: when it was last changed, and the bytes of a file."""
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path in sorted(folder.rglob("*"))}
