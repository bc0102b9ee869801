"""log.track: the program starts decent-track beside a run, and nothing that it does can harm the run."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from program import ROOT, Ended, run_alone, run_workers
from runs import assert_says

DIGITS = ROOT / "configs" / "digits.yaml"
# Writes down how it was started, when, and what it was given.
REPORTS = """#!{python}
import json, os, sys, time
facts = {{"arguments": sys.argv[1:], "parent": os.getppid(), "own session": os.getsid(0) == os.getpid(),
         "in and out": [os.readlink(f"/proc/self/fd/{{fd}}") for fd in (0, 1)], "other files": [fd for fd in range(3, 100)
                                                                                      if os.path.exists(f"/proc/self/fd/{{fd}}")]}}
with open({said!r}, "a") as said:
    print(json.dumps(facts), file=said)
{act}
"""


def install(folder: Path, act: str) -> Path:
    """A decent-track that does this. Returns what it says."""
    said = folder / "said"
    command = folder / "bin" / "decent-track"
    command.parent.mkdir(exist_ok=True)
    command.write_text(REPORTS.format(python=sys.executable, said=str(said), act=act))
    command.chmod(0o755)
    return said


def trained(folder: Path, *flags: object, workers: int = 1, service: str = "mlflow") -> Ended:
    arguments = [DIGITS, "--set", f"output={folder / 'run'}", "--set", f"log.track={service}", "--set", "train.epochs=null",
                 "--set", "train.steps=20", "--set", "log.every_steps=5", *flags]
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    if workers == 1:
        return run_alone(*arguments, PATH=path)
    return run_workers(workers, *arguments, PATH=path)[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_is_started_once_beside_the_run(tmp_path: Path, workers: int) -> None:
    said = install(tmp_path, "time.sleep(0.5)")
    ended = trained(tmp_path, workers=workers)
    assert ended.code == 0 and ended.err == "", ended.err
    facts, = map(json.loads, said.read_text().splitlines())
    parent = facts.pop("parent")
    assert facts == {"arguments": [str(tmp_path / "run"), "--to", "mlflow", "--beside", str(parent)], "own session": True,
                     "in and out": ["/dev/null", "/dev/null"], "other files": []}


def test_the_rest_is_waited_for(tmp_path: Path) -> None:
    """Its end is not the end of a container's life before the last figures are out."""
    install(tmp_path, f"""
metrics = {str(tmp_path / 'run' / 'metrics.jsonl')!r}
while '"kind":"end"' not in (open(metrics).read() if os.path.exists(metrics) else "").replace(" ", ""):
    time.sleep(0.01)
time.sleep(1)
open({str(tmp_path / 'rest')!r}, "w").close()""")
    ended = trained(tmp_path)
    assert ended.code == 0 and (tmp_path / "rest").exists()


def test_no_longer_than_ten_seconds(tmp_path: Path) -> None:
    install(tmp_path, "time.sleep(60)")
    begin = time.monotonic()
    ended = trained(tmp_path)
    assert ended.code == 0, ended.err
    assert time.monotonic() - begin > 10  # the upper bound is the test's own 60 s
    assert "log.track: decent-track still sends figures to mlflow" in ended.out


@pytest.mark.parametrize(("act", "text"), [("sys.exit(2)", "ended with exit code 2"),
                                           ("os.kill(os.getpid(), 9)", "was killed by signal 9")], ids=["exit", "signal"])
def test_a_failure_is_a_warning(tmp_path: Path, act: str, text: str) -> None:
    install(tmp_path, act)
    ended = trained(tmp_path)
    assert ended.code == 0, ended.err
    assert_says(ended.err, f"log.track: decent-track --to mlflow {text}")
    assert text in (tmp_path / "run" / "run.log").read_text()


def test_what_it_says_is_seen(tmp_path: Path) -> None:
    install(tmp_path, "print('no such server', file=sys.stderr)")
    assert_says(trained(tmp_path).err, "no such server")


def test_a_command_that_cannot_be_started(tmp_path: Path) -> None:
    install(tmp_path, "").with_name("bin").joinpath("decent-track").write_text("#!/no/such/python\n")
    ended = trained(tmp_path, service="wandb")
    assert ended.code == 0, ended.err
    assert_says(ended.err, "log.track: wandb gets no figures, as decent-track cannot be started: No such file or directory",
                "pip install 'decent-train[track]'", f"decent-track {tmp_path / 'run'} --to wandb")


def test_a_resume_starts_it_again(tmp_path: Path) -> None:
    said = install(tmp_path, "")
    assert trained(tmp_path, "--set", "checkpoint.every_steps=10").code == 0
    again = trained(tmp_path, "--set", "train.steps=30", "--resume", "auto")
    assert again.code == 0, again.err
    assert len(said.read_text().splitlines()) == 2


def test_only_training_starts_it(tmp_path: Path) -> None:
    said = install(tmp_path, "")
    assert trained(tmp_path).code == 0
    for flags in (["--eval-only"], ["--dry-run"], ["--print-config"]):
        assert trained(tmp_path, *flags).code == 0
    assert len(said.read_text().splitlines()) == 1


def test_an_unknown_service(tmp_path: Path) -> None:
    ended = trained(tmp_path, service="mlflo")
    assert ended.code == 2
    assert_says(ended.err, "log.track", "did you mean 'mlflow'?")


def test_the_services_are_those_of_decent_track() -> None:
    from decent_train.tracking.follow import TRACKERS

    ended = run_alone(DIGITS, "--print-config", "--set", "log.track=nothing")
    assert ended.code == 2
    assert_says(ended.err, f"expected one of {', '.join(TRACKERS)} or null")
