"""Machines on a network of their own: network namespaces joined by a bridge. Needs the right to make them (root)."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

_numbers = itertools.count()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def why_not() -> str | None:
    """Why this machine cannot make hosts, or None where it can."""
    if shutil.which("ip") is None:
        return "the command ip (package iproute2) is not installed"
    name = f"dt-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode != 0:
        return f"network namespaces are not permitted here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", name], capture_output=True)
    return None


class Host:
    """A network namespace with the interface eth0; what is started with its prefix runs there."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.prefix = ["ip", "netns", "exec", name]

    def sent_bytes(self) -> int:
        """All that its interface has sent."""
        command = [*self.prefix, "cat", "/sys/class/net/eth0/statistics/tx_bytes"]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def set_link(self, state: str) -> None:
        """up or down, as a cable."""
        _ip("-n", self.name, "link", "set", "eth0", state)


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """Hosts 10.77.k.1, 10.77.k.2, .. on one bridge, in a namespace of its own so that nothing of this machine changes."""
    mark = f"{os.getpid() % 100000:05}{next(_numbers) % 10}"
    bridge = f"dt{mark}b"
    made = [Host(f"dt{mark}h{i}", f"10.77.{os.getpid() % 250}.{i + 1}") for i in range(count)]
    names = []  # of those that are there, and no one else's
    try:
        for name in (bridge, *(host.name for host in made)):
            _ip("netns", "add", name)
            names.append(name)
        _ip("-n", bridge, "link", "add", "br0", "type", "bridge")
        _ip("-n", bridge, "link", "set", "br0", "up")
        for i, host in enumerate(made):
            _ip("-n", bridge, "link", "add", f"v{i}", "type", "veth", "peer", "name", "eth0", "netns", host.name)
            _ip("-n", bridge, "link", "set", f"v{i}", "master", "br0")
            _ip("-n", bridge, "link", "set", f"v{i}", "up")
            _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", "eth0")
            _ip("-n", host.name, "link", "set", "lo", "up")
            host.set_link("up")
        yield made
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
