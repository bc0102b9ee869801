"""What happens to an evaluation costs no training: the step is saved before it, and a resume evaluates first."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from damaged import MANIFEST, fields_of, with_fields
from ports import free_port
from program import PROGRAM, environment, launcher_variables, run_each
from runs import (DIGITS, Run, assert_same_run, assert_same_weights, assert_says, attempt, merged, recipe, train,
                  write_recipe)

# An evaluation takes seconds, so that signals come in the middle of it; a step takes none.
STEPS, EVERY = 6, 3


class Slow(torch.nn.Module):
    """Takes its time in eval mode, and counts there what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(64, 10)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        x = x.flatten(1)
        if not self.training:
            self.seen += x.size(0)
            waste = torch.eye(160)
            for _ in range(60):
                waste = waste @ waste
            x = x + 0 * waste.sum() + 1e-6 * self.seen
        return self.fc(x)


@pytest.fixture(scope="module")
def slow_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    path = tmp_path_factory.mktemp("model") / "slow.pt"
    torch.jit.script(Slow()).save(str(path))
    return path


def of(model: Path, **changes: object) -> dict:
    base = recipe(model, train={"steps": STEPS}, data={"eval": DIGITS["train"], "eval_batch_size": 4},
                  eval={"every_steps": EVERY}, checkpoint={"every_steps": EVERY, "keep": 9})
    return merged(base, changes)


def end_in_evaluation(folder: Path, recipe: dict, workers: int, at: int, signals: list[tuple[int, float]]) -> list[int]:
    """Sends the signals, each some seconds after the one before, once the evaluation of step `at` is under way. The
    first goes to the last worker, later ones to all. The codes.
    """
    config, port = write_recipe(folder, recipe), free_port()
    processes = [subprocess.Popen([str(PROGRAM), "--config", str(config)], cwd=folder, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=(folder / f"err-{rank}").open("w"),
                                  env=environment(**launcher_variables(rank, workers, port)))
                 for rank in range(workers)]
    saved = Run(folder / "run", []).checkpoint(at)
    try:
        deadline = time.monotonic() + 60
        while not saved.is_dir() and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(0.1)
        for number, (sent, seconds) in enumerate(signals):
            wait_for(processes, seconds)
            for process in processes[-1:] if number == 0 and sent != signal.SIGKILL else processes:
                if process.poll() is None:
                    os.kill(process.pid, sent)
        return [process.wait(60) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def wait_for(processes: list[subprocess.Popen], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and any(process.poll() is None for process in processes):
        time.sleep(0.01)


def manifest_of(folder: Path) -> dict:
    return fields_of((folder / MANIFEST).read_bytes())


STOPS = [(signal.SIGTERM, 1, 3), (signal.SIGTERM, 2, 6), (signal.SIGTERM, 4, 3), (signal.SIGHUP, 1, 6),
         (signal.SIGHUP, 2, 3)]


@pytest.mark.parametrize(("sent", "workers", "at"), STOPS, ids=str)
def test_a_stop_in_an_evaluation(sent: int, workers: int, at: int, slow_model: Path, tmp_path: Path) -> None:
    settings = of(slow_model)
    undisturbed = train(tmp_path / "whole", settings, workers=workers)
    codes = end_in_evaluation(tmp_path / "stopped", settings, workers, at, [(sent, 0), (signal.SIGKILL, 3)])
    err = (tmp_path / "stopped" / "err-0").read_text()
    assert codes == [75] * workers, err
    assert f"stopped after step {at} by {signal.Signals(sent).name}" in err
    stopped = Run(tmp_path / "stopped" / "run", [])
    assert stopped.checkpoints[-1] == at
    assert [line["step"] for line in stopped.lines("eval")] == list(range(EVERY, at, EVERY))
    assert manifest_of(stopped.checkpoint(at))["evaluation_pending"] is True
    resumed = train(tmp_path / "stopped", settings, "--resume", "auto", workers=workers)
    assert_same_run(undisturbed, resumed)
    for step in (3, 6):
        fields = [manifest_of(run.checkpoint(step)) for run in (undisturbed, resumed)]
        assert "evaluation_pending" not in fields[1]
        assert fields[0]["metrics"] == fields[1]["metrics"] != {}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_kill_in_an_evaluation(workers: int, slow_model: Path, tmp_path: Path) -> None:
    settings = of(slow_model)
    undisturbed = train(tmp_path / "whole", settings, workers=workers)
    codes = end_in_evaluation(tmp_path / "killed", settings, workers, 6, [(signal.SIGKILL, 0)])
    assert codes == [-signal.SIGKILL] * workers
    resumed = train(tmp_path / "killed", settings, "--resume", "auto", workers=workers)
    assert "after step 6 of 6" in resumed.ended[0].out
    assert_same_run(undisturbed, resumed)


def test_a_stop_where_no_save_was_due(slow_model: Path, tmp_path: Path) -> None:
    settings = of(slow_model, eval={"every_steps": 2}, checkpoint={"every_steps": 1, "keep": 1})
    undisturbed = train(tmp_path / "whole", settings)
    config = of(slow_model, eval={"every_steps": 2}, checkpoint={"every_steps": None, "every_epochs": 99})
    folder = tmp_path / "stopped"
    path = write_recipe(folder, config)
    with subprocess.Popen([str(PROGRAM), "--config", str(path)], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()) as process:
        try:
            metrics = folder / "run" / "metrics.jsonl"
            deadline = time.monotonic() + 60
            while not (metrics.exists() and metrics.read_text().count('"train"') == 2) and time.monotonic() < deadline:
                time.sleep(0.002)
            time.sleep(0.1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 75
        finally:
            process.kill()
    stopped = Run(folder / "run", [])
    assert stopped.checkpoints == [2] and stopped.lines("eval") == []
    resumed = train(folder, settings, "--resume", "auto")
    assert resumed.metrics_without_times == undisturbed.metrics_without_times
    assert_same_weights(undisturbed, resumed)


def test_rules_and_retention_over_such_a_resume(slow_model: Path, tmp_path: Path) -> None:
    """keep: 1 and keep_best, a plateau and an early end, which comes in the evaluation that was lost."""
    settings = of(slow_model, train={"steps": 30, "stop": {"metric": "loss", "patience": 1, "min_delta": 100}},
                  optimizer={"lr": 0.5}, checkpoint={"keep": 1, "keep_best": "loss"}, log={"every_steps": 20},
                  schedule={"name": "plateau", "patience": 0, "threshold": 100, "threshold_mode": "abs"})
    undisturbed = train(tmp_path / "whole", settings, workers=2)
    assert undisturbed.metrics[-1]["step"] == 6 and undisturbed.metrics[-1]["stopped_early"]
    for at in (3, 6):
        folder = tmp_path / str(at)
        end_in_evaluation(folder, settings, 2, at, [(signal.SIGTERM, 0)])
        resumed = train(folder, settings, "--resume", "auto", workers=2)
        assert_same_run(undisturbed, resumed)
        assert resumed.checkpoints == undisturbed.checkpoints
        last = [manifest_of(run.checkpoint(6)) for run in (undisturbed, resumed)]
        assert last[0]["evaluations"] == last[1]["evaluations"] != {}


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_an_evaluation(workers: int, slow_model: Path, tmp_path: Path) -> None:
    """One worker meets a picture that cannot be read; all leave, nothing of the training is lost."""
    random = np.random.default_rng(0)
    for name in [f"{part}/{label}/{i}.png" for part in ("train", "eval") for label in "ab" for i in range(90)]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (8, 8), np.uint8)).save(path)
    source = {"format": "images", "channels": 1}
    settings = of(slow_model, data={"train": {**source, "path": str(tmp_path / "train")},
                                    "eval": {**source, "path": str(tmp_path / "eval")}, "batch_size": 2},
                  checkpoint={"every_steps": None, "every_epochs": None})
    undisturbed = train(tmp_path / "whole", settings, workers=workers)
    odd = tmp_path / "eval" / "b" / "49.png"
    good = odd.read_bytes()
    odd.write_bytes(good[:50])
    failed = attempt(tmp_path / "failed", settings, workers=workers)
    run = Run(tmp_path / "failed" / "run", [])
    assert [each.code for each in failed] == [2] * workers
    assert_says(failed[0].err, odd, f"All steps until then are in '{run.checkpoint(EVERY)}'", "--resume auto")
    assert run.checkpoints == [EVERY] and run.metrics[-1]["status"] == "failed"
    odd.write_bytes(good)
    resumed = train(tmp_path / "failed", settings, "--resume", "auto", workers=workers)
    assert_same_weights(undisturbed, resumed)
    assert resumed.metrics_without_times == undisturbed.metrics_without_times


def test_a_run_with_evaluations_is_one_without(slow_model: Path, tmp_path: Path) -> None:
    """Also where the model counts in a buffer what it evaluates."""
    quick = of(slow_model, eval={"every_steps": 2}, data={"eval_batch_size": 200})
    with_them = train(tmp_path / "with", quick, workers=2)
    without = train(tmp_path / "without", merged(quick, {"eval": {"every_steps": None}}), workers=2)
    assert_same_weights(with_them, without)
    assert torch.jit.load(str(with_them.folder / "model.pt")).seen.item() == 0
    losses = [line["loss"] for line in with_them.lines("eval")]
    assert len(losses) == 3


def test_two_folders_of_which_one_knows_the_evaluation(slow_model: Path, tmp_path: Path) -> None:
    settings = of(slow_model, train={"steps": EVERY}, data={"eval_batch_size": 50})
    folders = [tmp_path / name for name in ("a", "b")]

    def run(*flags: object) -> None:
        config = write_recipe(tmp_path, settings)
        ended = run_each([["--config", config, "--set", f"output={folder}", *flags] for folder in folders])
        assert [each.code for each in ended] == [0, 0], ended[0].err

    run()
    here, there = (Run(folder, []) for folder in folders)
    manifest = there.checkpoint(EVERY) / MANIFEST
    whole = manifest.read_bytes()
    assert fields_of(whole)["metrics"] != {}
    before = here.metrics_without_times
    unmark(manifest)
    (folders[0] / "model.pt").unlink()  # killed before its end
    run("--resume", "auto")
    assert here.metrics_without_times == before
    assert fields_of(manifest.read_bytes()) == fields_of(whole)
    # On none of them: the evaluation comes again, in the place of its line.
    for each in (here, there):
        unmark(each.checkpoint(EVERY) / MANIFEST)
    run("--resume", "auto")
    assert here.metrics_without_times == before
    assert fields_of(manifest.read_bytes()) == fields_of(whole)


def unmark(manifest: Path) -> None:
    manifest.write_bytes(with_fields(manifest.read_bytes(), metrics={}, evaluation_pending=True))


def test_a_signal_in_eval_only(slow_model: Path, tmp_path: Path) -> None:
    settings = of(slow_model, train={"steps": 1}, data={"eval_batch_size": 200})
    folder = tmp_path / "run-of"
    train(folder, settings)
    config = write_recipe(folder, merged(settings, {"data": {"eval_batch_size": 1}}))
    for workers in ([], ["--workers", "2"]):
        begin = time.monotonic()
        with subprocess.Popen([str(PROGRAM), "--config", str(config), "--eval-only", *workers], cwd=folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=environment()) as process:
            time.sleep(1)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            code = process.wait(30)
        assert code in (-signal.SIGTERM, 128 + signal.SIGTERM) and time.monotonic() - begin < 4
