"""decent-train RECIPE --workers N: the same run as with a launcher, one message where something is wrong."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from digits_runs import check_all_well, check_completed
from ports import free_port
from program import PROGRAM, ROOT, environment, launcher_variables, run_commands, run_torchrun
from runs import DIGITS_MLP, assert_same_run, assert_says, error_message, merged, recipe, train, write_recipe
from supervised import ENDLESS, SETTINGS, Supervised, run_supervised, train_supervised, variables_of

DIGITS = ROOT / "configs" / "digits.yaml"
SHORT = recipe(train={"steps": 12}, checkpoint={"every_steps": 6}, parallel={"topology": "ring"})
CORES = sorted(os.sched_getaffinity(0))


def on_cores(count: int) -> list[object]:
    if len(CORES) < count:
        pytest.skip(f"needs {count} cores")
    return ["taskset", "-c", ",".join(map(str, CORES[:count]))]


# ---- the run -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("workers", [1, 2, 8])
def test_learns_the_digits(workers: int, tmp_path: Path) -> None:
    command = [PROGRAM, DIGITS, "--workers", workers, "--set", f"output={tmp_path}/run"]
    check_all_well(run_commands([command], [environment()], tmp_path))
    check_completed(tmp_path / "run", workers, accuracy=0.95)


@pytest.mark.parametrize(("workers", "cores", "threads"), [(1, 2, 2), (2, 2, 1), (8, 2, 1), (2, 1, 1)])
def test_same_run_as_by_hand(workers: int, cores: int, threads: int, tmp_path: Path) -> None:
    """Bit for bit, with the threads that a worker gets."""
    supervised = train_supervised(tmp_path / "supervised", SHORT, workers, prefix=on_cores(cores))
    by_hand = train(tmp_path / "by hand", SHORT, workers=workers, OMP_NUM_THREADS=threads)
    assert_same_run(supervised, by_hand)
    assert supervised.ended[0].err == "" and f"workers  {workers}, " in supervised.ended[0].out


@pytest.mark.parametrize(("workers", "cores", "given", "threads"), [
    (1, 1, {}, None), (2, 1, {}, "1"), (2, 2, {}, "1"), (3, 2, {}, "1"), (2, 2, {"OMP_NUM_THREADS": 3}, "3"),
    (1, 2, {"OMP_NUM_THREADS": 3}, "3")])
def test_threads_are_divided(workers: int, cores: int, given: dict, threads: str | None, tmp_path: Path) -> None:
    with Supervised(tmp_path, ENDLESS, workers, prefix=on_cores(cores), **given) as run:
        run.wait_for_workers()
        found = {rank: variables_of(process) for rank, process in run.living().items()}
        assert [found[rank].get("OMP_NUM_THREADS") for rank in range(workers)] == [threads] * workers
        assert len({found[rank]["MASTER_PORT"] for rank in found}) == 1


@pytest.fixture
def one_processors_time() -> Iterator[Path]:
    """A control group, of whichever version is mounted here."""
    name = f"decent-train-test-{os.getpid()}"
    old, new = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
    group = (old if old.is_dir() else new) / name
    try:
        group.mkdir()
        try:
            if old.is_dir():
                (group / "cpu.cfs_period_us").write_text("100000")
                (group / "cpu.cfs_quota_us").write_text("100000")
            else:
                (group / "cpu.max").write_text("100000 100000")
            yield group
        finally:
            group.rmdir()
    except OSError as error:
        pytest.skip(f"control groups cannot be made here: {error}")


@pytest.mark.parametrize("flags", [[], ["--workers", 1]])
@pytest.mark.parametrize(("given", "threads"), [({}, "1 thread,"), ({"OMP_NUM_THREADS": 2}, "2 threads,")])
def test_a_worker_has_a_thread_for_each_processor_of_its_quota(
        flags: list, given: dict, threads: str, one_processors_time: Path, tmp_path: Path) -> None:
    """Not for each processor of the machine, unless that is said."""
    on_cores(2)
    config = write_recipe(tmp_path, merged(SHORT, {"train": {"steps": 1}}))
    variables = environment(**given)
    if not given:
        del variables["OMP_NUM_THREADS"]
    line = shlex.join(map(str, [PROGRAM, config, *flags]))
    ended = run_commands([["bash", "-c", f"echo $$ > {one_processors_time}/cgroup.procs; exec {line}"]], [variables], tmp_path)[0]
    assert ended.code == 0 and f"workers  1, {threads}" in ended.out, ended


def test_five_runs_of_eight_workers_at_once(tmp_path: Path) -> None:
    """Each finds a port of its own."""
    configs = [write_recipe(tmp_path / str(i), merged(SHORT, {"train": {"steps": 2}})) for i in range(5)]
    commands = [[PROGRAM, config, "--workers", 8, "--quiet"] for config in configs]
    check_all_well(run_commands(commands, [environment()] * 5, tmp_path))


# ---- other commands ------------------------------------------------------------------------------------------------

def test_commands(tmp_path: Path) -> None:
    """One worker's output, whatever the command."""
    dry = run_supervised(tmp_path, SHORT, 2, "--dry-run")
    assert dry.code == 0 and dry.err == "" and dry.out.count("topology   ring of 2 workers") == 1, dry
    printed = run_supervised(tmp_path, SHORT, 2, "--print-config")
    assert printed.code == 0 and printed.err == "" and printed.out.count("\noptimizer:\n") == 1, printed
    told = run_supervised(tmp_path, SHORT, 2, "--help")
    assert told.code == 0 and told.err == "" and told.out.count("--workers N") == 1, told
    assert not (tmp_path / "run").exists()
    run = train_supervised(tmp_path, SHORT, 2, "--quiet")
    assert run.ended[0].out == run.ended[0].err == ""
    evaluated = run_supervised(tmp_path, SHORT, 2, "--eval-only")
    assert evaluated.code == 0 and evaluated.out.count("eval at step 12: average of 2 models") == 1, evaluated
    exported = run_supervised(tmp_path, SHORT, 2, "--export", tmp_path / "out.safetensors")
    assert exported.code == 0 and exported.out.count("exported") == 1, exported
    assert (tmp_path / "out.safetensors").read_bytes() == (run.folder / "model.safetensors").read_bytes()


# ---- mistakes ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("workers", [1, 2, 8])
def test_one_message_about_the_recipe(workers: int, tmp_path: Path) -> None:
    ended = run_supervised(tmp_path, merged(SHORT, {"optimizer": {"lrr": 1}}), workers)
    assert_says(error_message(ended), "optimizer.lrr", "did you mean 'lr'?")
    assert not (tmp_path / "run").exists()


def test_one_message_about_the_model(tmp_path: Path) -> None:
    ended = run_supervised(tmp_path, merged(SHORT, {"model": {"path": str(tmp_path / "none.pt")}}), 2)
    assert_says(error_message(ended), tmp_path / "none.pt", "does not exist")


def test_one_message_about_an_older_run(tmp_path: Path) -> None:
    train_supervised(tmp_path, SHORT, 2)
    assert_says(error_message(run_supervised(tmp_path, SHORT, 2)), tmp_path / "run", "already holds a run", "--resume auto")


def test_second_run_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    with Supervised(tmp_path, ENDLESS, 2) as run:
        run.wait_until_it_trains()
        ended = run_supervised(tmp_path, ENDLESS, 2, "--resume", "auto")
        holder = f"process {run.living()[0]} on '{socket.gethostname()}'"
        assert_says(error_message(ended), tmp_path / "run", "is in use by", holder)
        assert len(run.living()) == 2


def test_worker_that_diverges(tmp_path: Path) -> None:
    ended = run_supervised(tmp_path, merged(SHORT, {"optimizer": {"lr": 1e30}}), 2, "--quiet")
    assert_says(error_message(ended, 5), "training diverged")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_disk_that_is_full(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    mount = f"mount -t tmpfs -o size=400k none {tmp_path}/run"
    prefix = ["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh"]
    ended = run_supervised(tmp_path, merged(SETTINGS, {"model": {"path": str(DIGITS_MLP)}}), 2, "--quiet", prefix=prefix)
    assert_says(error_message(ended, 6), tmp_path / "run", os.strerror(28))


# ---- other launchers -----------------------------------------------------------------------------------------------

def test_under_another_launcher(tmp_path: Path) -> None:
    ended = run_supervised(tmp_path, SHORT, 2, **launcher_variables(0, 2, free_port()))
    assert_says(error_message(ended), "--workers", "started by the launcher, for 2 workers in all")
    assert not (tmp_path / "run").exists()


def test_under_torchrun(tmp_path: Path) -> None:
    """Also where that starts a single worker."""
    config = write_recipe(tmp_path, SHORT)
    ended = run_torchrun("--nproc-per-node", 1, PROGRAM, config, "--workers", 2, cwd=tmp_path)
    assert ended.code == 1
    assert_says(ended.err, "started by torchrun, for 1 worker in all", "exitcode  : 2")
    assert not (tmp_path / "run").exists()


def test_summary_of_torchrun(tmp_path: Path) -> None:
    """Our message and exit code for each worker, rather than torchrun's advice."""
    config = write_recipe(tmp_path, merged(SHORT, {"optimizer": {"lr": 1e30}}))
    ended = run_torchrun("--nproc-per-node", 2, PROGRAM, config, cwd=tmp_path)
    summary = ended.err[ended.err.index("Failures:"):]
    assert summary.count("exitcode  : 5") == 2 and summary.count("training diverged") == 2, ended.err
    assert "To enable traceback" not in ended.err
    assert ended.err.count("decent-train: error:") == 1
