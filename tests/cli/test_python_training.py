"""decent_train.train: what it trains, what it shows, how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from decent_train import Run, TrainingError, train
from runs import DIGITS_MLP, TIMES, merged, recipe, write_recipe
from runs import Run as OtherRun
from runs import train as train_otherwise
from scripts import ENDLESS, LONG, STARTS, Script, run_script, training
from supervised import processes_of, states_of
from tensors import read_safetensors, same_bits, write_safetensors

CTRL_C = b"\x03"


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.chdir(tmp_path)


def same_weights(one: Run, other: OtherRun) -> bool:
    ours = {name: tensor.numpy() for name, tensor in one.state_dict().items()}
    return ours.keys() == other.weights.keys() and all(same_bits(ours[name], other.weights[name]) for name in ours)


def figures(run: Run) -> list[dict]:
    return [{key: value for key, value in line.items() if key not in TIMES} for line in run.lines()]


# ---- recipes --------------------------------------------------------------------------------------------------------

def test_a_recipe_file_with_two_workers(tmp_path: Path) -> None:
    """As the program by itself, bit for bit."""
    run = train(write_recipe(tmp_path, recipe()), workers=2, quiet=True)
    assert run.folder == tmp_path / "run" and run.status == "completed" and run.workers == 2
    other = train_otherwise(tmp_path / "other", recipe(), workers=2)
    assert same_weights(run, other) and figures(run) == other.metrics_without_times


def test_a_recipe_as_a_dictionary(tmp_path: Path) -> None:
    """Relative paths are relative to the working folder; the run is named after its model."""
    (tmp_path / "tiny.pt").symlink_to(DIGITS_MLP)
    run = train({**recipe(), "model": {"path": "tiny.pt"}}, quiet=True)
    assert run.folder == tmp_path / "runs" / "tiny" and run.recipe["name"] == "tiny"
    assert run.recipe["model"]["path"] == str(tmp_path / "tiny.pt")
    assert same_weights(run, train_otherwise(tmp_path / "other", recipe()))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "runs", "tiny.pt"]


def test_every_way_to_set_a_key(tmp_path: Path) -> None:
    """The same run each time; a mapping whose keys are names of tensors is the value of its key."""
    changed = {"optimizer": {"lr": 0.01, "betas": (0.8, 0.9)}, "model": {"weights": "start.safetensors"}, "seed": 3}
    train({**recipe(), "output": "start"}, quiet=True)
    weights = read_safetensors(tmp_path / "start" / "model.safetensors")
    write_safetensors(tmp_path / "start.safetensors", {name.replace("fc1.", "fc9."): each for name, each in weights.items()})
    renames = {"weights_rename": {"fc9.": "fc1."}}
    file = write_recipe(tmp_path, recipe())
    runs = [train(file, set=merged(changed, {"model": renames}), output="nested", quiet=True),
            train(file, set={"optimizer.lr": 0.01, "optimizer.betas": [0.8, 0.9], "model.weights": "start.safetensors", "seed": 3,
                             "model.weights_rename": {"fc9.": "fc1."}}, output=Path("dotted"), quiet=True),
            train(merged(merged(recipe(), changed), {"model": renames, "output": "whole"}), quiet=True)]
    assert [run.folder.name for run in runs] == ["nested", "dotted", "whole"]
    assert len({run.recipe["model"]["weights"] for run in runs}) == 1
    assert {str(run.recipe["model"]["weights_rename"]) for run in runs} == {"{'fc9.': 'fc1.'}"}
    assert all(figures(run) == figures(runs[0]) for run in runs)
    assert figures(runs[0]) != figures(Run("start"))


def test_numbers_of_numpy_and_torch(tmp_path: Path) -> None:
    import numpy as np
    import torch

    run = train(recipe(optimizer={"lr": np.float32(0.25), "betas": np.array([0.5, 0.75])}, seed=np.int64(3),
                       train={"steps": torch.tensor(2)}), quiet=True)
    assert run.recipe["optimizer"]["lr"] == 0.25 and run.recipe["optimizer"]["betas"] == [0.5, 0.75]
    assert run.recipe["seed"] == 3 and run.lines("end")[0]["step"] == 2


def test_the_recipe_of_a_run_is_one_for_train(tmp_path: Path) -> None:
    first = train(recipe(model={"path": DIGITS_MLP}), output="first", quiet=True)
    second = train(first.recipe, output="second", quiet=True)
    assert {**first.recipe, "output": ""} == {**second.recipe, "output": ""}
    assert figures(first) == figures(second)


# ---- errors ---------------------------------------------------------------------------------------------------------

def message_of(code: int, *arguments: object, **more: object) -> str:
    with pytest.raises(TrainingError) as caught:
        train(*arguments, quiet=True, **more)
    assert caught.value.code == code, caught.value
    return str(caught.value)


def test_errors_are_exceptions_with_the_programs_message(tmp_path: Path) -> None:
    assert message_of(2, "nowhere.yaml") == "cannot read 'nowhere.yaml': No such file or directory"
    assert message_of(2, recipe(), set={"optimizer.lrr": 1}) == ("--set optimizer.lrr=1: optimizer.lrr: unknown key; did you "
                                                                 "mean 'lr'?")
    assert "trian: unknown key; did you mean 'train'?" in message_of(2, recipe(trian={"steps": 3}))
    assert "--workers '0': expected an integer" in message_of(2, recipe(), workers=0)
    assert "nowhere.pt" in message_of(2, recipe(Path("nowhere.pt")))
    assert "there is no checkpoint 'nowhere'" in message_of(2, recipe(), resume="nowhere")
    assert message_of(5, recipe(optimizer={"name": "sgd", "lr": 1e9}), output="diverged").startswith("training diverged: ")
    assert message_of(6, recipe(), output="/proc/nowhere").startswith("cannot create the folder")


def test_a_dictionary_has_no_lines() -> None:
    """A missing key is not blamed on a file that the user never saw."""
    message = message_of(2, {})
    assert message.startswith("2 mistakes in the recipe:\nmodel.path: missing"), message
    assert "/tmp" not in message


def test_a_folder_that_holds_a_run() -> None:
    train(recipe(), output="run", quiet=True)
    assert "output folder 'run' already holds a run" in message_of(2, recipe(), output="run")


@pytest.mark.parametrize("value", [object(), float("nan"), {1: 2}, {"": 2}])
def test_values_that_no_recipe_can_hold(value: object) -> None:
    values = value if isinstance(value, dict) else {"optimizer.lr": value}
    with pytest.raises(TypeError):
        train(recipe(), set=values)


@pytest.mark.parametrize("given", [None, 3, ["recipe.yaml"]])
def test_what_is_no_recipe(given: object) -> None:
    with pytest.raises(TypeError, match="a recipe is a path or a dictionary, not "):
        train(given)


def test_without_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECENT_TRAIN", "/nowhere/decent-train")
    with pytest.raises(FileNotFoundError, match="'/nowhere/decent-train' is not there: DECENT_TRAIN names it"):
        train(recipe())


def test_a_program_that_was_killed(tmp_path: Path) -> None:
    """By the system, where memory runs out."""
    text = training(tmp_path, ENDLESS, ", quiet=True")
    with Script(tmp_path, text, tmp_path / "recipe.yaml") as script:
        run = OtherRun(tmp_path / "run", [])
        script.wait_for(lambda: run.checkpoints)
        os.kill(child_of(script), signal.SIGKILL)
        assert script.wait() == 1
        assert "decent_train.program.TrainingError: decent-train was ended by SIGKILL" in script.said(), script.said()


def child_of(script: Script) -> int:
    """The program that a script waits for: the child of its process."""
    (child,) = Path(f"/proc/{script.process.pid}/task/{script.process.pid}/children").read_text().split()
    return int(child)


# ---- what is shown --------------------------------------------------------------------------------------------------

def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    train(recipe(train={"steps": 30}, log={"every_steps": 10}))
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0].startswith("decent-train ") and [line for line in lines if line.startswith("step 30/30  epoch ")]
    assert any(line.startswith("done: 30 updates") for line in lines)
    assert "\x1b" not in shown.out and shown.err == ""


def test_warnings_are_shown_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    """Also with quiet, which shows nothing else; they are no part of an error's message."""
    phases = {"phases": [[{"ranks": [0], "weight": 1}, {"ranks": [1], "weight": 1}]]}
    train(recipe(parallel={"topology": phases}), workers=2, quiet=True)
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("warning: parallel.topology: the phases together do not connect"), shown


def test_a_bar_in_a_terminal(tmp_path: Path) -> None:
    """The program's own; what is printed after it begins a line."""
    with Script(tmp_path, training(tmp_path, LONG), tmp_path / "recipe.yaml", terminal=True) as script:
        assert script.wait() == 0, script.said()
    said = script.said()
    assert re.search(r"\n\[=* *\]  \d+/600  left ", said), said  # a carriage return is read as a line's end
    assert said.strip().endswith("\ncompleted") and "\nstep " not in said


# ---- Ctrl-C and other ends ------------------------------------------------------------------------------------------

CATCHES = """
try:
    decent_train.train({file!r}, workers=2)
except KeyboardInterrupt as stopped:
    print("caught", type(stopped).__name__, stopped, "|", stopped.run, flush=True)
"""


def test_ctrl_c_saves_and_resume_goes_on(tmp_path: Path) -> None:
    """In a terminal; the resumed run ends with the same bits as one that was never stopped. The learning rate is the same in every
    step, so that the number of steps can be chosen when the run has stopped.
    """
    endless = merged(ENDLESS, {"schedule": {"name": "constant"}})
    config = write_recipe(tmp_path, endless)
    run = OtherRun(tmp_path / "run", [])
    with Script(tmp_path, STARTS + CATCHES.format(file=str(config)), config, terminal=True) as script:
        script.wait_for(lambda: run.checkpoints)
        script.type(CTRL_C)
        assert script.wait() == 0, script.said()
    said = script.said()
    caught = re.search(r"caught Stopped stopped after step (\d+) by SIGINT to worker \d\. Saved '(.*)'; go on with --resume auto "
                       r'\(train\(\.\., resume="auto"\)\) \| Run\(.*: stopped, step', said)
    assert caught, said
    assert int(caught[1]) == run.checkpoints[-1]
    assert "stopping after a checkpoint; Ctrl-C again" in said and "Traceback" not in said
    steps = {"train": {"steps": int(caught[1]) + 45}}
    resumed = train(config, workers=2, resume="auto", quiet=True, set=steps)
    undisturbed = train_otherwise(tmp_path / "undisturbed", merged(endless, steps), workers=2)
    assert resumed.status == "completed" and same_weights(resumed, undisturbed)
    assert figures(resumed) == undisturbed.metrics_without_times


def test_kill_int_saves_once(tmp_path: Path) -> None:
    """A signal to Python alone, as Jupyter's to its kernel."""
    config = write_recipe(tmp_path, ENDLESS)
    with Script(tmp_path, STARTS + CATCHES.format(file=str(config)), config) as script:
        script.wait_for(lambda: OtherRun(tmp_path / "run", []).checkpoints)
        script.process.send_signal(signal.SIGINT)
        assert script.wait() == 0 and "caught Stopped stopped after step" in script.said(), script.said()


def test_ctrl_c_twice_ends_at_once(tmp_path: Path) -> None:
    """Workers that hang keep the program from saving."""
    config = write_recipe(tmp_path, merged(ENDLESS, {"parallel": {"timeout_s": 60}}))
    with Script(tmp_path, STARTS + CATCHES.format(file=str(config)), config, terminal=True) as script:
        script.wait_for(lambda: OtherRun(tmp_path / "run", []).checkpoints)
        for process in Path(f"/proc/{child_of(script)}/task/{child_of(script)}/children").read_text().split():
            os.kill(int(process), signal.SIGSTOP)
        script.type(CTRL_C)
        script.wait_for(lambda: "stopping after a checkpoint" in script.said())
        time.sleep(0.5)
        assert script.process.poll() is None
        script.type(CTRL_C)
        assert script.wait(30) == 0  # long before timeout_s, at which the program would give its workers up
        assert "caught Stopped the training was ended at once: decent-train was ended by SIGKILL" in script.said(), script.said()


def test_ctrl_c_while_it_starts(tmp_path: Path) -> None:
    """At any moment: nothing is left, and Python goes on with a KeyboardInterrupt."""
    config = write_recipe(tmp_path, ENDLESS)
    catches = CATCHES.format(file=str(config)).replace("stopped.run", "''")
    text = f"{STARTS}decent_train.train\nprint('begins', flush=True)\n{catches}"
    ended = set()
    for moment in (0.0, 0.4, 0.8):
        folder = tmp_path / str(moment)
        folder.mkdir()
        own = text.replace(", workers=2", f", workers=2, output={str(folder / 'run')!r}")
        with Script(folder, own, config, terminal=True) as script:
            script.wait_for(lambda: "begins" in script.said())
            time.sleep(moment)
            script.type(CTRL_C)
            assert script.wait(20) == 0, script.said()
        caught = re.search(r"caught (\w+) (.*?)\|", script.said(), re.S)
        assert caught and caught[1] in ("KeyboardInterrupt", "Stopped"), script.said()
        ended.add(caught[2].split("(")[0].strip()[:40])
    assert any("before there was anything to save" in each or each == "" for each in ended), ended


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP"])
def test_python_that_is_killed_leaves_no_orphan(name: str, tmp_path: Path) -> None:
    """The program saves and stops, whatever ends Python."""
    with Script(tmp_path, training(tmp_path, ENDLESS), tmp_path / "recipe.yaml") as script:
        script.wait_for(lambda: OtherRun(tmp_path / "run", []).checkpoints)
        script.process.send_signal(getattr(signal, name))
        script.process.wait(10)
        script.wait_until_none_is_left(20)
    run = Run(tmp_path / "run")
    assert run.status == "stopped" and run.checkpoints[-1].step == run.lines("end")[0]["step"]


def test_a_terminal_that_is_closed(tmp_path: Path) -> None:
    with Script(tmp_path, training(tmp_path, ENDLESS), tmp_path / "recipe.yaml", terminal=True) as script:
        script.wait_for(lambda: OtherRun(tmp_path / "run", []).checkpoints)
        os.kill(script.process.pid, signal.SIGHUP)  # as the kernel does, to its foreground
        script.wait_until_none_is_left(20)
    assert Run(tmp_path / "run").status == "stopped"


def test_ctrl_z_and_fg(tmp_path: Path) -> None:
    """In a shell with job control: the program rests as well, and both go on."""
    shell = ("bash", "-mc", '"$@"; echo "the shell is back"; sleep 1; fg; exit $?', "bash")
    config = tmp_path / "recipe.yaml"
    text = training(tmp_path, merged(LONG, {"train": {"steps": 3000}, "checkpoint": {"every_steps": None}}))
    with Script(tmp_path, text, config, terminal=True, prefix=shell) as script:
        metrics = tmp_path / "run" / "metrics.jsonl"
        script.wait_for(lambda: metrics.exists() and metrics.stat().st_size > 0)
        script.type(b"\x1a")
        script.wait_for(lambda: "the shell is back" in script.said())
        assert [states_of(process) for process in processes_of(config)] == [{"T"}] * 3
        assert script.wait() == 0, script.said()
    assert Run(tmp_path / "run").status == "completed"


def test_an_error_while_it_is_shown(tmp_path: Path) -> None:
    """An exception of another's making (a full disk behind stdout, say) leaves nothing training."""
    text = ("import decent_train, io, sys\nclass Full(io.StringIO):\n    def write(self, text):\n"
            "        if 'step' in text: raise OSError(28, 'No space left on device')\nsys.stdout = Full()\n")
    config = write_recipe(tmp_path, ENDLESS)
    with Script(tmp_path, f"{text}decent_train.train({str(config)!r}, workers=2)", config) as script:
        assert script.wait() == 1
        assert "OSError: [Errno 28]" in script.said()
    assert Run(tmp_path / "run").status == "stopped"


def test_in_a_thread(tmp_path: Path) -> None:
    """Other threads go on; nothing can interrupt it there but its own end."""
    text = STARTS + f"""
import threading, time
found = []
file = {str(write_recipe(tmp_path, LONG))!r}
thread = threading.Thread(target=lambda: found.append(decent_train.train(file, workers=2, quiet=True)))
thread.start()
ticks = 0
while thread.is_alive():
    ticks += 1
    time.sleep(0.01)
print(ticks > 20, found[0].status)
"""
    ended = run_script(tmp_path, text)
    assert (ended.code, ended.out.split()) == (0, ["True", "completed"]), ended


# ---- resuming -------------------------------------------------------------------------------------------------------

def test_every_way_to_resume(tmp_path: Path) -> None:
    """All end with the bits of a run that was never stopped."""
    whole = recipe(train={"steps": 40}, checkpoint={"every_steps": 10, "keep": 9})
    undisturbed = train_otherwise(tmp_path / "undisturbed", whole, workers=2)
    first = train(merged(whole, {"train": {"steps": 20}}), workers=2, output="first", quiet=True)
    assert [each.step for each in first.checkpoints] == [10, 20]
    ways = {"path": str(first.checkpoints[0].path), "checkpoint": first.checkpoints[0], "run": first}
    for name, resume in ways.items():
        run = train(whole, workers=2, output=f"from-{name}", resume=resume, quiet=True)
        assert same_weights(run, undisturbed), name
    resumed = train(whole, workers=2, output="first", resume="auto", quiet=True)
    assert same_weights(resumed, undisturbed) and figures(resumed) == undisturbed.metrics_without_times
    again = train(whole, workers=2, output="first", resume="auto", quiet=True)  # there is nothing left to do
    assert figures(again) == figures(resumed)
    afresh = train(whole, workers=2, output="afresh", resume="auto", quiet=True)
    assert same_weights(afresh, undisturbed)
