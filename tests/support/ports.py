"""TCP ports for the processes of one run to meet at."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """Below those that the system hands out (net.ipv4.ip_local_port_range): one of these could be given to another
    connection before it is used.
    """
    while True:
        port = random.SystemRandom().randrange(10000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
