"""A Slurm of a test's own: munge, a controller and two nodes on this machine, on free ports, with files in one folder."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ports import free_port

# Debian's names: package -> a command of it.
PACKAGES = {"munge": "munged", "slurmctld": "slurmctld", "slurmd": "slurmd", "slurm-client": "srun"}
PROCESSORS = 8  # of each, whatever this machine has
READY_S = 30
# Numbers of jobs decide which ports are taken: two clusters at a time must not begin with the same one.
MOST_JOBS = 60_000_000

CONFIG = """\
ClusterName=decent
SlurmctldHost=localhost({controller})
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CryptoType=crypto/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
PropagateResourceLimits=NONE
FirstJobId={first_job}
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str | None:
    """Why this process cannot make one; None if it can."""
    if os.geteuid() != 0:
        return "only root may start Slurm's daemons"
    missing = [package for package, command in PACKAGES.items() if not shutil.which(command, path=_path(os.environ))]
    return f"Debian packages are not installed: {' '.join(missing)}" if missing else None


def _path(variables: Mapping[str, str]) -> str:
    """Daemons are where only root looks for commands."""
    return f"{variables.get('PATH', '')}:/usr/sbin:/sbin"


@dataclass(frozen=True)
class Node:
    """Its name is its address, which leads to it without /etc/hosts; `prefix` starts a command there."""

    address: str
    prefix: tuple[str, ...] = ()


LOCAL_NODES = (Node("127.0.0.1"), Node("127.0.0.2"))


class Cluster:
    """The controller is on the first node, and so are its users; `variables` is the environment in which they work."""

    def __init__(self, folder: Path, variables: dict[str, str], nodes: Sequence[Node]) -> None:
        self.folder = folder
        self.nodes = nodes
        self.prefix = nodes[0].prefix
        self.config = folder / "slurm.conf"
        self.variables = {**variables, "SLURM_CONF": str(self.config), "PATH": _path(variables)}
        self._daemons: list[subprocess.Popen] = []

    def start(self) -> None:
        for name in ("state", *(f"spool.{node.address}" for node in self.nodes)):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        nodes = [f"NodeName={node.address} NodeHostname=localhost NodeAddr={node.address} Port={free_port()} CPUs={PROCESSORS}"
                 for node in self.nodes]
        self.config.write_text(CONFIG.format(folder=self.folder, controller=self.nodes[0].address, port=free_port(),
                                             nodes="\n".join(nodes),
                                             first_job=random.SystemRandom().randrange(1, MOST_JOBS)))
        # Without it slurmd looks for the kind that this machine has, and ends where a container shows none.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        self._daemon("munged", "--foreground", "--force", "--num-threads=2",
                     *(f"--{name}-file={self.folder}/munge.{name}" for name in ("key", "pid", "log", "seed")),
                     f"--socket={self.folder}/munge.socket")
        self._wait_for(lambda: (self.folder / "munge.socket").exists())
        self._daemon("slurmctld", "-D", "-c", prefix=self.prefix)
        for node in self.nodes:
            self._daemon("slurmd", "-D", "-N", node.address, prefix=node.prefix)
        self._wait_for(lambda: self.ask("sinfo", "--noheader", "--format=%D %t") == f"{len(self.nodes)} idle\n")

    def _daemon(self, *command: str, prefix: tuple[str, ...] = ()) -> None:
        with (self.folder / f"{len(self._daemons)}.{command[0]}").open("wb") as said:
            self._daemons.append(subprocess.Popen([*prefix, *command], env=self.variables, stdin=subprocess.DEVNULL, stdout=said,
                                                  stderr=said, start_new_session=True))

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_S
        while not condition():
            ended = [daemon.args[0] for daemon in self._daemons if daemon.poll() is not None]
            assert not ended and time.monotonic() < deadline, f"{ended or 'Slurm'} does not run:\n{self.said()}"
            time.sleep(0.05)

    def said(self) -> str:
        """By the daemons."""
        return "\n".join(f"== {path.name}\n{path.read_text(errors='replace')}" for path in self.folder.glob("[0-9].*"))

    def ask(self, *command: object) -> str:
        """What a command of Slurm's says; nothing if it fails."""
        return subprocess.run([*self.prefix, *map(str, command)], env=self.variables, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def tell(self, *command: object, cwd: Path | None = None) -> str:
        """What a command of Slurm's says; it must go well."""
        ended = subprocess.run([*self.prefix, *map(str, command)], env=self.variables, cwd=cwd, stdin=subprocess.DEVNULL,
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert ended.returncode == 0, f"{command}: {ended.stdout}\n{self.said()}"
        return ended.stdout

    def stop(self) -> None:
        """Whatever belongs to it: daemons, the steps that they started, and these' tasks."""
        for daemon in reversed(self._daemons):
            daemon.kill()
            daemon.wait()
        deadline = time.monotonic() + READY_S
        while (left := self._processes()) and time.monotonic() < deadline:
            for process in left:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.02)

    def _processes(self) -> list[int]:
        mark = f"SLURM_CONF={self.config}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found


@contextmanager
def cluster(folder: Path, variables: dict[str, str], nodes: Sequence[Node] = LOCAL_NODES) -> Iterator[Cluster]:
    """The folder's path must be short: the socket of munge lies in it."""
    made = Cluster(folder, variables, nodes)
    try:
        made.start()
        yield made
    finally:
        made.stop()
