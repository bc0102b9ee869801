"""Several GPUs, made of host memory (tests/fake_gpu): who gets which, what connects them, and what happens if it cannot."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

import hosts
import runs
from gpus import FAKE_WHY_NOT, fake_gpus
from program import PROGRAM, Ended, environment, free_port, launcher_variables, run_commands
from runs import DIGITS_MLP, Run, assert_same_run, assert_says, merged, recipe, write_recipe

pytestmark = pytest.mark.skipif(FAKE_WHY_NOT is not None, reason=str(FAKE_WHY_NOT))

SHORT = recipe(DIGITS_MLP, model={"device": "cuda"}, eval={"every_steps": 6}, parallel={"bucket_mb": 0.02})


def attempt(folder: Path, recipe: dict, *flags: object, gpus: list[dict[str, str]], limit_s: float = 60,
            **variables: object) -> list[Ended]:
    """A worker for each of `gpus`, the GPUs that it sees."""
    begin = time.monotonic()
    ended = runs.attempt(folder, recipe, *flags, workers=len(gpus), own=gpus, **variables)
    assert time.monotonic() - begin < limit_s
    return ended


def train(folder: Path, recipe: dict, gpus: list[dict[str, str]], **variables: object) -> Run:
    return runs.train(folder, recipe, workers=len(gpus), own=gpus, **variables)


def message(ended: list[Ended], code: int) -> str:
    assert [e.code for e in ended] == [code] * len(ended), ended
    return "".join(e.err for e in ended)


def seen(*numbers: float) -> dict[str, str]:
    return fake_gpus() | {"CUDA_VISIBLE_DEVICES": ",".join(map(str, numbers))}


@pytest.mark.parametrize("backend", ["auto", "nccl", "gloo"])
def test_a_gpu_each(backend: str, tmp_path: Path) -> None:
    """No thread may touch a GPU that its process has not chosen: the fake refuses that, a GPU makes a context of it."""
    run = train(tmp_path, merged(SHORT, {"parallel": {"backend": backend}, "log": {"trace": [3, 5]}}), [fake_gpus(2)] * 2)
    assert f"exchange by {'gloo' if backend == 'gloo' else 'nccl'}" in run.ended[0].out


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_a_launcher_that_shows_each_worker_its_own(device: str, tmp_path: Path) -> None:
    """As Slurm does with --gpus-per-task, and containers do."""
    run = train(tmp_path, merged(SHORT, {"model": {"device": device}}), [seen(3), seen(5), seen(6)])
    assert "device   cuda (host memory), exchange by nccl" in run.ended[0].out


def test_one_gpu_that_all_workers_see_is_not_their_own(tmp_path: Path) -> None:
    told = message(attempt(tmp_path, SHORT, gpus=[seen(3), seen(3)]), 2)
    assert_says(told, "there is 1 GPU for 2 workers", "NCCL_HOSTID")
    run = train(tmp_path / "auto", merged(SHORT, {"model": {"device": "auto"}}), [seen(3), seen(3)])
    assert "device   cpu" in run.ended[0].out


def test_parts_of_one_gpu_are_not_for_nccl(tmp_path: Path) -> None:
    """As MIG makes them: NCCL refuses a GPU that it sees twice, and looks at the place on the bus."""
    parts = [seen(3.0), seen(3.1)]
    run = train(tmp_path, SHORT, parts)
    assert "device   cuda (host memory), exchange by gloo" in run.ended[0].out
    by_nccl = merged(SHORT, {"parallel": {"backend": "nccl"}})
    told = message(attempt(tmp_path / "nccl", by_nccl, gpus=parts), 2)
    assert told.count("error:") == 1
    assert_says(told, "parts of one GPU (MIG)", "backend gloo", "NCCL_HOSTID")
    named = [{**part, "NCCL_HOSTID": f"host{rank}"} for rank, part in enumerate(parts)]
    run = train(tmp_path / "named", by_nccl, named)
    assert "exchange by nccl" in run.ended[0].out


@pytest.mark.parametrize("rank", [0, 1])
def test_a_worker_that_cannot_connect_ends_all(rank: int, tmp_path: Path) -> None:
    """NCCL would wait for it for ever."""
    told = message(attempt(tmp_path, SHORT, gpus=[fake_gpus(3, DECENT_FAKE_NCCL=f"fails:{rank}")] * 3, limit_s=30), 3)
    assert told.count("error:") == 1
    assert_says(told, f"rank {rank}: cannot connect the GPUs by NCCL")


def test_a_worker_that_never_connects_is_waited_for_so_long(tmp_path: Path) -> None:
    begin = time.monotonic()
    told = message(attempt(tmp_path, merged(SHORT, {"parallel": {"timeout_s": 4}}), limit_s=30,
                           gpus=[fake_gpus(2, DECENT_FAKE_NCCL="hangs:0")] * 2), 3)
    assert time.monotonic() - begin > 4
    assert_says(told, "NCCL has not connected", "4 s (parallel.timeout_s)", "NCCL_SOCKET_IFNAME, here '=lo'", "NCCL_DEBUG")


def test_a_failed_connection_is_worth_another_start(tmp_path: Path) -> None:
    """Of --max-restarts: a lost connection may come back, a GPU that is too small does not grow."""
    command = [PROGRAM, "--config", write_recipe(tmp_path, SHORT), "--workers", 2, "--max-restarts", 1]
    fails = environment(**fake_gpus(2, DECENT_FAKE_NCCL="fails:1"))
    small = environment(**fake_gpus(2, DECENT_FAKE_GPU_MB="0.03"))
    ended = run_commands([command], [fails], tmp_path)[0]
    assert ended.code == 3 and "starting all workers again" in ended.err + ended.out
    ended = run_commands([command], [small], tmp_path)[0]
    assert ended.code == 2 and "starting all workers again" not in ended.err + ended.out
    assert_says(ended.err, "out of memory", "data.batch_size")


@pytest.mark.skipif(hosts.why_not() is not None, reason=str(hosts.why_not()))
@pytest.mark.parametrize(("workers", "variables", "told", "parallel"), [
    ((2, 2), {}, "nccl and gloo", {}), ((2, 1), {}, "nccl and gloo", {"topology": "complete"}), ((1, 1), {}, "gloo", {}),
    ((2, 2), {"NCCL_NET": "fast"}, "nccl", {}), ((2, 2), {"NCCL_NET": "Socket"}, "nccl and gloo", {}),
    ((2, 2), {}, "nccl and gloo", {"comm_dtype": "modulo2", "comm_dtype_within": "fp32"})])
def test_the_network_between_machines_decides(workers: tuple, variables: dict, told: str, parallel: dict, tmp_path: Path) -> None:
    """Sums of two numbers have one order, and larger ones over both machines are gloo's: the same bits whatever carries them."""
    own = merged(SHORT, {"parallel": {"topology": "one-peer-exp", **parallel}})
    with hosts.hosts(2) as made:
        def run(name: str, changes: dict, **more: object) -> list[Ended]:
            config = write_recipe(tmp_path / name, merged(own, changes))
            port = free_port()
            ranks = itertools.count()
            commands, environments = [], []
            for host, here in zip(made, workers):
                for local in range(here):
                    commands.append([*host.prefix, str(PROGRAM), "--config", str(config)])
                    environments.append(environment(**fake_gpus(here), **more, **{
                        **launcher_variables(next(ranks), sum(workers), port, local=here),
                        "LOCAL_RANK": local, "MASTER_ADDR": made[0].address}))
            return run_commands(commands, environments, tmp_path / name)

        of = {}
        for name, changes, more in (("auto", {}, variables), ("gloo", {"parallel": {"backend": "gloo"}}, {})):
            ended = run(name, changes, **more)
            assert [e.code for e in ended] == [0] * sum(workers), "\n".join(e.err + e.out for e in ended)
            of[name] = Run(tmp_path / name / "run", ended)
    assert f"device   cuda (host memory), exchange by {told}" in of["auto"].ended[0].out.splitlines()
    assert_same_run(of["auto"], of["gloo"])
