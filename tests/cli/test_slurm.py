"""docs/slurm.md under a Slurm of this test's own: srun without a wrapper, and a job that goes back to the queue."""

from __future__ import annotations

import os
import re
import shlex
import signal
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import hosts
import slurm_cluster
from pages import block
from program import PROGRAM, Ended, environment, run_commands
from runs import Run, assert_same_run, assert_says, merged, with_default_farewell, write_recipe
from slurm_cluster import LOCAL_NODES, Cluster, Node
from supervised import ENDLESS, SETTINGS, assert_stopped, assert_whole, parent_of, train_supervised, variables_of, wait_until

PAGE = "slurm.md"
REASON = slurm_cluster.why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
ONE_THREAD = {"OMP_NUM_THREADS": 1}  # what the page's job gives each task
ENDS_S = 20
# Long enough for something to be done to it.
LONG = merged(SETTINGS, {"train": {"steps": 1200}, "eval": {"every_steps": 400}})


@contextmanager
def slurm_on(nodes: Sequence[Node]) -> Iterator[Cluster]:
    """With decent-train, and Open MPI as mpirun, where its users look for commands."""
    with tempfile.TemporaryDirectory(prefix="slurm") as name:
        folder, commands = Path(name), Path(name, "commands")
        commands.mkdir()
        (commands / "decent-train").symlink_to(PROGRAM)
        if open_mpi := shutil.which("mpirun.openmpi"):
            (commands / "mpirun").symlink_to(open_mpi)
        variables = environment(TMPDIR=name, OMPI_ALLOW_RUN_AS_ROOT=1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
        variables["PATH"] = f"{commands}:{variables['PATH']}"
        with slurm_cluster.cluster(folder, variables, nodes) as made:
            yield made


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    """Its two nodes are this machine."""
    with slurm_on(LOCAL_NODES) as made:
        yield made


@pytest.fixture
def slurm_on_two_machines() -> Iterator[Cluster]:
    if reason := hosts.why_not():
        pytest.skip(reason)
    with hosts.hosts(2) as made:
        # Not `ip netns exec`, which hides control groups; slurmd wants to see them.
        nodes = [Node(host.address, ("nsenter", f"--net=/run/netns/{host.name}")) for host in made]
        with slurm_on(nodes) as cluster:
            yield cluster


def tasks_of(job: int) -> dict[int, int]:
    """Rank -> process id of each worker of a job that lives."""
    found = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, KeyError):
            if (entry / "comm").read_text() != "decent-train\n":
                continue
            variables = variables_of(int(entry.name))
            if variables["SLURM_JOB_ID"] == str(job):
                found[int(variables["SLURM_PROCID"])] = int(entry.name)
    return found


class Job:
    """A job script in a folder of its own, submitted: the page's, or another one, which needs flags."""

    def __init__(self, slurm: Cluster, folder: Path, settings: dict, script: str = block(PAGE, "job.sh"), *flags: str) -> None:
        self.slurm = slurm
        self.run = Run(folder / "run", [])
        write_recipe(folder, settings)
        (folder / "job.sh").write_text(script)
        command, file = block(PAGE, "sbatch").split()
        said = slurm.tell(command, *flags, file, cwd=folder)
        self.number = int(re.fullmatch(r"Submitted batch job (\d+)\n", said)[1])
        self._out = folder / "train.out"

    def said(self) -> str:
        return self._out.read_text(errors="replace") if self._out.exists() else f"no output; {self.shown()}"

    def shown(self) -> dict[str, str]:
        """What Slurm knows of it."""
        words = self.slurm.tell("scontrol", "show", "job", self.number).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def wait_for_state(self, state: str) -> None:
        wait_until(lambda: self.shown()["JobState"] == state, said=self.said)

    def wait_until_it_trains(self) -> None:
        """Until it has saved a checkpoint."""
        wait_until(lambda: self.run.checkpoints, said=self.said)


def assert_same_replicas(a: Run, b: Run, workers: int) -> None:
    """The workers' own weights and states of optimizers in the last checkpoint."""
    assert a.checkpoints == b.checkpoints
    for folder in (run.checkpoint(run.checkpoints[-1]) for run in (a, b)):
        assert len(list(folder.glob("rank-*"))) == workers, folder
    for file in a.checkpoint(a.checkpoints[-1]).glob("rank-*"):
        assert file.read_bytes() == (b.checkpoint(b.checkpoints[-1]) / file.name).read_bytes(), file.name


def run_line(slurm: Cluster, name: str, folder: Path) -> Ended:
    """A command of the page."""
    return run_commands([["bash", "-ec", block(PAGE, name)]], [slurm.variables], folder)[0]


# ---- srun ----------------------------------------------------------------------------------------------------------

def test_srun_is_the_same_run(slurm: Cluster, tmp_path: Path) -> None:
    """Bit for bit that of --workers."""
    folder = tmp_path / "srun"
    write_recipe(folder, SETTINGS)
    ended = run_line(slurm, "srun", folder)
    assert ended.code == 0 and "workers  4, " in ended.out, ended
    by_itself = train_supervised(tmp_path / "workers", SETTINGS, 4, **ONE_THREAD)
    assert_same_run(by_itself, Run(folder / "run", [ended]))


def test_two_machines(slurm_on_two_machines: Cluster, tmp_path: Path) -> None:
    """Of which one has two tasks; they meet at the first one's address. Also with the variables of PMI."""
    folder = tmp_path / "srun"
    config = write_recipe(folder, SETTINGS)
    command = [*slurm_on_two_machines.prefix, "srun", "--mpi=pmi2", "--nodes=2", "--ntasks=3", "decent-train", config]
    ended = run_commands([command], [slurm_on_two_machines.variables], folder)[0]
    assert ended.code == 0, ended
    assert_says(ended.out, "workers  3, ", "exchange by shared memory and gloo")
    by_itself = train_supervised(tmp_path / "workers", SETTINGS, 3, **ONE_THREAD)
    assert_same_replicas(by_itself, Run(folder / "run", [ended]), 3)  # their average is gloo's, and differs by rounding


def test_one_message_about_the_recipe(slurm: Cluster, tmp_path: Path) -> None:
    write_recipe(tmp_path, merged(SETTINGS, {"optimizer": {"lrr": 1}}))
    ended = run_line(slurm, "srun", tmp_path)
    assert ended.code == 2, ended
    assert_says(ended.err, "optimizer.lrr", "did you mean 'lr'?")
    assert ended.err.count("decent-train: error:") == 1, ended.err


def test_the_shell_of_a_terminal(slurm: Cluster, tmp_path: Path) -> None:
    """Its task is one of four, by variables; the ways out that the message names are ways out."""
    config = write_recipe(tmp_path, merged(SETTINGS, {"train": {"steps": 2}}))
    lines = [f"decent-train {config}", f"env -u SLURM_STEP_ID decent-train {config} --workers 2 --set output={tmp_path}/a",
             f"srun --overlap --ntasks=4 decent-train {config} --set output={tmp_path}/b"]
    shell = ["srun", "--ntasks=4", "--pty", "bash", "-ic", "; ".join(f"{line}; echo code $?" for line in lines)]
    command = ["script", "--quiet", "--command", shlex.join([*slurm.prefix, *shell]), "/dev/null"]
    ended = run_commands([command], [slurm.variables], tmp_path)[0]
    codes = re.findall(r"code (\d+)", ended.out)
    assert codes == ["2", "0", "0"], ended
    assert_says(ended.out, "SLURM_STEP_NUM_TASKS is 4 and SLURM_PROCID is 0", "srun --pty", "workers  2, ", "workers  4, ")


# ---- a job ---------------------------------------------------------------------------------------------------------

def test_job_that_goes_back_to_the_queue(slurm: Cluster, tmp_path: Path) -> None:
    """Told to stop by SIGUSR1: saves, is requeued, goes on, and ends with the undisturbed run's bits."""
    undisturbed = train_supervised(tmp_path / "undisturbed", LONG, 4, **ONE_THREAD)
    job = Job(slurm, tmp_path / "job", LONG)
    job.wait_until_it_trains()
    slurm.tell(*block(PAGE, "scancel").replace("JOB", str(job.number)).split())
    wait_until(lambda: "back to the queue" in job.said(), said=job.said)
    assert_stopped(job.said(), job.run, r"SIGUSR1 to worker \d")
    job.wait_for_state("PENDING")
    assert tasks_of(job.number) == {}
    stopped = job.run.lines("end")
    assert [line["status"] for line in stopped] == ["stopped"] and stopped[0]["step"] < LONG["train"]["steps"], stopped
    job.wait_for_state("COMPLETED")  # it starts again when Slurm's credentials of the first time have expired
    assert job.shown()["Restarts"] == "1" and "resuming from" in job.said(), job.said()
    assert_same_run(undisturbed, job.run)
    assert_same_replicas(undisturbed, job.run, 4)


def test_job_that_is_cancelled(slurm: Cluster, tmp_path: Path) -> None:
    """Saves, and stays out of the queue."""
    job = Job(slurm, tmp_path, ENDLESS)
    job.wait_until_it_trains()
    slurm.tell("scancel", job.number)
    wait_until(lambda: not tasks_of(job.number), ENDS_S, job.said)
    job.wait_for_state("CANCELLED")
    assert_stopped(job.said(), job.run, r"SIGTERM to worker \d")
    assert "back to the queue" not in job.said()


def test_job_that_loses_a_worker(slurm: Cluster, tmp_path: Path) -> None:
    """srun returns the greatest of the exit codes, and the script with it. The others save."""
    job = Job(slurm, tmp_path, with_default_farewell(ENDLESS))
    job.wait_until_it_trains()
    os.kill(tasks_of(job.number)[2], signal.SIGKILL)
    job.wait_for_state("FAILED")
    assert tasks_of(job.number) == {}
    assert job.shown()["ExitCode"] == f"{128 + signal.SIGKILL}:0"
    assert_says(job.said(), "error: lost worker 2", "The others have saved all steps")
    assert_whole(job.run)
    assert job.run.lines("end")[0]["step"] == job.run.checkpoints[-1]


def test_slurms_daemon_is_killed(slurm: Cluster, tmp_path: Path) -> None:
    """slurmstepd, which started the tasks, and would tell them to stop: they do so by themselves."""
    job = Job(slurm, tmp_path, ENDLESS)
    job.wait_until_it_trains()
    os.kill(parent_of(tasks_of(job.number)[0]), signal.SIGKILL)
    wait_until(lambda: not tasks_of(job.number), ENDS_S, job.said)
    assert_whole(job.run)
    end = job.run.lines("end")
    assert [line["status"] for line in end] == ["stopped"] and end[0]["step"] == job.run.checkpoints[-1], end


# ---- other launchers in a job --------------------------------------------------------------------------------------

@pytest.mark.parametrize(("line", "command"), [("mpirun in a job", "mpirun.openmpi"), ("mpiexec in a job", "mpiexec.hydra")])
def test_other_launchers(line: str, command: str, slurm: Cluster, tmp_path: Path) -> None:
    """They find the job's nodes, and their workers their variables rather than those of the step that they are in."""
    if not shutil.which(command):
        pytest.skip(f"the command {command} is not installed")
    script = f"#!/bin/bash\n{block(PAGE, line)}"
    job = Job(slurm, tmp_path, SETTINGS, script, "--nodes=2", "--ntasks=3", "--output=train.out")
    job.wait_for_state("COMPLETED")
    assert_says(job.said(), "workers  3, ")
    assert len(job.run.checkpoints) == SETTINGS["checkpoint"]["keep"]
