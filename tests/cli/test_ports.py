"""Who can reach the ports of a run on one machine: nobody from elsewhere."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from program import Ended, ROOT, launcher_variables, run_alone
from runs import assert_says, error_message
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


# ---- a port that another program has --------------------------------------------------------------------------------

ANSWERS = {"closes": b"", "answers": b"HTTP/1.1 400 Bad Request\r\n\r\n", "says nothing": None}


@contextmanager
def another_program(answer: bytes | None) -> Iterator[int]:
    """Its port. It answers and closes, or does neither."""
    kept = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                if answer is None:
                    kept.append(connection)
                    continue
                connection.sendall(answer)
                connection.close()

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)


def run_at(port: int, rank: int, local: int, folder: Path) -> Ended:
    return run_alone("--config", ROOT / "configs" / "digits.yaml", "--set", "parallel.timeout_s=2", cwd=folder,
                     **launcher_variables(rank, 2, port, local))


@pytest.mark.parametrize("local", [1, 2])
def test_the_store_has_no_port(local: int, tmp_path: Path) -> None:
    with another_program(b"") as port:
        message = error_message(run_at(port, 0, local, tmp_path), 3, 1)
        assert_says(message, f"cannot host the store at 127.0.0.1:{port}: another program uses this port", "MASTER_PORT")


@pytest.mark.parametrize("answer", ANSWERS)
def test_another_program_in_place_of_the_store(answer: str, tmp_path: Path) -> None:
    """One line, without frames of C++, and in time."""
    with another_program(ANSWERS[answer]) as port:
        ended = run_at(port, 1, 2, tmp_path)
        assert_says(error_message(ended, 3, 1), f"cannot reach the store at 127.0.0.1:{port}", "perhaps another program", "MASTER_PORT")
        assert ended.seconds < 20
