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
    "inverse_sqrt": ({"name": "inverse_sqrt", "warmup_steps": 6, "warmup_decay": 0.0},
                     lambda L, o: transformers().get_inverse_sqrt_schedule(o, 6)),
    "inverse_sqrt-timescale": ({"name": "inverse_sqrt", "timescale": 4}, lambda L, o: transformers().get_inverse_sqrt_schedule(o, 0, 4)),
    "inverse_sqrt-no-warmup": ({"name": "inverse_sqrt"}, lambda L, o: transformers().get_inverse_sqrt_schedule(o, 0)),
    "stable": ({"name": "warmup_stable_decay", "warmup_steps": 4, "warmup_decay": 0.0, "decay_steps": 8},
               lambda L, o: transformers().get_wsd_schedule(o, 4, 8, STEPS, decay_type="linear")),
    "stable-cosine": ({"name": "warmup_stable_decay", "decay_steps": 9, "decay_type": "cosine", "eta_min": LR / 10},
                      lambda L, o: transformers().get_wsd_schedule(o, 0, 9, STEPS, decay_type="cosine", min_lr_ratio=0.1)),
    "stable-sqrt": ({"name": "warmup_stable_decay", "decay_type": "1-sqrt"},
                    lambda L, o: transformers().get_wsd_schedule(o, 0, STEPS // 10, STEPS, decay_type="1-sqrt")),
    "chain": ({"name": "chain", "chain": [{"name": "linear", "steps": 5}, {"name": "exponential", "gamma": 0.9, "steps": 7}, {"name": "step", "step_size": 4}]},
              lambda L, o: L.SequentialLR(o, [L.LinearLR(o), L.ExponentialLR(o, 0.9), L.StepLR(o, 4)], [5, 12])),
}


def transformers():
    """Its factors are of the first learning rate, in double."""
    import transformers

    return transformers.optimization


def torch_rates(make, steps: int = STEPS) -> list[float]:
    import torch

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=LR)
    scheduler = make(torch.optim.lr_scheduler, optimizer)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(rates) < steps:
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


AFTER_A_WARM_UP = {
    "constant": ({"name": "constant"}, lambda L, o, steps: L.ConstantLR(o, 1.0)),
    "linear": ({"name": "linear", "start_factor": 1.0, "end_factor": 0.0, "total_iters": None},
               lambda L, o, steps: L.LinearLR(o, 1.0, 0.0, steps)),
    "step": ({"name": "step", "step_size": 5}, lambda L, o, steps: L.StepLR(o, 5)),
    "exponential": ({"name": "exponential", "gamma": 0.9}, lambda L, o, steps: L.ExponentialLR(o, 0.9)),
    "one_cycle": ({"name": "one_cycle"}, lambda L, o, steps: L.OneCycleLR(o, LR, steps, cycle_momentum=False)),
    "chain": ({"name": "chain", "chain": [{"name": "exponential", "gamma": 0.9, "steps": 7}, {"name": "cosine_warmup", "eta_min": 0, "lr_scale": 1.0}]},
              lambda L, o, steps: L.SequentialLR(o, [L.ExponentialLR(o, 0.9), L.CosineAnnealingLR(o, steps - 7)], [7])),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", AFTER_A_WARM_UP)
def test_a_warm_up_before_any_schedule(name: str, tmp_path: Path) -> None:
    """LinearLR for 6 steps; then the schedule from its beginning, for the 18 that are left."""
    section, make = AFTER_A_WARM_UP[name]
    run = train(tmp_path, settings({**section, "warmup_steps": 6, "warmup_decay": 0.1}))
    wanted = [*torch_rates(lambda L, o: L.LinearLR(o, 0.1, 1.0, 6))[:6], *torch_rates(lambda L, o: make(L, o, STEPS - 6), STEPS - 6)]
    np.testing.assert_allclose([line["lr"] for line in run.lines("train")], wanted, rtol=RTOL)


def test_a_warm_up_in_epochs(tmp_path: Path) -> None:
    """An epoch of 40 samples in batches of 8 has 5 updates; with two workers 2, as the last half batch waits."""
    own = settings({"name": "constant", "warmup_decay": 0.1}, data={"train": {**DIGITS["train"], "limit": 40}, "batch_size": 8})
    for workers, epochs, steps in ((1, 2, 10), (1, 0.5, 3), (2, 3, 6), (1, 0, 0)):
        folder = tmp_path / f"{workers}-{epochs}"
        run = train(folder / "epochs", merged(own, {"schedule": {"warmup_epochs": epochs}}), workers=workers)
        wanted = train(folder / "steps", merged(own, {"schedule": {"warmup_steps": steps}}), workers=workers)
        assert_same_run(run, wanted)
        assert sum(line["lr"] < LR for line in run.lines("train")) == steps


def test_parts_of_a_chain_have_their_own_rates(tmp_path: Path) -> None:
    """The key alone names the schedule."""
    chain = [{"name": "constant", "steps": 3, "lr_scale": 0.5}, {"name": "linear", "warmup_steps": 2, "warmup_decay": 0.5, "total_iters": 1, "steps": 6},
             {"name": "constant", "lr_scale": 2}]
    run = train(tmp_path, {**settings({}), "schedule": {"chain": chain}})
    wanted = [0.5] * 3 + [0.5, 0.75, 1 / 3, 1, 1, 1] + [2.0] * 15
    np.testing.assert_allclose([line["lr"] / LR for line in run.lines("train")], wanted, rtol=RTOL)


def test_a_chain_goes_on_after_a_resume(tmp_path: Path) -> None:
    """With codes, whose grid looks back at the rates before the resume."""
    own = recipe(schedule={"name": "chain", "warmup_steps": 3, "chain": [{"name": "inverse_sqrt", "steps": 8}, {"name": "warmup_stable_decay"}]},
                 train={"steps": STEPS}, checkpoint={"every_steps": 4, "keep": 9}, parallel={"comm_dtype": "modulo4", "topology": "ring"})
    wanted = train(tmp_path / "wanted", own, workers=2)
    first = train(tmp_path / "parts", own, workers=2)
    resumed = train(tmp_path / "parts", own, "--resume", first.folder / "checkpoints" / "step-00000008", workers=2)
    assert_same_run(resumed, wanted)


def test_one_cycle_stays_at_its_end(tmp_path: Path) -> None:
    run = train(tmp_path, settings({"name": "one_cycle", "total_steps": 10}))
    rates = [line["lr"] for line in run.lines("train")]
    assert rates[9:] == [rates[9]] * 15
    assert_says(run.ended[0].err, "warning: schedule.total_steps: the cycle ends at step 10 of 24", "stays at 2e-07 from there")
    assert rates[9] == pytest.approx(LR / 25 / 1e4, rel=1e-12)
    run = train(tmp_path / "warm", settings({"name": "one_cycle", "total_steps": 10, "warmup_steps": 5}))
    assert_says(run.ended[0].err, "the cycle ends at step 15 of 24")


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


def test_a_warm_up_before_a_plateau(tmp_path: Path) -> None:
    """A factor: evaluations count from the first on."""
    section = {"patience": 0, "factor": 0.5, "threshold": 1e9, "threshold_mode": "abs"}
    plain, warm = plateau_run(tmp_path / "plain", section), plateau_run(tmp_path / "warm", {**section, "warmup_steps": 5, "warmup_decay": 0.2})
    factors = [0.2 + 0.8 * u / 5 for u in range(5)] + [1.0] * (STEPS - 5)
    rates = [line["lr"] for line in plain.lines("train")]
    assert len(set(rates[:5])) > 1
    np.testing.assert_allclose([line["lr"] for line in warm.lines("train")], np.multiply(rates, factors), rtol=RTOL)


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
    ({"name": "warmup_stable_decay", "decay_type": "sqrt"}, ["schedule.decay_type", "linear, cosine, 1-sqrt"]),
    ({"name": "constant", "warmup_steps": 3, "warmup_epochs": 1}, ["warmup_epochs: takes the place of"]),
    ({"name": "chain"}, ["schedule.chain: missing; chain needs it, e.g. [{name: linear, steps: 100}, {name: constant}]"]),
    ({"name": "linear", "chain": [{"name": "constant"}]}, ["schedule.chain: is for", "name: chain; it is linear"]),
    ({"name": "chain", "chain": [{"name": "linear"}, {"name": "constant"}]}, ["schedule.chain: schedule 1 (linear) needs steps"]),
    ({"name": "chain", "chain": [{"name": "step", "steps": 3}, {"name": "constant"}]}, ["schedule.chain.step_size: missing; step needs it, e.g. 1000"]),
    ({"name": "chain", "chain": [{"name": "plateau"}]}, ["schedule.chain.name", "constant, cosine_warmup, linear"]),
    ({"name": "chain", "chain": [{"name": "linear", "stepz": 2}]}, ["schedule.chain.stepz: unknown key", "'steps'"]),
    ({"name": "chain", "chain": [{"name": "linear", "total_iters": 0}]}, ["schedule.chain.total_iters"]),
    ({"name": "chain", "chain": [{"steps": 3}]}, ["schedule.chain.name: missing"]),
])
def test_mistakes(section: dict, parts: list[str], tmp_path: Path) -> None:
    message = refused(tmp_path, settings(section))
    assert_says(message, *parts)
    assert len(re.findall(r"\bschedule\.(?!(name: chain|warmup_steps; give))", message)) == 1, message
