"""--workers in surroundings that a program must not count on: variables, folders, streams, limits, its own file."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from digits_runs import check_all_well
from ports import free_port
from program import PROGRAM, run_commands
from runs import DIGITS_MLP, Run, assert_same_run, assert_says, error_message, merged, recipe, train, write_recipe
from supervised import ENDLESS, SETTINGS, Supervised, surroundings, train_supervised

SHORT = recipe(train={"steps": 12}, checkpoint={"every_steps": 6}, parallel={"topology": "ring"})
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def in_shell(script: str, folder: Path, *flags: object, **variables: object) -> tuple[int, str, str]:
    """The command line of a run, as "$@" of a script; its exit code, standard output and standard error."""
    config = write_recipe(folder, SHORT)
    command = ["bash", "-c", script, "bash", PROGRAM, config, "--workers", 2, *flags]
    ended = run_commands([command], [surroundings(**variables)], folder)[0]
    return ended.code, ended.out, ended.err


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("usual"), SHORT, workers=2)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Which anybody may read, unlike pytest's folders."""
    if os.geteuid() != 0:
        pytest.skip("only root may become someone else")
    if subprocess.run([*NOBODY, "test", "-x", PROGRAM, "-a", "-r", DIGITS_MLP]).returncode:
        pytest.skip(f"nobody may run {PROGRAM} on {DIGITS_MLP}")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


# ---- variables -----------------------------------------------------------------------------------------------------

def test_empty_environment(usual: Run, tmp_path: Path) -> None:
    """No HOME, no PATH, no TMPDIR. No GPU, whose results would differ."""
    assert_same_run(train_supervised(tmp_path, SHORT, 2, prefix=["env", "-i", "CUDA_VISIBLE_DEVICES="]), usual)


@pytest.mark.parametrize("setting", [["env", "--ignore-signal=CHLD"], ["env", "--ignore-signal=INT,HUP,PIPE"],
                                     ["env", "--block-signal=TERM,INT,CHLD,USR1"]], ids=["chld", "ignored", "blocked"])
def test_signals_that_were_ignored_or_blocked(setting: list[str], tmp_path: Path) -> None:
    """As whoever starts the program may leave them behind."""
    with Supervised(tmp_path / "whole", SHORT, 2, prefix=setting) as run:
        assert run.wait(30) == 0, run.said()
    with Supervised(tmp_path / "stopped", ENDLESS, 2, prefix=setting) as run:
        run.wait_until_it_trains()
        run.process.send_signal(signal.SIGTERM)
        assert run.wait(10) == 75, run.said()


# ---- streams -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("closed", ["<&- >&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str, usual: Run, tmp_path: Path) -> None:
    """No file of the run takes the place of a stream."""
    code, _, err = in_shell(f'"$@" {closed}', tmp_path)
    assert (code, err) == (0, "")
    assert_same_run(Run(tmp_path / "run", []), usual)
    said = {"run.log", "run.json", "report.html"}  # have the start lines by right
    for file in (tmp_path / "run").rglob("*"):
        if file.is_file() and file.name not in said:
            assert b"exchange by" not in file.read_bytes(), file


def test_closed_streams_of_a_mistake(tmp_path: Path) -> None:
    code, out, err = in_shell('"$@" <&- >&- 2>&-', tmp_path, "--set", "optimizer.lrr=1")
    assert (code, out, err) == (2, "", "")


def test_reader_that_goes(tmp_path: Path) -> None:
    code, out, err = in_shell('"$@" | head -n 1; exit ${PIPESTATUS[0]}', tmp_path)
    assert code in (0, 6) and len(out.splitlines()) == 1, (code, out, err)
    assert err.count("decent-train: error:") == (1 if code else 0), err
    assert Run(tmp_path / "run", []).checkpoints == [6, 12]


def test_output_of_other_commands_that_cannot_be_written(tmp_path: Path) -> None:
    for flag in ("--dry-run", "--print-config", "--help"):
        code, _, err = in_shell('"$@" > /dev/full', tmp_path, flag)
        assert code == 6 and err.count("decent-train: error:") == 1 and "No space left" in err, (flag, code, err)


# ---- limits --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("limit", ["-n 40", "-Sn 16"], ids=["enough", "soft"])
def test_enough_descriptors(limit: str, tmp_path: Path) -> None:
    """A soft limit is the program's own to raise."""
    code, _, err = in_shell(f'ulimit {limit} && "$@"', tmp_path)
    assert (code, err) == (0, "")


@pytest.mark.parametrize("limit", [5, 10, 14, 16, 18, 20, 22, 24])
def test_few_descriptors(limit: int, tmp_path: Path) -> None:
    """Before anything is tried: each of these ran out of them at another place."""
    code, _, err = in_shell(f'ulimit -n {limit} && "$@"', tmp_path)
    assert code == 2 and err.count("decent-train: error:") == 1 and "MASTER_PORT" not in err, err
    assert_says(err, "too few open files", "2 workers", f"the limit is {limit}.", "ulimit -n 1024")
    assert not (tmp_path / "run").exists()


def test_few_descriptors_without_a_supervisor(tmp_path: Path) -> None:
    config = write_recipe(tmp_path, SHORT)
    limited = ["bash", "-c", 'ulimit -n 16 && exec "$@"', "bash", PROGRAM, config]
    port = free_port()
    places = [{"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1",
               "MASTER_PORT": port} for rank in range(2)]
    for ended in run_commands([limited] * 2, [surroundings(**place) for place in places], tmp_path):
        assert ended.code == 2, ended
        assert_says(ended.err, "too few open files", "the limit is 16.")


def test_no_more_processes(open_folder: Path) -> None:
    """ulimit -u counts all of a user's processes; nobody's are few."""
    config = write_recipe(open_folder / "recipe", SHORT)
    command = ["bash", "-c", 'ulimit -u 3 && exec "$@"', "bash", *NOBODY, PROGRAM, config, "--workers", 8]
    ended = run_commands([command], [surroundings()], open_folder)[0]
    assert_says(error_message(ended), "cannot start 8 workers", "Resource temporarily unavailable")


# ---- folders and files ---------------------------------------------------------------------------------------------

def test_working_folder_that_cannot_be_written(open_folder: Path) -> None:
    """One message where the output is to be there; nothing is needed of it where the output is elsewhere."""
    config = write_recipe(open_folder / "own", merged(SHORT, {"output": "runs/here"}))
    command = [*NOBODY, PROGRAM, config, "--workers", 2, "--quiet"]
    ended = run_commands([command], [surroundings()], config.parent)[0]
    assert_says(error_message(ended, 6), "runs/here", os.strerror(13))
    elsewhere = open_folder / "elsewhere"
    elsewhere.mkdir()
    elsewhere.chmod(0o777)
    check_all_well(run_commands([[*command, "--set", f"output={elsewhere}/run"]], [surroundings()], config.parent))


def copied_program(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return Path(shutil.copy2(PROGRAM, folder / PROGRAM.name))


def test_program_whose_path_has_spaces(tmp_path: Path) -> None:
    program = copied_program(tmp_path / "my program's \"folder\"")
    config = write_recipe(tmp_path / "my recipe = 1", SHORT)
    check_all_well(run_commands([[program, config, "--workers", 2]], [surroundings()], tmp_path))


@pytest.mark.parametrize("how", ["link", "relative", "by PATH"])
def test_other_names_of_the_program(how: str, tmp_path: Path) -> None:
    config = write_recipe(tmp_path, SHORT)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dtrain").symlink_to(PROGRAM)
    name = {"link": tmp_path / "bin" / "dtrain", "relative": "bin/dtrain", "by PATH": "dtrain"}[how]
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    check_all_well(run_commands([["env", name, config, "--workers", 2]], [surroundings(PATH=path)], tmp_path))


def test_program_that_is_replaced_while_it_runs(tmp_path: Path) -> None:
    """By a rebuild, which gives another file that name: a restart runs that."""
    program = copied_program(tmp_path / "bin")
    with Supervised(tmp_path, merged(SETTINGS, {"train": {"steps": 2000}}), 2, "--max-restarts", 1, program=program) as run:
        run.wait_until_it_trains()
        program.unlink()
        copied_program(tmp_path / "new").rename(program)
        os.kill(run.living()[1], signal.SIGKILL)
        assert run.wait(60) == 0, run.said()
        assert "starting all workers again, 1 of 1 times" in run.said() and "resuming from" in run.said()


def test_program_that_is_gone(tmp_path: Path) -> None:
    """One message, for all workers that cannot be started again."""
    program = copied_program(tmp_path / "bin")
    with Supervised(tmp_path, ENDLESS, 2, "--max-restarts", 1, program=program) as run:
        run.wait_until_it_trains()
        program.unlink()
        os.kill(run.living()[1], signal.SIGKILL)
        assert run.wait(60) == 2, run.said()
        assert len([line for line in run.errors if "cannot start" in line]) == 1, run.said()
