"""Local SGD as a user of torchft would write it: every K-th step of the optimizer also averages the weights.

Each worker is a replica group of its own. torchft is in no file of requirements here: `pip install torchft`.
"""

from __future__ import annotations

import logging
import os
import socket
from datetime import timedelta

import torch

_kept = []  # objects that must live as long as the program


def _address(host: str, port: int) -> str:
    """The address of this machine, or network namespace, on the network that leads to a host."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((host, port))
        return s.getsockname()[0]


def start(model: torch.nn.Module, optimizer: torch.optim.Optimizer, rank: int, workers: int, every: int) -> None:
    """From here on the weights are averaged every so many steps of the optimizer."""
    from torchft import Manager, ProcessGroupGloo
    from torchft.coordination import LighthouseServer
    from torchft.local_sgd import LocalSGD

    logging.disable(logging.WARNING)  # it narrates
    master, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + 1
    if rank == 0:
        _kept.append(LighthouseServer(bind=f"[::]:{port}", min_replicas=workers, join_timeout_ms=60000))
    own = _address(master, port)
    store = torch.distributed.TCPStore(own, 0, is_master=True, wait_for_workers=False)
    limit = timedelta(minutes=10)  # over a slow link all weights take long
    manager = Manager(
        pg=ProcessGroupGloo(timeout=limit), load_state_dict=lambda state: None, state_dict=lambda: {},
        min_replica_size=workers, use_async_quorum=False, timeout=limit, quorum_timeout=limit, rank=0, world_size=1,
        store_addr=own, store_port=store.port, lighthouse_addr=f"http://{master}:{port}",
        replica_id=f"worker{rank}", hostname=own, init_sync=False)  # all have read the same weights
    averaging = LocalSGD(manager, model, optimizer, sync_every=every)
    averaging.__enter__()
    _kept.extend([store, manager, averaging])
