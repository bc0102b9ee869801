"""Every schedule against torch.optim.lr_scheduler, by the learning rates that a run reports."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from runs import DIGITS, Run, assert_same_run, assert_same_weights, assert_says, merged, recipe, refused, train

STEPS, LR = 24, 0.05
OPTIMIZER = {"name": "sgd", "lr": LR}
# torch goes on from each value to the next by a product of several factors: some 10 roundings a step.
RTOL = 1e-13

# name of a case -> (the recipe's section, PyTorch's scheduler)
CASES = {
    "linear": ({"name": "linear"}, lambda L, o: L.LinearLR(o)),
    "linear-down": ({"name": "linear", "start_factor": 1.0, "end_factor": 0.0, "total_iters": None},
                    lambda L, o: L.LinearLR(o, 1.0, 0.0, STEPS)),
    "linear-part": ({"name": "linear", "start_factor": 0.5, "end_factor": 0.75, "total_iters": 7},
                    lambda L, o: L.LinearLR(o, 0.5, 0.75, 7)),
    "step": ({"name": "step", "step_size": 5}, lambda L, o: L.StepLR(o, 5)),
    "step-gamma": ({"name": "step", "step_size": 1, "gamma": 0.7}, lambda L, o: L.StepLR(o, 1, 0.7)),
    "exponential": ({"name": "exponential", "gamma": 0.9}, lambda L, o: L.ExponentialLR(o, 0.9)),
    "one_cycle": ({"name": "one_cycle"}, lambda L, o: L.OneCycleLR(o, LR, STEPS, cycle_momentum=False)),
    "one_cycle-linear": ({"name": "one_cycle", "anneal_strategy": "linear", "pct_start": 0.45, "div_factor": 3, "final_div_factor": 7},
                         lambda L, o: L.OneCycleLR(o, LR, STEPS, pct_start=0.45, anneal_strategy="linear", cycle_momentum=False,
                                                   div_factor=3, final_div_factor=7)),
    "one_cycle-three": ({"name": "one_cycle", "three_phase": True},
                        lambda L, o: L.OneCycleLR(o, LR, STEPS, three_phase=True, cycle_momentum=False)),
    "one_cycle-down": ({"name": "one_cycle", "pct_start": 0.0},
                       lambda L, o: L.OneCycleLR(o, LR, STEPS, pct_start=0.0, cycle_momentum=False)),
    "cosine_warmup": ({"name": "cosine_warmup", "warmup_steps": 6, "warmup_decay": 0.1},
                      lambda L, o: L.SequentialLR(o, [L.LinearLR(o, 0.1, 1.0, 6), L.CosineAnnealingLR(o, STEPS - 6, 1e-6)], [6])),
    "constant": ({"name": "constant"}, lambda L, o: L.ConstantLR(o, 1.0)),
}


def torch_rates(make) -> list[float]:
    import torch

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=LR)
    scheduler = make(torch.optim.lr_scheduler, optimizer)
    rates = []
    for _ in range(STEPS):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(rates) < STEPS:
            scheduler.step()
    return rates


def settings(schedule: dict, **changes: object) -> dict:
    return merged(recipe(schedule=schedule, optimizer=OPTIMIZER, train={"steps": STEPS}), changes)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of SequentialLR itself
@pytest.mark.parametrize("name", CASES)
def test_rates_are_torchs(name: str, tmp_path: Path) -> None:
    section, make = CASES[name]
    run = train(tmp_path, settings(section))
    np.testing.assert_allclose([line["lr"] for line in run.lines("train")], torch_rates(make), rtol=RTOL)


def test_one_cycle_stays_at_its_end(tmp_path: Path) -> None:
    run = train(tmp_path, settings({"name": "one_cycle", "total_steps": 10}))
    rates = [line["lr"] for line in run.lines("train")]
    assert rates[9:] == [rates[9]] * 15
    assert_says(run.ended[0].err, "warning: schedule.total_steps: the cycle ends at step 10 of 24", "stays at 2e-07 from there")
    assert rates[9] == pytest.approx(LR / 25 / 1e4, rel=1e-12)


def test_modulo_codes_follow_any_schedule(tmp_path: Path) -> None:
    """Their grid is made of the learning rates of many steps."""
    own = recipe(schedule={"name": "one_cycle"}, train={"steps": STEPS}, parallel={"comm_dtype": "modulo4", "topology": "ring"})
    assert_same_run(train(tmp_path / "a", own, workers=2), train(tmp_path / "b", own, workers=2))


PLATEAUS = {
    "plain": ({"patience": 1, "factor": 0.5}, {"patience": 1, "factor": 0.5}),
    "threshold": ({"patience": 0, "factor": 0.3, "threshold": 0.02}, {"patience": 0, "factor": 0.3, "threshold": 0.02}),
    "absolute": ({"patience": 0, "threshold": 0.05, "threshold_mode": "abs", "min_lr": 0.001},
                 {"patience": 0, "threshold": 0.05, "threshold_mode": "abs", "min_lr": 0.001}),
    "cooldown": ({"patience": 0, "factor": 0.7, "cooldown": 3, "threshold": 0.2}, {"patience": 0, "factor": 0.7, "cooldown": 3, "threshold": 0.2}),
    "eps": ({"patience": 0, "factor": 0.5, "eps": 0.05}, {"patience": 0, "factor": 0.5, "eps": 0.05}),
    "max": ({"patience": 0, "factor": 0.5, "mode": "max"}, {"patience": 0, "factor": 0.5, "mode": "max"}),
    "accuracy": ({"metric": "accuracy", "patience": 0, "factor": 0.5}, {"mode": "max", "patience": 0, "factor": 0.5}),
}


def plateau_run(folder: Path, section: dict, *flags: object, workers: int = 1, **changes: object) -> Run:
    """At a rate at which the loss goes up and down."""
    own = settings({"name": "plateau", **section}, optimizer={"name": "sgd", "lr": 0.3}, eval={"every_steps": 2, "at_start": True},
                   checkpoint={"every_steps": 4, "keep": 9})
    return train(folder, merged(own, changes), *flags, workers=workers)


@pytest.mark.parametrize("name", PLATEAUS)
def test_plateau_is_torchs(name: str, tmp_path: Path) -> None:
    """Stepped with every evaluation after an update."""
    import torch

    section, arguments = PLATEAUS[name]
    run = plateau_run(tmp_path, section, data={"eval": {**DIGITS["test"], "limit": 60}})
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **arguments)
    values = {line["step"]: line[section.get("metric", "loss")] for line in run.lines("eval")}
    wanted = []
    for step in range(1, STEPS + 1):
        wanted.append(optimizer.param_groups[0]["lr"])
        if step in values:
            scheduler.step(values[step])
    assert len(set(wanted)) > 2
    assert [line["lr"] for line in run.lines("train")] == wanted
    assert run.ended[0].out.count("the learning rate falls to") == len(set(wanted)) - (wanted[-1] == optimizer.param_groups[0]["lr"])


def test_plateau_goes_on_after_a_resume(tmp_path: Path) -> None:
    section = {"patience": 0, "factor": 0.5, "cooldown": 1, "threshold": 0.02}
    wanted = plateau_run(tmp_path / "wanted", section, workers=2)
    plateau_run(tmp_path / "parts", section, "--set", "train.steps=12", workers=2)
    resumed = plateau_run(tmp_path / "parts", section, "--resume", "auto", workers=2)
    assert_same_run(resumed, wanted)
    assert len({line["lr"] for line in wanted.lines("train")}) > 2


def test_plateau_does_not_count_the_end_of_a_run(tmp_path: Path) -> None:
    """A run that goes on trains what it would have trained if it had been that long from the start."""
    section = {"patience": 0, "factor": 0.5, "threshold": 1e9, "threshold_mode": "abs"}
    changes = {"eval": {"every_steps": 5}, "data": {"eval": {**DIGITS["test"], "limit": 60}}, "checkpoint": {"every_steps": 5}}
    wanted = plateau_run(tmp_path / "wanted", section, **changes)
    plateau_run(tmp_path / "parts", section, "--set", "train.steps=13", **changes)
    longer = plateau_run(tmp_path / "parts", section, "--resume", "auto", **changes)
    assert_same_weights(longer, wanted)
    assert len({line["lr"] for line in wanted.lines("train")}) > 2


def test_modulo_codes_follow_a_plateau(tmp_path: Path) -> None:
    """A plateau that falls once is a schedule of steps. The fall is at step 21, and 16 steps later it leaves those that the grid
    looks back at: a run that resumes in between must know the rate before the fall."""
    own = recipe(optimizer={"name": "adamw", "lr": 0.01}, train={"steps": 40}, eval={"every_steps": 10},
                 checkpoint={"every_steps": 10, "keep": 9}, parallel={"comm_dtype": "modulo2", "topology": "ring"})
    plateau = merged(own, {"schedule": {"name": "plateau", "patience": 0, "threshold": 1e9, "threshold_mode": "abs", "factor": 0.5, "min_lr": 0.005}})
    wanted = train(tmp_path / "step", merged(own, {"schedule": {"name": "step", "step_size": 20, "gamma": 0.5}}), workers=2)
    whole = train(tmp_path / "plateau", plateau, workers=2)
    assert_same_run(whole, wanted)
    assert {line["lr"] for line in whole.lines("train")} == {0.01, 0.005}
    train(tmp_path / "parts", plateau, "--set", "train.steps=30", workers=2)
    assert_same_run(train(tmp_path / "parts", plateau, "--resume", "auto", workers=2), wanted)


@pytest.mark.parametrize(("section", "parts"), [
    ({"name": "step"}, ["schedule.step_size", "missing; step needs it"]),
    ({"name": "exponential"}, ["schedule.gamma", "missing; exponential needs it"]),
    ({"name": "plateaux"}, ["schedule.name", "constant, cosine_warmup, linear, step, exponential, one_cycle"]),
    ({"name": "step", "step_size": 0}, ["schedule.step_size"]),
    ({"name": "one_cycle", "anneal_strategy": "cosine"}, ["schedule.anneal_strategy", "cos, linear"]),
])
def test_mistakes(section: dict, parts: list[str], tmp_path: Path) -> None:
    message = refused(tmp_path, settings(section))
    assert_says(message, *parts)
    assert len(re.findall(r"\bschedule\.", message)) == 1, message
