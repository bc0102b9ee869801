"""decent-sweep: what a sweep file says, and which trials follow from it. Nothing is trained."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from decent_train import TrainingError
from decent_train.searching import slots
from decent_train.searching.ladder import Ladder, ladder_of
from decent_train.searching.ledger import Ledger, opened, trial_seed
from decent_train.metrics import HIGHER, LOWER, direction_of
from decent_train.searching.sweep import Sweep, read_sweep
from decent_train.yaml_files import parse, read, write
from program import ROOT, run_alone
from runs import write_recipe
from sweeps import RECIPE

SPACE = """
space:
  optimizer.lr: {log_uniform: [1e-4, 1e-1]}
  parallel.topology: {choice: [ring, complete]}
  data.batch_size: {int: [16, 64], step: 8}
  model.inputs: {log_int: [1, 1000]}
  optimizer.weight_decay: {uniform: [0, 0.1]}
  schedule: {choice: [{name: constant}, {name: step, step_size: 10}]}
"""

WIDE = "space: {optimizer.lr: {log_uniform: [1e-6, 1e+2]}}\ntrials: 50\n"
GOOD = "space: {optimizer.lr: {choice: [1, 2]}}\n"


def sweep_of(folder: Path, text: str, **overrides: object) -> Sweep:
    path = folder / "sweep.yaml"
    path.write_text(f"recipe: recipe.yaml\noutput: {folder / 'out'}\n{text}")
    return read_sweep(path, overrides)


def draw(sweep: Sweep, count: int, value: float = 1.0) -> list[dict]:
    """The parameters of `count` trials that are completed one after the other, in a search that is stopped after each.
    """
    sweep.output.mkdir(exist_ok=True)
    for _ in range(count):
        with opened(sweep, {}) as ledger:
            _complete(ledger, sweep, value)
    with opened(sweep, {}) as ledger:
        return [trial.params for trial in ledger.trials()]


def _complete(ledger: Ledger, sweep: Sweep, value: float) -> None:
    """Of the value's distance from the logarithm of the learning rate, the way an evaluation would be."""
    number = ledger.ask()
    rate = ledger.trials()[number].params["optimizer.lr"]
    ledger.complete(number, abs(math.log10(rate) + 2) * value)


# ---- the space ------------------------------------------------------------------------------------


def test_values_are_drawn_from_their_distributions(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, SPACE + "sampler: random\n")
    sweep.output.mkdir()
    with opened(sweep, {}) as ledger:
        for _ in range(100):
            ledger.ask()
        drawn = [sweep.space.values(trial.params) for trial in ledger.trials()]
    columns = {key: [values[key] for values in drawn] for key in sweep.space.dimensions}
    schedules = [{"name": "constant"}, {"name": "step", "step_size": 10}]
    assert all(schedule in columns["schedule"] for schedule in schedules)
    assert all(value in schedules for value in columns["schedule"])
    assert set(columns["parallel.topology"]) == {"ring", "complete"}
    assert set(columns["data.batch_size"]) == {16, 24, 32, 40, 48, 56, 64}
    assert all(type(value) is int for key in ("data.batch_size", "model.inputs") for value in columns[key])
    rates, decays = columns["optimizer.lr"], columns["optimizer.weight_decay"]
    assert all(1e-4 <= rate <= 1e-1 for rate in rates) and all(0 <= decay <= 0.1 for decay in decays)
    # Half of the values lie below the middle: a share of 100 draws is within 4 standard deviations, 0.2, of that.
    for values, middle in ((rates, 10**-2.5), (decays, 0.05), (columns["model.inputs"], 10**1.5)):
        assert abs(sum(value < middle for value in values) / 100 - 0.5) < 0.2


def test_a_grid_has_every_point_once(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, """
space:
  optimizer.lr: {log_uniform: [1e-4, 1e-2], points: 3}
  optimizer.weight_decay: {uniform: [0, 0.1], step: 0.05}
  data.batch_size: {choice: [16, 32]}
sampler: grid
trials: 100
""")
    assert sweep.trials == 18
    keys = ("optimizer.lr", "optimizer.weight_decay", "data.batch_size")
    points = {tuple(round(params[key], 12) for key in keys) for params in draw(sweep, 18)}
    assert points == {(lr, decay, batch) for lr in (1e-4, 1e-3, 1e-2) for decay in (0, 0.05, 0.1) for batch in (16, 32)}


@pytest.mark.parametrize("sampler", ["tpe", "random", "cmaes", "gp", "{name: tpe, multivariate: true}"])
def test_the_trials_follow_from_the_seed(tmp_path: Path, sampler: str) -> None:
    for name in ("a", "b", "other"):
        (tmp_path / name).mkdir()
    space = "space: {optimizer.lr: {log_uniform: [1e-4, 1e-1]}, optimizer.weight_decay: {uniform: [0, 1]}}\n"
    text = f"{space}sampler: {sampler}\n"
    a = draw(sweep_of(tmp_path / "a", text), 14)
    b = sweep_of(tmp_path / "b", text)
    b.output.mkdir()
    with opened(b, {}) as ledger:  # without a stop
        for _ in range(14):
            _complete(ledger, b, 1.0)
        assert [trial.params for trial in ledger.trials()] == a
    assert draw(sweep_of(tmp_path / "other", text + "seed: 1\n"), 2) != a[:2]
    assert len({params["optimizer.lr"] for params in a}) == 14


def test_a_sampler_learns_from_what_was_measured(tmp_path: Path) -> None:
    """The best values lie near 1e-2, where TPE must then draw more often than at random."""
    rates = [params["optimizer.lr"] for params in draw(sweep_of(tmp_path, WIDE), 40)]
    near = [abs(math.log10(rate) + 2) < 1 for rate in rates]
    assert sum(near[20:]) >= 12, "a quarter of these would be near by chance"


def test_a_sampler_learns_from_trials_that_wait_at_their_first_rung(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, WIDE + "halving: {rungs: [10]}\n")
    sweep.output.mkdir()
    with opened(sweep, {}) as ledger:
        for number in range(40):
            assert ledger.ask() == number
            ledger.report(number, 10, abs(_exponent(ledger, number) + 2))
            ledger.reach(number, 10)
        near = [abs(_exponent(ledger, number) + 2) < 1 for number in range(20, 40)]
    assert sum(near) >= 12, "a quarter of these would be near by chance"


def test_a_sampler_avoids_where_trials_fail(tmp_path: Path) -> None:
    """The higher the learning rate, the better, and from 1e-2 on trials diverge. If failed trials were left out, as
    Optuna does, no more than 5 of the last 25 would stay below, with any of the seeds 0 to 3; seen as the worst, 13 to
    15 do.
    """
    sweep = sweep_of(tmp_path, WIDE)
    sweep.output.mkdir()
    with opened(sweep, {}) as ledger:
        for number in range(40):
            ledger.ask()
            rate = _exponent(ledger, number)
            ledger.fail(number, "diverged") if rate > -2 else ledger.complete(number, -rate)
        below = [_exponent(ledger, number) <= -2 for number in range(15, 40)]
    assert sum(below) >= 10


def _exponent(ledger: Ledger, number: int) -> float:
    return math.log10(ledger.trials()[number].params["optimizer.lr"])


def test_seeds_are_known() -> None:
    # sha256("0/0") and sha256("7/12") begin with these bytes (sha256sum).
    assert (trial_seed(0, 0), trial_seed(7, 12)) == (0x5513E3EA, 0x2D0BA250)


# ---- rungs ----------------------------------------------------------------------------------------


def test_the_best_survive_a_rung() -> None:
    ladder = Ladder("step", [10, 30], 90, 3)
    values = {0: 5.0, 1: 1.0, 2: math.nan, 3: 1.0, 5: 3.0, 6: 0.5}
    assert ladder.survivors(values, 9, minimizes=True) == [1, 3, 6]
    assert ladder.survivors(values, 9, minimizes=False) == [0, 1, 5]
    assert ladder.survivors(values, 3, minimizes=True) == [6]
    assert ladder.survivors({2: math.nan, 4: 9.0}, 2, minimizes=True) == [4]
    assert [ladder.is_reached(1, {"step": step}) for step in (10, 29, 30, 40)] == [False, False, True, True]


@pytest.mark.parametrize(("train", "evals", "trials", "halving", "rungs"), [
    ({"epochs": 40}, {"every_epochs": 1}, 30, "{}", [1, 4, 13]),  # 40/27, 40/9, 40/3
    ({"epochs": 10}, {"every_epochs": 2}, 9, "{}", [2, 4]),  # 10/9, 10/3
    ({"epochs": 40}, {"every_epochs": 1}, 30, "{rungs: 1}", [13]),
    ({"epochs": 40}, {"every_epochs": 1}, 30, "{rungs: [3, 8]}", [3, 8]),
    ({"steps": 900, "epochs": 3}, {"every_steps": 50}, 16, "{reduction_factor: 4}", [50, 200]),  # 56, 225
    ({"steps": 900}, {"every_epochs": 1}, 16, "{}", "its rungs need eval.every_steps, which is not set"),
    ({"epochs": 2}, {"every_epochs": 2}, 16, "{}", "has no evaluation before its end"),
    ({"epochs": 9}, {"every_epochs": 1}, 2, "{}", "2 trials are too few for a reduction_factor of 3"),
    ({"epochs": 9}, {"every_epochs": 2}, 9, "{rungs: [3]}", "there is no rung at epoch 3"),
    ({"epochs": 9}, {"every_epochs": 1}, 9, "{rungs: [9]}", "there is no rung at epoch 9"),
])
def test_rungs_lie_on_evaluations(tmp_path: Path, train: dict, evals: dict, trials: int, halving: str,
                                  rungs: list[int] | str) -> None:
    recipe = {"train": {"steps": None, "epochs": None, **train},
              "eval": {"every_steps": None, "every_epochs": None, **evals}}
    sweep = sweep_of(tmp_path, f"{GOOD}trials: {trials}\nhalving: {halving}\n")
    if isinstance(rungs, list):
        assert ladder_of(sweep, recipe).rungs == rungs
        return
    with pytest.raises(TrainingError, match=rungs) as raised:
        ladder_of(sweep, recipe)
    assert f"{tmp_path / 'sweep.yaml'}:5:" in str(raised.value)


def test_trials_of_other_lengths_have_no_common_rungs(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, "space: {train.epochs: {int: [5, 20]}}\nhalving: {}\n")
    with pytest.raises(TrainingError, match="trials that differ in train.epochs cannot be compared"):
        ladder_of(sweep, {"train": {"steps": None, "epochs": 9}, "eval": {"every_epochs": 1}})


# ---- metrics --------------------------------------------------------------------------------------


def test_the_metrics_are_those_of_the_program(tmp_path: Path) -> None:
    config = write_recipe(tmp_path, RECIPE)
    ended = run_alone("--config", config, "--set", "checkpoint.keep_best=nothing", "--print-config")
    valid = re.search(r"expected one of (.*) or null", ended.err)
    assert ended.code == 2 and valid, ended
    assert {*valid[1].split(", "), "consensus_distance"} == {*LOWER, *HIGHER, "top<k>"}
    assert direction_of("top5") == "maximize" and direction_of("top") is None


def test_directions_are_those_of_the_program() -> None:
    source = (ROOT / "lib/decent/task/metrics.cpp").read_text()
    for name in {*LOWER, *HIGHER} - {"consensus_distance"}:
        row = re.search(rf'(\.name = |by_label\()"{name}".*?(\.value = |share\()', source, re.DOTALL)
        is_higher = "Better::higher" in row[0] or row[1] == "by_label("  # whose metrics are all better when higher
        assert is_higher == (name in HIGHER), name


# ---- wrong sweeps ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "message"), [
    ("trails: 3\n" + GOOD, "{file}:3:1: trails: unknown key; did you mean 'trials'?"),
    ("", "{file}:1:1: the key 'space' is missing"),
    ("space: {}", "{file}:3:1: space: is empty; write a recipe key"),
    ("space: [a]", "{file}:3:1: space: must be a mapping, not a list"),
    ("space:\n  optimizer.lr: {loguniform: [1, 2]}",
     "{file}:4:18: space.optimizer.lr.loguniform: unknown distribution; did you mean 'log_uniform'?"),
    ("space:\n  optimizer.lr: {uniform: [1, 2], pionts: 3}",
     "{file}:4:35: space.optimizer.lr.pionts: unknown key; did you mean 'points'?"),
    ("space:\n  optimizer.lr: 3",
     "{file}:4:3: space.optimizer.lr: must be one of choice, uniform, log_uniform, int, log_int, as in"),
    ("space:\n  a: {uniform: [2, 1]}", "{file}:4:3: space.a: the low end, 2, must be below the high end, 1"),
    ("space:\n  a: {log_uniform: [0, 1]}", "the low end of a logarithmic range must be above 0, not 0"),
    ("space:\n  a: {int: [1, 2.5]}", "must be two integers, [low, high], not [1, 2.5]"),
    ("space:\n  a: {uniform: ['1', 2]}", "must be two numbers, [low, high], not [\"1\", 2]"),
    ("space:\n  a: {uniform: [1, .inf]}", "the ends of a range must be finite"),
    ("space:\n  a: {int: [1, 9], step: 0}", "step must be an integer above 0, not 0"),
    ("space:\n  a: {uniform: [1, 9], choice: [1]}", "must be one distribution, not choice and uniform"),
    ("space:\n  a: {choice: [1, 1.0]}", "space.a.choice.1: 1.0 stands here twice"),
    ("space:\n  a: {choice: []}", "must be a list of values, not []"),
    (GOOD + "trials: 0", "{file}:4:1: trials: must be an integer >= 1, not 0"),
    (GOOD + "trials: 3.0", "trials: must be an integer >= 1, not 3.0"),
    (GOOD + "seed: true", "seed: must be an integer >= 0, not true"),
    (GOOD + "sampler: tpo", "sampler: 'tpo' is not valid; did you mean 'tpe'?"),
    (GOOD + "sampler: {name: tpe, n_startup_trial: 3}",
     "sampler.n_startup_trial: unknown key; did you mean 'n_startup_trials'?"),
    (GOOD + "sampler: {name: tpe, seed: 3}", "sampler.seed: unknown key"),
    (GOOD + "pruner: {name: percentile}", "pruner: "),
    (GOOD + "pruner: median\nhalving: {}", "pruner: is of no use with halving"),
    (GOOD + "halving: {reduction: 3}", "halving.reduction: unknown key; did you mean 'reduction_factor'?"),
    (GOOD + "halving: {reduction_factor: 1}", "halving.reduction_factor: must be an integer >= 2, not 1"),
    (GOOD + "halving: {rungs: [6, 2]}", "halving.rungs: must be integers >= 1 that grow, as in [2, 6]"),
    (GOOD + "metric: acuracy", "minimize or maximize); did you mean 'accuracy'?"),
    (GOOD + "direction: down", "direction: 'down' is not valid; valid: minimize, maximize"),
    (GOOD + "parallel: all", "parallel: must be auto or an integer >= 1, not 'all'"),
    (GOOD + "set: {optimizer: {lr: 3}}", "set: 'optimizer.lr' is chosen by the search: leave it out of set"),
    (GOOD + "set: {a: .nan}", "set: nan cannot be the value of a recipe key"),
    ("space: {output: {choice: [a, b]}}", "space.output: every trial has a folder of its own"),
    ("space:\n  a: {uniform: [0, 1]}\nsampler: grid",
     "space.a: the sampler 'grid' must know how many values this range has"),
    ("space: {a: {choice: [1]}\n", "{file}:"),
    ("space: {a: {choice: [1]}, a: {choice: [2]}}", "{file}:3:27: the key 'a' stands here twice"),
    ("space: &x {a: *x}", "this alias is a part of itself"),
    ("space: {a: {choice: [!!python/object/apply:os.getcwd []]}}",
     "the tag tag:yaml.org,2002:python/object/apply:os.getcwd has no meaning here"),
])
def test_wrong_sweeps_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TrainingError) as raised:
        sweep_of(tmp_path, text)
    assert raised.value.code == 2 and message.replace("{file}", str(tmp_path / "sweep.yaml")) in str(raised.value)


def test_all_mistakes_are_named_together(tmp_path: Path) -> None:
    with pytest.raises(TrainingError) as raised:
        sweep_of(tmp_path, "space: {a: {choise: [1]}}\ntrials: -1\nsampler: x\n")
    assert [line.split(": ")[1] for line in str(raised.value).splitlines()] == ["space.a.choise", "sampler", "trials"]


def test_wrong_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"a: \xe9")
    (tmp_path / "list").write_text("[1]")
    for name, words in (("none", "cannot read"), ("latin", "is not a text file in UTF-8"),
                        ("list", "a sweep must be a mapping of")):
        with pytest.raises(TrainingError, match=words):
            read_sweep(tmp_path / name, {})


def test_overrides_replace_keys_and_are_checked(tmp_path: Path) -> None:
    assert sweep_of(tmp_path, GOOD + "trials: 3\n", trials=5, seed=2).trials == 5
    with pytest.raises(TrainingError, match="trials: must be an integer >= 1, not 0") as raised:
        sweep_of(tmp_path, GOOD + "trials: 3\n", trials=0)
    assert ":4:" not in str(raised.value), "the place of a value that was replaced"
    with pytest.raises(TrainingError, match="trialz: unknown key; did you mean 'trials'?"):
        read_sweep({"recipe": "r.yaml", "space": {"a": {"choice": [1]}}}, {"trialz": 1})


# ---- YAML -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "value"), [
    ("1e-3", 1e-3), ("1E5", 1e5), (".5", 0.5), ("5.", 5.0), ("-1.5e+3", -1500.0), ("010", 10), ("0x1F", 31),
    ("0o17", 15), ("+3", 3), ("off", "off"), ("yes", "yes"), ("True", True), ("null", None), ("~", None), ("", None),
    ("2024-01-02", "2024-01-02"),
    ("1_000", "1_000"), ("1:30", "1:30"), ("'1e-3'", "1e-3"), ("e3", "e3"), ("[1e-4, .inf]", [1e-4, math.inf])])
def test_plain_texts_are_those_of_yaml_1_2(text: str, value: object) -> None:
    found = parse(text)
    assert found == value and type(found) is type(value)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    value = {"a": [1, 1e-05, 1e300, "1e-3", "off", "yes", "010", "0o7", None, True, "true", "", "~", "ä", "a: b"],
             "b": {"c": {"d": []}, "e": {}}}
    write(tmp_path / "a.yaml", value, comment="One.\nTwo.")
    assert read(tmp_path / "a.yaml").value == value
    assert (tmp_path / "a.yaml").read_text().startswith("# One.\n# Two.\na:\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


# ---- the machine ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("keys", "cores", "threads", "count", "each"), [
    ({}, 8, None, 8, "1"), ({"workers": 3}, 8, None, 2, "1"), ({"workers": 16}, 8, None, 1, "1"),
    ({"threads": 4}, 8, None, 2, "4"), ({"parallel": 2}, 8, None, 2, "4"),
    ({"parallel": 2, "workers": 2}, 8, None, 2, "2"),
    ({"parallel": 64}, 8, None, 64, "1"), ({}, 8, "2", 4, "2"), ({"threads": 4}, 8, "2", 2, "4")])
def test_trials_share_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict, cores: int,
                                threads: str | None, count: int, each: str) -> None:
    monkeypatch.setattr(slots, "cores", lambda: cores)
    monkeypatch.setattr(slots, "visible_gpus", list)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if threads is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
    found = slots.slots_of(sweep_of(tmp_path, GOOD, **keys), {"model": {"device": "auto"}})
    assert found == [{"OMP_NUM_THREADS": each}] * count


@pytest.mark.parametrize(("keys", "visible", "device", "shares"), [
    ({}, None, "auto", ["0", "1", "2"]), ({}, "2,0", "auto", ["2", "0"]), ({"workers": 2}, None, "auto", ["0,1"]),
    ({"parallel": 4}, None, "cuda", ["0", "1", "2", "0"]), ({"workers": 4}, None, "auto", ["0,1,2"]),
    ({"parallel": 2}, None, "cpu", [None, None]), ({"parallel": 1}, "", "auto", [None])])
def test_trials_share_the_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict, visible: str | None,
                               device: str, shares: list[str | None]) -> None:
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nfor i in 0 1 2; do echo \"GPU $i: a card (UUID: GPU-$i)\"; done\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/bin:/usr/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = slots.slots_of(sweep_of(tmp_path, GOOD, **keys), {"model": {"device": device}})
    assert [each.get("CUDA_VISIBLE_DEVICES") for each in found] == shares


def test_sweeps_may_be_mappings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sweep = read_sweep({"recipe": Path("r.yaml"), "space": {"a": {"choice": [1]}}}, {})
    assert (sweep.recipe, sweep.folder, sweep.output) == (tmp_path / "r.yaml", tmp_path, tmp_path / "runs" / "search")
    assert json.dumps(sweep.space.as_text())
