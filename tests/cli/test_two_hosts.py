"""Two machines of two workers each: network namespaces joined by a bridge."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

import hosts
from ports import free_port
from program import PROGRAM, ROOT, TORCHRUN, Ended, environment, launcher_variables, run_commands

CONFIG = ROOT / "configs" / "digits.yaml"
REASON = hosts.why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


@pytest.fixture
def two_hosts():
    with hosts.hosts(2) as made:
        yield made


def run_on(made: list[hosts.Host], folder: Path, *flags: str, masters: tuple[str, str] | None = None,
           **variables: object) -> list[Ended]:
    """Four workers, two on each host; masters: MASTER_ADDR as each host calls the first one."""
    masters = masters or (made[0].address,) * 2
    port = free_port()
    commands, environments = [], []
    for rank in range(4):
        commands.append([*made[rank // 2].prefix, PROGRAM, "--config", CONFIG, "--set", f"output={folder / 'run'}",
                         *flags])
        own = {**launcher_variables(rank, 4, port, local=2), "MASTER_ADDR": masters[rank // 2], **variables}
        environments.append(environment(**own))
    return run_commands(commands, environments, folder)


def accuracy_of(folder: Path) -> float:
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "eval"][-1]["accuracy"]


def check_well(ended: list[Ended], folder: Path) -> None:
    assert [e.code for e in ended] == [0] * len(ended), "\n".join(e.err + e.out for e in ended)
    assert accuracy_of(folder) >= 0.96  # as on one machine (test_launch.py)


def test_address_comes_from_the_route_to_the_store(two_hosts, tmp_path: Path) -> None:
    """Nothing but the launcher's variables; the machine's own name is of no use in a namespace."""
    check_well(run_on(two_hosts, tmp_path, "--set", "parallel.topology=alternating-exp-ring"), tmp_path)


def test_workers_tell_each_other_which_host_they_are_on(two_hosts, tmp_path: Path) -> None:
    """Without LOCAL_RANK and LOCAL_WORLD_SIZE, which this topology needs."""
    port = free_port()
    command = [PROGRAM, "--config", CONFIG, "--set", f"output={tmp_path / 'run'}", "--set", "parallel.topology=alternating-exp-ring"]
    environments = []
    for rank in range(4):
        told = {**launcher_variables(rank, 4, port), "MASTER_ADDR": two_hosts[0].address}
        environments.append(environment(**{name: value for name, value in told.items() if not name.startswith("LOCAL_")}))
    ended = run_commands([[*two_hosts[rank // 2].prefix, *command] for rank in range(4)], environments, tmp_path)
    check_well(ended, tmp_path)
    assert "exchange by shared memory and gloo" in ended[0].out


def test_interface_is_chosen(two_hosts, tmp_path: Path) -> None:
    ended = run_on(two_hosts, tmp_path, masters=("127.0.0.1", two_hosts[0].address), GLOO_SOCKET_IFNAME="eth0")
    check_well(ended, tmp_path)


def test_loopback_name(two_hosts, tmp_path: Path) -> None:
    """On the first host MASTER_ADDR is a loopback address, as Debian's /etc/hosts has it."""
    ended = run_on(two_hosts, tmp_path, masters=("127.0.0.1", two_hosts[0].address))
    text = "\n".join(e.err for e in ended)
    assert [e.code for e in ended] == [2] * 4, text
    assert text.count("decent-train: error:") == 1, text
    for part in ("MASTER_ADDR", "loopback", "GLOO_SOCKET_IFNAME", f"eth0 ({two_hosts[0].address})"):
        assert part in text, text
    assert not (tmp_path / "run").exists()


def test_torchrun_on_both(two_hosts, tmp_path: Path) -> None:
    port = free_port()
    commands = [[*host.prefix, TORCHRUN, "--nnodes", "2", "--node-rank", node, "--nproc-per-node", "2",
                 "--master-addr", two_hosts[0].address, "--master-port", port, PROGRAM, "--config", CONFIG,
                 "--set", f"output={tmp_path / 'run'}"] for node, host in enumerate(two_hosts)]
    check_well(run_commands(commands, [environment()] * 2, tmp_path), tmp_path)


@pytest.mark.parametrize("pulled", [0, 1])
def test_cable_is_pulled(two_hosts, pulled: int, tmp_path: Path) -> None:
    """Nothing closes a connection: silence tells. Each side gives up the other."""
    port = free_port()
    flags = ["--set", f"output={tmp_path / 'run'}", "--set", "train.steps=1000000", "--set", "parallel.timeout_s=3"]
    errs = [(tmp_path / f"{rank}.err").open("w+") for rank in range(4)]
    processes = []
    try:
        for rank in range(4):
            own = {**launcher_variables(rank, 4, port, local=2), "MASTER_ADDR": two_hosts[0].address}
            processes.append(subprocess.Popen([*two_hosts[rank // 2].prefix, PROGRAM, "--config", CONFIG, *flags],
                                              env=environment(**own), stdin=subprocess.DEVNULL,
                                              stdout=subprocess.DEVNULL, stderr=errs[rank]))
        metrics = tmp_path / "run" / "metrics.jsonl"
        deadline = time.monotonic() + 60
        while not (metrics.exists() and metrics.stat().st_size):
            assert time.monotonic() < deadline and all(p.poll() is None for p in processes)
            time.sleep(0.02)
        two_hosts[pulled].set_link("down")
        begin = time.monotonic()
        assert [p.wait(20) for p in processes] == [3] * 4
        assert time.monotonic() - begin < 3 + 2
        said = [Path(file.name).read_text() for file in errs]
        for side in (0, 1):
            text = "".join(said[2 * side : 2 * side + 2])
            lost = re.findall(r"error: lost worker (\d)", text)
            assert len(lost) == 1 and int(lost[0]) // 2 == 1 - side, said
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
