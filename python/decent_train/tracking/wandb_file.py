"""Reads what wandb has written to disk: the rows of its .wandb files."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from wandb.proto.wandb_internal_pb2 import Record

# LevelDB's log format after a header of 7 bytes: blocks, in them parts of records with 7 bytes before each.
_BLOCK, _HEADER = 32768, 7
_WHOLE, _LAST = 1, 4
_PATIENCE_S = 60


def rows_in(file: Path) -> Iterator[dict[str, str]]:
    """Of each row the names and the values in JSON. Ends where the file breaks off."""
    data = file.read_bytes()
    position, record = _HEADER, b""
    while position + _HEADER <= len(data):
        left = _BLOCK - position % _BLOCK
        if left < _HEADER:
            position += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, position)
        position += _HEADER
        part = data[position:position + length]
        if len(part) < length or kind == 0:
            return
        position += length
        record += part
        if kind in (_WHOLE, _LAST):
            parsed = Record.FromString(record)
            record = b""
            if parsed.HasField("history"):
                yield {item.key or ".".join(item.nested_key): item.value_json for item in parsed.history.item}


def wait_until_closed(file: Path) -> None:
    """The process of wandb's that writes a file outlives, for a moment, one that was killed. Waits for it."""
    end = time.monotonic() + _PATIENCE_S
    while _is_open(file) and time.monotonic() < end:
        time.sleep(0.1)


def _is_open(file: Path) -> bool:
    """In a process of this machine that may be looked at."""
    wanted = str(file.resolve())
    for process in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(os.readlink(each) == wanted for each in process.iterdir()):
                return True
        except OSError:
            continue
    return False
