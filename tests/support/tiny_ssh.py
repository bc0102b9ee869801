"""A stand-in for ssh and sshd that needs neither keys nor accounts, for machines of hosts.py:

    tiny_ssh.py serve ADDRESS FOLDER          runs the commands that come, in FOLDER
    tiny_ssh.py [ssh's options] HOST COMMAND  as ssh: standard streams, exit code, 255 where the connection is lost

As with the real ones, a cable that is pulled closes nothing: the client gives up by ConnectTimeout and ServerAliveInterval, and
the command on the other side goes on.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress

PORT = 22
HEAD = struct.Struct(">cI")  # kind and length of a message
COMMAND, INPUT, OUT, ERR, CODE, ALIVE = b"c", b"i", b"o", b"e", b"x", b"a"  # an empty INPUT: the end


class Link:
    """Messages on a connection, from several threads."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._lock = threading.Lock()

    def send(self, kind: bytes, content: bytes = b"") -> None:
        with self._lock:
            self.connection.sendall(HEAD.pack(kind, len(content)) + content)

    def receive(self) -> tuple[bytes, bytes]:
        kind, size = HEAD.unpack(self._exactly(HEAD.size))
        return kind, self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            part = self.connection.recv(size - len(content))
            if not part:
                raise ConnectionError("closed")
            content += part
        return content


def pump(link: Link, descriptor: int, kind: bytes) -> None:
    with suppress(OSError):
        while content := os.read(descriptor, 65536):
            link.send(kind, content)


# ---- sshd ------------------------------------------------------------------------------------------------------------

def run_command(link: Link, folder: str) -> None:
    kind, command = link.receive()
    assert kind == COMMAND
    process = subprocess.Popen(["sh", "-c", command.decode()], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    threading.Thread(target=take_input, args=(link, process), daemon=True).start()
    pumps = [threading.Thread(target=pump, args=(link, stream.fileno(), kind), daemon=True)
             for stream, kind in ((process.stdout, OUT), (process.stderr, ERR))]
    for thread in pumps:
        thread.start()
    for thread in pumps:
        thread.join()
    code = process.wait()
    with suppress(OSError):
        link.send(CODE, str(code if code >= 0 else 255).encode())


def take_input(link: Link, process: subprocess.Popen) -> None:
    with suppress(OSError, ValueError):
        while True:
            kind, content = link.receive()
            if kind == ALIVE:
                link.send(ALIVE)
            elif content:
                os.write(process.stdin.fileno(), content)
            else:
                process.stdin.close()
    process.stdin.close()


def serve(address: str, folder: str) -> None:
    with socket.create_server((address, PORT)) as server:
        while True:
            connection, _ = server.accept()
            threading.Thread(target=run_command, args=(Link(connection), folder), daemon=True).start()


# ---- ssh -------------------------------------------------------------------------------------------------------------

def options_of(arguments: list[str]) -> tuple[dict[str, str], str, str]:
    options = {"ConnectTimeout": "30", "ServerAliveInterval": "0", "ServerAliveCountMax": "3"}
    while arguments[0].startswith("-"):
        if arguments.pop(0) == "-o":
            options.update([arguments.pop(0).split("=", 1)])
    host, command = arguments
    return options, host, command


def give_up(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
    os._exit(255)


def send_input(link: Link) -> None:
    pump(link, 0, INPUT)
    with suppress(OSError):
        link.send(INPUT)


def watch(link: Link, host: str, interval: float, most: int, heard: list[float]) -> None:
    while True:
        time.sleep(interval)
        if time.monotonic() > heard[0] + interval * (most + 0.5):
            give_up(f"Timeout, server {host} not responding.")
        with suppress(OSError):
            link.send(ALIVE)


def ask(arguments: list[str]) -> None:
    options, host, command = options_of(arguments)
    try:
        connection = socket.create_connection((host, PORT), timeout=float(options["ConnectTimeout"]))
    except OSError as error:
        give_up(f"ssh: connect to host {host} port {PORT}: {error}")
    connection.settimeout(None)
    link, heard = Link(connection), [time.monotonic()]
    link.send(COMMAND, command.encode())
    threading.Thread(target=send_input, args=(link,), daemon=True).start()
    if interval := float(options["ServerAliveInterval"]):
        threading.Thread(target=watch, args=(link, host, interval, int(options["ServerAliveCountMax"]), heard),
                         daemon=True).start()
    while True:
        try:
            kind, content = link.receive()
        except OSError:
            give_up(f"Connection to {host} closed by remote host.")
        heard[0] = time.monotonic()
        if kind in (OUT, ERR):
            os.write(1 if kind == OUT else 2, content)
        elif kind == CODE:
            os._exit(int(content))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        ask(sys.argv[1:])
