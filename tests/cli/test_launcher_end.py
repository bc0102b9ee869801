"""torchrun that is killed: its workers stop with a checkpoint. Several programs in turn under one torchrun."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ports import free_port
from program import PROGRAM, TORCHRUN, environment, launcher_variables
from runs import Run, assert_same_run, merged, recipe, train, write_recipe

ROUNDS = int(os.environ.get("DECENT_LAUNCHER_ROUNDS", "2"))
TIMEOUT_S = 6
SETTINGS = recipe(train={"steps": 2000}, parallel={"topology": "ring", "timeout_s": TIMEOUT_S}, eval={"every_steps": 500},
                  checkpoint={"every_steps": 200, "keep": 2}, log={"every_steps": 100})


def processes_with(argument: Path, name: bytes = b"") -> list[int]:
    """Process ids, whoever their parent is by now."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            if arguments[0].endswith(name) and str(argument).encode() in arguments:
                found.append(int(entry.name))
    return found


def workers_of(config: Path) -> list[int]:
    return processes_with(config, b"/decent-train")


def wait_until(condition, seconds: float, said: Path) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, said.read_text()
        time.sleep(0.05)


@contextmanager
def under_torchrun(config: Path, *command: object, workers: int = 2) -> Iterator[subprocess.Popen]:
    """torchrun in a session of its own. Nothing is left of it."""
    with (config.parent / "said").open("w") as said:
        torchrun = subprocess.Popen([str(TORCHRUN), "--nproc-per-node", str(workers), *map(str, command)],
                                    stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=config.parent,
                                    env=environment(PET_MASTER_PORT=free_port()), start_new_session=True)
        try:
            yield torchrun
        finally:
            torchrun.kill()
            torchrun.wait()
            for process in workers_of(config):
                os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize("workers", [1, 2])
def test_torchrun_killed_at_random_moments(workers: int, tmp_path: Path) -> None:
    undisturbed = train(tmp_path / "whole", SETTINGS, workers=workers)
    seconds = max(ended.seconds for ended in undisturbed.ended)
    chance = random.Random(workers)
    for round_ in range(ROUNDS):
        config = write_recipe(tmp_path / str(round_), SETTINGS)
        said = config.parent / "said"
        with under_torchrun(config, PROGRAM, "--config", config, "--resume", "auto", workers=workers) as torchrun:
            wait_until(lambda: len(workers_of(config)) == workers, 60, said)
            time.sleep(chance.uniform(0, 1.1 * seconds))
            torchrun.kill()
            torchrun.wait()
            wait_until(lambda: not workers_of(config), TIMEOUT_S + 30, said)
        run = train(config.parent, SETTINGS, "--resume", "auto", workers=workers)
        assert_same_run(undisturbed, run)


def checkpoint_saved(run: Run) -> bool:
    return (run.folder / "checkpoints").exists() and bool(list((run.folder / "checkpoints").glob("step-*")))


ENDLESS = merged(SETTINGS, {"train": {"steps": 1_000_000}})


@pytest.mark.parametrize("script", [False, True], ids=["direct", "script"])
def test_torchrun_killed_in_the_middle(script: bool, tmp_path: Path) -> None:
    """Also where a script is between torchrun and the program. The last line says why, and what was saved."""
    config = write_recipe(tmp_path, ENDLESS)
    run = Run(tmp_path / "run", [])
    command: list[object] = [PROGRAM, "--config", config]
    if script:
        (tmp_path / "script.sh").write_text(f"#!/bin/sh\n{PROGRAM} --config {config}\necho \"exit $?\"\n")
        (tmp_path / "script.sh").chmod(0o755)
        command = ["--no-python", tmp_path / "script.sh"]
    with under_torchrun(config, *command) as torchrun:
        wait_until(lambda: checkpoint_saved(run), 60, tmp_path / "said")
        torchrun.kill()
        torchrun.wait()
        wait_until(lambda: not workers_of(config), 30, tmp_path / "said")
        text = (tmp_path / "said").read_text()
        stopped = re.search(r"decent-train: stopped after step (\d+) by the end of torchrun \(seen by worker [01]\). "
                            r"Saved '(.*)'; go on with --resume auto\n", text)
        assert stopped, text
        assert Path(stopped[2]) == run.checkpoint(int(stopped[1])) and run.checkpoint(int(stopped[1])).exists()
        if script:
            wait_until(lambda: (tmp_path / "said").read_text().count("exit 75\n") == 2, 10, tmp_path / "said")


def test_end_of_another_launcher_means_nothing(tmp_path: Path) -> None:
    """nohup, ssh, a daemon: the shell that started the workers is killed, they train on."""
    settings = merged(SETTINGS, {"train": {"steps": 1500}})
    config = write_recipe(tmp_path, settings)
    run = Run(tmp_path / "run", [])
    port = free_port()
    shells = [subprocess.Popen(["sh", "-c", f"{PROGRAM} --config {config} >said.{rank} 2>&1; true"], cwd=tmp_path,
                               stdin=subprocess.DEVNULL, env=environment(**launcher_variables(rank, 2, port)))
              for rank in range(2)]
    try:
        wait_until(lambda: checkpoint_saved(run), 60, tmp_path / "said.0")
        for shell in shells:
            shell.kill()
            shell.wait()
        wait_until(lambda: not workers_of(config), 120, tmp_path / "said.0")
    finally:
        for process in workers_of(config):
            os.kill(process, signal.SIGKILL)
    assert "done: 1500 updates" in (tmp_path / "said.0").read_text(), (tmp_path / "said.0").read_text()


def test_reading_command_ends_with_torchrun(tmp_path: Path) -> None:
    """--eval-only has nothing to save."""
    config = write_recipe(tmp_path, recipe(data={"eval_batch_size": 1}, parallel={"timeout_s": TIMEOUT_S}))
    script = tmp_path / "script.sh"
    command = f"{PROGRAM} --config {config} --eval-only --checkpoint none"
    script.write_text(f"#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9; do {command} || exit; done\n")
    script.chmod(0o755)
    with under_torchrun(config, "--no-python", script) as torchrun:
        wait_until(lambda: "eval at step 0" in (tmp_path / "said").read_text(), 60, tmp_path / "said")
        torchrun.kill()
        torchrun.wait()
        wait_until(lambda: not processes_with(script), TIMEOUT_S + 30, tmp_path / "said")
        assert not workers_of(config)


def test_three_programs_in_turn(tmp_path: Path) -> None:
    """The launcher's store keeps the keys of each. The second program loses a worker in the middle of training."""
    config = write_recipe(tmp_path, recipe(train={"steps": 8}, checkpoint={"every_steps": 4}))
    other = write_recipe(tmp_path / "other", merged(ENDLESS, {"output": str(tmp_path / "other" / "run")}))
    script = tmp_path / "script.sh"
    script.write_text(f"""#!/bin/bash
say() {{ echo "rank $RANK: $1 ended with $2"; }}
{PROGRAM} --config {config}; say first $?
if [ "$RANK" = 1 ]; then
  {PROGRAM} --config {other} &
  until [ -e {tmp_path}/other/run/metrics.jsonl ]; do sleep 0.05; done
  kill -KILL $!; wait $!; say second $?
else
  {PROGRAM} --config {other}; say second $?
fi
{PROGRAM} --config {config} --eval-only; say third $?
""")
    script.chmod(0o755)
    begin = time.monotonic()
    with under_torchrun(config, "--no-python", script) as torchrun:
        assert torchrun.wait(100) == 0, (tmp_path / "said").read_text()
    text = (tmp_path / "said").read_text()
    for rank, codes in ((0, [0, 3, 0]), (1, [0, 137, 0])):
        for name, code in zip(("first", "second", "third"), codes):
            assert f"rank {rank}: {name} ended with {code}\n" in text, text
    assert "eval at step 8: average of 2 models" in text
    assert time.monotonic() - begin < 60, text  # parallel.timeout_s, which one would wait for another in vain
