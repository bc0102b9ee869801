"""Who can reach the ports of a run on one machine: nobody from elsewhere."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from started import Started

LISTENING = "0A"  # of /proc/net/tcp
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}  # 127.0.0.1 and ::1 as that file writes them


def listening_addresses(pid: int) -> list[str]:
    """The addresses that a process listens on, as /proc/net/tcp writes them."""
    inodes = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(fd)
        if target.startswith("socket:["):
            inodes.add(target[len("socket:["):-1])
    addresses = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in inodes:
                addresses.append(fields[1].split(":")[0])
    return addresses


@pytest.mark.parametrize("master", ["127.0.0.1", "localhost", socket.gethostname()])
def test_all_listen_on_loopback(master: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("started.MASTER_ADDR", master)
    with Started(2, tmp_path, False, "--set", "parallel.backend=gloo") as run:
        run.wait_until_it_trains()
        addresses = [listening_addresses(process.pid) for process in run.processes]
        assert len(addresses[0]) >= 2, addresses  # the store and gloo, or the check could not fail
        assert len(addresses[1]) >= 1, addresses
        assert set(addresses[0] + addresses[1]) <= LOOPBACK, addresses


def test_shared_memory_needs_no_port(tmp_path: Path) -> None:
    with Started(2, tmp_path) as run:
        run.wait_until_it_trains()
        addresses = [listening_addresses(process.pid) for process in run.processes]
        assert addresses[0] and set(addresses[0]) <= LOOPBACK, addresses  # the store
        assert addresses[1] == []
