"""One end of a plain TCP transfer, until it is terminated:

    transfer.py receive PORT                          prints each second how many bytes a second came
    transfer.py send ADDRESS PORT [BYTES_A_SECOND]    no faster than that
"""

from __future__ import annotations

import socket
import sys
import time

CHUNK = 1 << 20
SO_MAX_PACING_RATE = 47  # Linux; Python's socket module does not name it


def connect(address: str, port: int) -> socket.socket:
    """The other end may not listen yet."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection((address, port))
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def send(address: str, port: int, rate: float | None) -> None:
    with connect(address, port) as connection:
        if rate is not None:
            connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, int(rate))
        chunk = bytes(CHUNK)
        while True:
            connection.sendall(chunk)


def receive(port: int) -> None:
    with socket.create_server(("", port)) as server:
        connection, _ = server.accept()
    buffer, received = bytearray(CHUNK), 0
    last = time.monotonic()
    while count := connection.recv_into(buffer):
        received += count
        if (now := time.monotonic()) >= last + 1:
            print(received / (now - last), flush=True)
            received, last = 0, now


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]) if len(sys.argv) > 4 else None)
    else:
        receive(int(sys.argv[2]))
