"""Two hosts on a slow link: namespaces of tests/support/hosts.py whose interfaces send no faster than a given rate."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import support
import hosts
from hosts import Host

TRANSFER = Path(__file__).with_name("transfer.py")
PORT = 9999  # nothing else listens in a namespace of our own
# The token bucket must hold more than the largest packet that TCP hands down (64 KB, which the kernel otherwise cuts up
# at great cost: half the rate at 1 Gbit/s), plus the bytes by which its timer may be late. That is little against the
# MB of an exchange. Exchanges over slower links are smaller, and their bucket passes at most 16 ms' worth at once after
# a pause. Its queue is like that of a switch, 20 ms.
BURST, BURST_OF_SLOW, QUEUE = "256kb", "96kb", "20ms"


def _tc(*arguments: str) -> str:
    ended = subprocess.run(["tc", *arguments], capture_output=True, text=True)
    if ended.returncode != 0:
        raise RuntimeError(f"tc {' '.join(arguments)}: {ended.stderr.strip()}")
    return ended.stdout


def limit(pair: list[Host], mbit: int) -> None:
    """Each host sends at most this many Mbit/s, both at the same time."""
    burst = BURST if mbit >= 200 else BURST_OF_SLOW
    for host in pair:
        _tc("-n", host.name, "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", f"{mbit}mbit", "burst", burst,
            "latency", QUEUE)


def why_not() -> str | None:
    """Why this machine cannot make hosts on a slow link, or None if it can."""
    if reason := hosts.why_not():
        return reason
    if shutil.which("tc") is None:
        return "the command tc (package iproute2) is not in PATH"
    with hosts.hosts(1) as single:
        try:
            limit(single, 1000)
        except RuntimeError as error:
            return str(error)
    return None


def sent_bytes(host: Host) -> int:
    """All that a limited host has sent, as the limit counts it: each packet with its headers."""
    return json.loads(_tc("-n", host.name, "-s", "-j", "qdisc", "show", "dev", "eth0"))[0]["bytes"]


def congestion_control(host: Host) -> str:
    path = "/proc/sys/net/ipv4/tcp_congestion_control"
    return subprocess.run([*host.prefix, "cat", path], check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def traffic(pair: list[Host], rate: float | None = None) -> Iterator[list[subprocess.Popen]]:
    """A TCP transfer each way, of at most `rate` bytes a second. Returns the processes that receive."""
    processes = []

    def start(host: Host, *arguments: str) -> None:
        command = [*host.prefix, sys.executable, str(TRANSFER), *arguments]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))

    try:
        for host in pair:
            start(host, "receive", str(PORT))
        for host, other in zip(pair, reversed(pair)):
            start(host, "send", other.address, str(PORT), *([] if rate is None else [str(rate)]))
        for receiver in processes[: len(pair)]:
            receiver.stdout.readline()  # by now TCP has found its speed
        yield processes[: len(pair)]
        if any(p.poll() is not None for p in processes):
            raise RuntimeError("a transfer in the background ended by itself")
    finally:
        for process in reversed(processes):  # senders first: they would complain about a connection that ends
            process.kill()
            process.wait()
            process.stdout.close()


@dataclass(frozen=True)
class Bandwidth:
    """Bytes a second of the slower direction while both are in use."""

    payload: float  # what arrives
    wire: float  # the same as sent_bytes() counts it, with headers, and acknowledgements of the other direction


def bandwidth(pair: list[Host], seconds: int = 3) -> Bandwidth:
    with traffic(pair) as receivers:
        begin, before = time.monotonic(), [sent_bytes(host) for host in pair]
        payload = min(mean([float(r.stdout.readline()) for _ in range(seconds)]) for r in receivers)
        passed = time.monotonic() - begin
        return Bandwidth(payload, min(sent_bytes(host) - was for host, was in zip(pair, before)) / passed)
