"""tools/cluster without a network: what it starts, when it starts again, and with what it ends. Folders are the machines, and a
shell script is decent-train.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from program import ROOT, environment

CLUSTER = ROOT / "tools" / "cluster"
# The machine's command, by another shell than the script's. A machine that is down does not answer.
SSH = """#!/bin/bash
while [[ $1 == -* ]]; do [[ $1 == -o ]] && shift; shift; done
cd "$(dirname "$0")/$1" || exit 255
if [ -e down ]; then echo "ssh: connect to host $1: timed out" >&2; exit 255; fi
exec sh -c "$2"
"""
# A worker begins with a file, begun-START-RANK, which has its flags.
PROGRAM = """#!/bin/bash
if [[ "${*: -1}" == --print-config ]]; then
  if [ -e unfit ]; then echo "decent-train: error: no such recipe" >&2; exit 2; fi
  printf 'name: x\\noutput: runs/x\\nparallel:\\n  timeout_s: 2\\n  farewell_s: 1\\n'
  exit
fi
read -r _ start _ <<< "$DECENT_CLUSTER"
machine=${PWD##*/}
printf '%s\\n' "$WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT" "$@" > "begun-$start-$RANK"
save() { mkdir -p "runs/x/checkpoints/step-$start"; echo $RANK >> "runs/x/checkpoints/step-$start/manifest.json"; }
train() {
  trap 'save; exit 75' TERM USR1
  touch "trains-$start-$RANK"
  for ((i = 0; i < 1200; ++i)); do sleep 0.05; done
}
# As the program does, it saves to the end when it is told to stop meanwhile, which happens a second after a loss.
others() { trap '' TERM; for ((i = 0; i < 20; ++i)); do sleep 0.05; done; save; exit 3; }
"""


class Cluster:
    """Machines a, b, .. with a worker each, and a run of tools/cluster on them."""

    def __init__(self, folder: Path, names: str, script: str) -> None:
        self.folder, self.names = folder, names
        for name in names:
            (folder / name).mkdir()
        for path, text in (("ssh", SSH), ("program", PROGRAM + script)):
            (folder / path).write_text(text)
            (folder / path).chmod(0o755)
        (folder / "hosts").write_text("".join(f"{name}\n" for name in names))
        self.processes: list[subprocess.Popen] = []

    def start(self, *flags: str, options: tuple[str, ...] = (), out: str = "out") -> subprocess.Popen:
        command = [CLUSTER, "--ssh", self.folder / "ssh", "--folder", ".", "--program", self.folder / "program", *options,
                   "hosts", "--", "recipe.yaml", *flags]
        with (self.folder / out).open("w") as said:
            process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=said,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       env=environment(TMPDIR=self.folder, XDG_RUNTIME_DIR=self.folder))
        self.processes.append(process)
        return process

    def run(self, *flags: str, options: tuple[str, ...] = ()) -> int:
        return self.start(*flags, options=options).wait(60)

    def said(self, out: str = "out") -> str:
        return (self.folder / out).read_text()

    def log(self) -> list[str]:
        """Its lines without times and ports."""
        lines = re.findall(r"^cluster: \d\d:\d\d:\d\d (.*)$", self.said(), re.M)
        return [re.sub(r"after \d+ s", "after N s", line) for line in lines]

    def begun(self, machine: str) -> dict[str, list[str]]:
        """"START-RANK" -> the worker's place, and its flags."""
        files = sorted((self.folder / machine).glob("begun-*"))
        return {file.name.removeprefix("begun-"): file.read_text().splitlines() for file in files}

    def wait_for(self, name: str) -> None:
        deadline = time.monotonic() + 30
        while not list(self.folder.glob(f"*/{name}")):
            assert time.monotonic() < deadline and self.processes[0].poll() is None, self.said()
            time.sleep(0.02)

    def workers(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                if str(self.folder / "program").encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator:
    made: list[Cluster] = []

    def make(names: str, script: str) -> Cluster:
        made.append(Cluster(tmp_path, names, script))
        return made[0]

    yield make
    for one in made:
        for process in one.processes:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
            process.wait()
        for process in one.workers():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


# ---- what workers are given ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("flags", [[], ["--set", "train.epochs=40"],
                                   ["--set", "data.eval={format: csv, path: a b.csv}", "--set", "name=it's \"so\"", "--quiet",
                                    "*", "$HOME", "`id`", ""]])
def test_flags_arrive_as_they_are_given(flags: list[str], cluster) -> None:
    made = cluster("ab", "exit 0")
    assert made.run(*flags) == 0, made.said()
    for rank, machine in enumerate("ab"):
        assert made.begun(machine) == {f"1-{rank}": ["2 0 1 a 29500", "recipe.yaml", *flags]}
    assert made.log() == ["start 1: 2 of 2 machines, a, b; the store is at a:29500",
                          "start 1 ended after N s (a 0, b 0): done. Ends with exit code 0"]


def test_places_and_addresses(cluster) -> None:
    made = cluster("abc", 'echo "$OMP_NUM_THREADS $OWN" > threads')
    (made.folder / "hosts").write_text("# the first has another name\n\na 1 10.0.0.1\nb 2 # two\n c")
    assert made.run(options=("--port", "4000", "--env", "OWN=it's so", "--env", "OMP_NUM_THREADS=7")) == 0, made.said()
    assert {place: lines[0] for machine in "abc" for place, lines in made.begun(machine).items()} == {
        "1-0": "4 0 1 10.0.0.1 4000", "1-1": "4 0 2 10.0.0.1 4000", "1-2": "4 1 2 10.0.0.1 4000", "1-3": "4 0 1 10.0.0.1 4000"}
    assert (made.folder / "b" / "threads").read_text() == "7 it's so\n"


def test_resume_from_the_second_start_on(cluster) -> None:
    made = cluster("ab", "if [ $start = 1 ]; then save; exit 3; fi")
    assert made.run("--quiet") == 0, made.said()
    assert made.begun("b") == {"1-1": ["2 0 1 a 29500", "recipe.yaml", "--quiet"],
                               "2-1": ["2 0 1 a 29501", "recipe.yaml", "--quiet", "--resume", "auto"]}


@pytest.mark.parametrize(("saves", "second"), [("save", "auto"), ("true", "old run")])
def test_resume_from_another_folder(saves: str, second: str, cluster) -> None:
    """Until something is saved, there is nothing of its own to go on from."""
    made = cluster("ab", f"if [ $start = 1 ]; then {saves}; exit 3; fi")
    assert made.run("--resume=old run", "--quiet") == 0, made.said()
    assert made.begun("a")["1-0"][1:] == ["recipe.yaml", "--quiet", "--resume", "old run"]
    assert made.begun("a")["2-0"][1:] == ["recipe.yaml", "--quiet", "--resume", second]


# ---- how it ends -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("code", [0, 2, 4, 5, 6, 75])
def test_ends_with_the_code_of_the_program(code: int, cluster) -> None:
    made = cluster("ab", f"exit {code}")
    assert made.run() == code
    assert made.log()[-1].startswith(f"start 1 ended after N s (a {code}, b {code}): "), made.said()
    assert made.log()[-1].endswith(f". Ends with exit code {code}")


def test_an_error_outranks_what_it_does_to_others(cluster) -> None:
    made = cluster("abc", "if [ $machine = b ]; then exit 6; fi; exit 3")
    assert made.run() == 6, made.said()


def test_a_command_that_only_reads_runs_once(cluster) -> None:
    made = cluster("ab", "exit 3")
    (made.folder / "a" / "runs" / "x" / "checkpoints").mkdir(parents=True)
    assert made.run("--eval-only") == 3, made.said()
    assert list(made.begun("a")) == ["1-0"] and "--resume" not in made.begun("a")["1-0"]


def test_a_limit_of_restarts(cluster) -> None:
    made = cluster("ab", "save; exit 3")
    assert made.run(options=("--max-restarts", "1")) == 3
    assert list(made.begun("a")) == ["1-0", "2-0"], made.said()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_one_signal_stops_all_with_a_checkpoint(name: str, cluster) -> None:
    made = cluster("ab", "train")
    process = made.start()
    for rank in (0, 1):
        made.wait_for(f"trains-1-{rank}")
    os.killpg(process.pid, getattr(signal, name))  # as a terminal does
    assert process.wait(30) == 75, made.said()
    assert made.log()[1:] == [f"stops the run with a checkpoint, because of {name}",
                              "start 1 ended after N s (a 75, b 75): stopped; --resume auto continues. "
                              "Ends with exit code 75"]
    assert made.workers() == []


def test_a_second_signal_ends_at_once(cluster) -> None:
    made = cluster("ab", "trap '' TERM; touch trains-1-$RANK; exec -a \"$0\" sleep 60")
    process = made.start()
    for rank in (0, 1):
        made.wait_for(f"trains-1-{rank}")
    process.terminate()
    time.sleep(1.5)
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM, made.said()
    assert "ends all workers at once, because of a second signal (SIGTERM)" in made.log()


def test_the_end_of_the_script_stops_the_run(cluster) -> None:
    made = cluster("ab", "train")
    process = made.start()
    for rank in (0, 1):
        made.wait_for(f"trains-1-{rank}")
    process.kill()
    deadline = time.monotonic() + 20
    while made.workers():
        assert time.monotonic() < deadline, made.said()
        time.sleep(0.1)
    assert (made.folder / "a/runs/x/checkpoints/step-1/manifest.json").exists()


# ---- when it starts again --------------------------------------------------------------------------------------------

def test_goes_on_without_a_machine_that_is_gone(cluster) -> None:
    made = cluster("abc", "if [ $start = 1 ]; then [ $machine != a ] || { touch down; kill -KILL $$; }; others; fi")
    assert made.run() == 0, made.said()
    assert made.log() == ["start 1: 3 of 3 machines, a, b, c; the store is at a:29500",
                          "a: a worker was ended by SIGKILL",
                          "start 1 ended after N s (a 137, b 3, c 3): a worker was lost",
                          "a: does not answer: ssh: connect to host a: timed out",
                          "start 2: 2 of 3 machines, b, c; the store is at b:29501",
                          "start 2 ended after N s (b 0, c 0): done. Ends with exit code 0"]


def test_a_machine_that_comes(cluster) -> None:
    made = cluster("abc", "[ $start = 2 ] || train")
    (made.folder / "a" / "down").touch()
    process = made.start()
    for rank in (0, 1):
        made.wait_for(f"trains-1-{rank}")
    (made.folder / "a" / "down").unlink()
    assert process.wait(30) == 0, made.said()
    assert made.log() == ["a: does not answer: ssh: connect to host a: timed out",
                          "start 1: 2 of 3 machines, b, c; the store is at b:29500",
                          "stops the run with a checkpoint, to start again with a, which answers now",
                          "start 1 ended after N s (b 75, c 75): stopped to start again",
                          "start 2: 3 of 3 machines, a, b, c; the store is at a:29501",
                          "start 2 ended after N s (a 0, b 0, c 0): done. Ends with exit code 0"]


def test_a_machine_that_comes_and_cannot_take_part(cluster) -> None:
    made = cluster("ab", "case $start in 1) train ;; 2) exit 2 ;; esac")
    (made.folder / "b" / "down").touch()
    process = made.start()
    made.wait_for("trains-1-0")
    (made.folder / "b" / "down").unlink()
    assert process.wait(30) == 0, made.said()
    assert made.log()[4:] == ["start 2: 2 of 2 machines, a, b; the store is at a:29501",
                              "start 2 ended after N s (a 2, b 2): goes on without b, which came last",
                              "start 3: 1 of 2 machines, a; the store is at a:29502",
                              "start 3 ended after N s (a 0): done. Ends with exit code 0"]


def test_a_machine_without_the_recipe_disturbs_nobody(cluster) -> None:
    made = cluster("ab", "train")
    (made.folder / "b" / "down").touch()
    (made.folder / "b" / "unfit").touch()
    process = made.start()
    made.wait_for("trains-1-0")
    (made.folder / "b" / "down").unlink()
    deadline = time.monotonic() + 20
    while "b: decent-train: error: no such recipe" not in made.log():
        assert time.monotonic() < deadline, made.said()
        time.sleep(0.1)
    process.terminate()
    assert process.wait(30) == 75 and "start 2" not in made.said(), made.said()


def test_waits_for_enough_machines(cluster) -> None:
    made = cluster("ab", "exit 0")
    (made.folder / "a" / "down").touch()
    process = made.start(options=("--min-machines", "2"))
    deadline = time.monotonic() + 20
    while "waits for machines: 1 of at least 2 answer" not in made.log():
        assert time.monotonic() < deadline, made.said()
        time.sleep(0.1)
    assert made.begun("b") == {}
    (made.folder / "a" / "down").unlink()
    assert process.wait(30) == 0 and list(made.begun("b")) == ["1-1"], made.said()


def test_waits_longer_and_longer_when_starts_end_early(cluster) -> None:
    made = cluster("a", "[ $start = 4 ] || exit 3")
    begin = time.monotonic()
    assert made.run() == 0, made.said()
    assert time.monotonic() - begin > 7
    assert [line for line in made.log() if line.startswith("waits")] == [
        f"waits {seconds} s, because the last {starts} starts ended early, before a checkpoint was saved"
        for starts, seconds in ((1, 1), (2, 2), (3, 4))]


def test_leaves_out_a_machine_whose_workers_always_die(cluster) -> None:
    made = cluster("ab", "[ $machine = b ] && kill -SEGV $$; [ $WORLD_SIZE = 1 ] || exit 3")
    assert made.run() == 0, made.said()
    assert "leaves out b for 10 minutes, because its workers died 2 times before a checkpoint was saved" in made.log()
    assert made.log()[-2].startswith("start 3: 1 of 2 machines, a;"), made.said()


def test_does_not_wait_for_workers_that_wait_for_a_lost_one(cluster) -> None:
    """Until they have met, they notice nothing by themselves."""
    made = cluster("ab", "[ $start = 2 ] && exit 0; [ $machine = b ] && exit 1; touch trains-1-0; exec -a \"$0\" sleep 60")
    begin = time.monotonic()
    assert made.run() == 0, made.said()
    assert time.monotonic() - begin < 30
    assert made.log()[1:3] == ["a: a worker was ended by SIGTERM", "start 1 ended after N s (a 143, b 1): a worker was lost"]


def test_leaves_out_nobody_if_all_die(cluster) -> None:
    made = cluster("ab", "[ $start = 4 ] || kill -SEGV $$")
    assert made.run() == 0, made.said()
    assert made.log()[-2].startswith("start 4: 2 of 2 machines, a, b;"), made.said()


def test_a_bug_is_tried_three_times(cluster) -> None:
    made = cluster("a", "exit 1")
    assert made.run() == 1
    assert list(made.begun("a")) == ["1-0", "2-0", "3-0"] and "has a bug" in made.log()[-1], made.said()


# ---- never two at once -----------------------------------------------------------------------------------------------

def test_a_second_one_refuses(cluster) -> None:
    made = cluster("ab", "train")
    first = made.start()
    for rank in (0, 1):
        made.wait_for(f"trains-1-{rank}")
    (made.folder / "other hosts").write_text("b\n")
    second = subprocess.run([CLUSTER, "--ssh", made.folder / "ssh", "--folder", ".", "--program", made.folder / "program",
                             "other hosts", "--", "recipe.yaml"], cwd=made.folder, capture_output=True, text=True, timeout=30)
    assert second.returncode == 2, second
    assert re.search(r"^cluster: error: b: '.*/b/runs/x' is in use by another tools/cluster \(", second.stderr, re.M), second
    first.terminate()
    assert first.wait(30) == 75, made.said()


def test_a_second_one_refuses_while_the_first_one_waits(cluster) -> None:
    made = cluster("ab", "exit 3")
    made.start()
    deadline = time.monotonic() + 20
    while "waits 4 s" not in made.said():
        assert time.monotonic() < deadline, made.said()
        time.sleep(0.1)
    assert made.start(out="second").wait(30) == 2
    assert "another tools/cluster on this machine already trains into " in made.said("second")


def test_ends_what_an_earlier_start_left(cluster) -> None:
    """A connection was lost, and the worker behind it goes on."""
    script = """
if [ $start = 1 ] && [ $machine = b ]; then
  kill -KILL $PPID  # what tools/cluster runs there
  train
fi
[ $start = 2 ] || others"""
    made = cluster("ab", script)
    assert made.run() == 0, made.said()
    assert (made.folder / "b" / "trains-1-1").exists() and list(made.begun("b")) == ["1-1", "2-1"]
    assert made.workers() == []


# ---- mistakes --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("arguments", "text"), [
    ([], "a hosts file is needed"), (["none", "--", "r"], "cannot read the hosts file 'none'"), (["hosts"], "a recipe is needed"),
    (["hosts", "--colour", "--", "r"], "unknown flag '--colour'"), (["hosts", "r"], "the recipe follows --"),
    (["hosts", "--port", "99999", "--", "r"], "--port '99999'"), (["hosts", "--port"], "--port needs a value"),
    (["hosts", "--", "r", "--workers", "2"], "the hosts file says how many workers"),
    (["hosts", "--min-machines", "3", "--", "r"], "hosts names 2"), (["empty", "--", "r"], "empty names no machine"),
    (["twice", "--", "r"], "a stands there twice"), (["wrong", "--", "r"], "wrong: 'a two'")])
def test_mistakes(arguments: list[str], text: str, tmp_path: Path) -> None:
    for name, content in (("hosts", "a\nb\n"), ("empty", "# a\n"), ("twice", "a\na 2\n"), ("wrong", "a two\n")):
        (tmp_path / name).write_text(content)
    ended = subprocess.run([CLUSTER, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2 and "cluster: error: " in ended.stderr and text in ended.stderr, ended


def test_mistakes_that_a_machine_sees(cluster) -> None:
    made = cluster("ab", "exit 0")
    (made.folder / "b" / "unfit").touch()
    assert made.run() == 2 and "cluster: error: b: no such recipe" in made.said(), made.said()
    (made.folder / "b" / "unfit").unlink()
    (made.folder / "b" / "runs" / "x" / "checkpoints").mkdir(parents=True)
    assert made.run() == 2 and "holds a run already. Continue it with --resume auto" in made.said(), made.said()
    assert made.run("--resume", "auto") == 0, made.said()


def test_help() -> None:
    ended = subprocess.run([CLUSTER, "--help"], capture_output=True, text=True)
    assert ended.returncode == 0 and ended.stdout.startswith("usage: tools/cluster HOSTS_FILE"), ended
