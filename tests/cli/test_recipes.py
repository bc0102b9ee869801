"""Recipes (CONTRACT section 3): what is accepted, and how mistakes are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from program import ROOT, run_alone, run_each, run_workers
from runs import DIGITS, DIGITS_MLP, assert_says, attempt, error_message, flag_error, merged, recipe, refused, train
from tensors import safetensors_bytes

CONFIG = ROOT / "configs" / "digits.yaml"


def print_config(folder: Path, recipe: dict | str, *flags: object, **variables: object):
    config = folder / "recipe.yaml"
    config.write_text(recipe if isinstance(recipe, str) else json.dumps(recipe))
    return run_alone("--config", config, "--print-config", *flags, cwd=folder, **variables)


# ---- --print-config and --set --------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["digits", "digits_cnn", "digits_cnn_onnx", "char_gpt", "pronunciation", "mnist_images",
                                  "paper_transformer", "paper_imagenet"])
def test_printed_recipe_loads_to_the_same(name: str, tmp_path: Path) -> None:
    first = run_alone("--config", ROOT / "configs" / f"{name}.yaml", "--print-config", cwd=tmp_path)
    assert (first.code, first.err) == (0, "")
    second = print_config(tmp_path, first.out)
    assert (second.code, second.err, second.out) == (0, "", first.out)
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.yaml"]


def test_printed_once_by_three_workers(tmp_path: Path) -> None:
    ended = run_workers(3, "--config", CONFIG, "--print-config", cwd=tmp_path)
    assert [e.code for e in ended] == [0, 0, 0]
    assert ended[0].out == run_alone("--config", CONFIG, "--print-config", cwd=tmp_path).out
    assert [e.out + e.err for e in ended[1:]] == ["", ""]


def test_overrides(tmp_path: Path) -> None:
    flags = ["optimizer.lr=3e-4", "optimizer.lr=0.5", "optimizer.betas=[0.5, 0.75]", "data.eval=null", "name=other",
             "train={steps: 7}", "data.train={format: safetensors, path: near.safetensors}", "output=here"]
    ended = run_alone("--config", CONFIG, "--print-config", *(part for flag in flags for part in ("--set", flag)),
                      cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert_says(ended.out, "lr: 0.5\n", "betas: [0.5, 0.75]\n", "eval: null\n", "name: other\n", "steps: 7\n",
                "output: here\n", f"path: {tmp_path}/near.safetensors")


@pytest.mark.parametrize("flag, texts", [
    ("optimizer.lrr=1", ["optimizer.lrr", "did you mean 'lr'?"]),
    ("optimizr.lr=1", ["optimizr", "did you mean 'optimizer'?"]),
    ("optimizer.lr", ["no '='", "section.key=VALUE"]),
    ("optimizer.lr=fast", ["optimizer.lr", "number", "fast"]),
    ("optimizer.lr=-1", ["optimizer.lr", "-1", "> 0"]),
    ("optimizer.lr=[1", ["--set"]),
    ("seed.a=1", ["seed", "no keys"]),
    ("parallel.topology=rnig", ["rnig", "did you mean 'ring'?"]),
])
def test_wrong_override(flag: str, texts: list[str]) -> None:
    assert_says(flag_error("--config", CONFIG, "--set", flag), f"--set {flag}", *texts)


# ---- environment variables -----------------------------------------------------------------------------------------

WITH_VARIABLES = f"""\
name: "run-${{DT_NAME}}"
model:
  path: ${{DT_MODELS}}/digits_mlp.pt
data:
  train: {{format: builtin, name: digits, split: train}}
  batch_size: ${{DT_BATCH:-24}}
optimizer:
  lr: ${{DT_LR:-0.5}}
"""


def test_environment_variables(tmp_path: Path) -> None:
    ended = print_config(tmp_path, WITH_VARIABLES, DT_NAME="x", DT_MODELS=ROOT / "models", DT_LR="0.25")
    assert ended.code == 0, ended.err
    assert_says(ended.out, "name: run-x\n", f"path: {DIGITS_MLP}\n", "batch_size: 24\n", "lr: 0.25\n",
                "output: runs/run-x\n")


def test_environment_variables_that_do_not_fit(tmp_path: Path) -> None:
    ended = print_config(tmp_path, WITH_VARIABLES, DT_MODELS=ROOT / "models", DT_BATCH="many")
    message = error_message(ended)
    assert_says(message, "2 mistakes", "recipe.yaml:1:7: name: ", "DT_NAME is not set", "recipe.yaml:6:15: ", "many")


# ---- mistakes in recipes -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("line, advice", [
    ("train: {max_epochs: 3}", ":9: train.max_epochs: unknown key; here it is 'train.epochs'"),
    ("learning_rate: 0.1", ":1: learning_rate: unknown key; here it is 'optimizer.lr'"),
    ("train: {gradient_clip_val: 1}", ":9: train.gradient_clip_val: unknown key; here it is 'parallel.grad_clip_norm'"),
    ("train: {num_workers: 4}", ":9: train.num_workers: unknown key; here it is 'data.prefetch'"),
    ("lr_scheduler: cosine", ":1: lr_scheduler: unknown key; here it is 'schedule.name'"),
    ("world_size: 4", ":1: world_size: unknown key; the number of workers is a flag, --workers N"),
])
def test_key_of_another_program(line: str, advice: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(f"{line}\nmodel: {{path: a.pt}}\ndata: {{train: {{format: builtin, name: digits, split: train}}}}\n")
    assert_says(flag_error("--config", path), f"{path}:1{advice}")
    key, value = line.replace(": {", ".").rstrip("}").split(": ")
    assert_says(flag_error("--config", CONFIG, "--set", f"{key}={value}"), f"--set {key}={value}", advice.split(": ", 1)[1])


def test_missing_recipe(tmp_path: Path) -> None:
    assert_says(flag_error("--config", tmp_path / "nowhere.yaml"), tmp_path / "nowhere.yaml", "No such file")


@pytest.mark.parametrize("text, texts", [
    ("", ["recipe.yaml:1:1", "empty"]),
    ("- a\n- b\n", ["recipe.yaml:1:1", "expected a recipe"]),
    ("model: {path: a.pt\ndata:\n", ["recipe.yaml:2:"]),
    ("model:\n\tpath: a.pt\n", ["recipe.yaml:2:1: not valid YAML: a tab indents this line"]),
    ("model:\n  path: a.pt\n \tloss: mse\n", ["recipe.yaml:3:2: not valid YAML: a tab indents this line"]),
    ("model:\n  loss: mse\n\xa0 path: a.pt\n", ["recipe.yaml:3:1: not valid YAML: a non-breaking space (U+00A0) indents this line"]),
    ("train:\n  epochs: 3\n  stop:null\noutput: a\n", ["recipe.yaml:3:3: not valid YAML: a blank is missing after 'stop:'"]),
    ("train:\n  steps:3\n", ["recipe.yaml:2:3: train: expected a mapping", "got 'steps:3'; a blank is missing after the colon"]),
    ("base: &b\n  path: a.pt\nmodel:\n  <<: *b\n", ["recipe.yaml:4:3: YAML's merge key << is not used in recipes", "model: *name"]),
    ("model: {path: \"C:\\data\\a.pt\"}\n", ["recipe.yaml:1:", "in double quotes a backslash begins an escape", "single quotes"]),
    ("model: {path: \"C:\\Users\\a.pt\"}\n", ["recipe.yaml:1:", "in double quotes a backslash begins an escape", "single quotes"]),
    ("train:\n  epochs:\xa03\n", ["recipe.yaml:2:10: not valid YAML: a non-breaking space (U+00A0) stands here", "ordinary spaces"]),
    ("train: {steps: 3\xa0}\n", ["recipe.yaml:1:17: not valid YAML: a non-breaking space (U+00A0) stands here"]),
    ("optimizer: {lr:0.1}\n", ["recipe.yaml:1:13: optimizer.lr:0.1: unknown key; a blank is missing after 'lr:'"]),
    ("name: \xff", ["recipe.yaml:1:"]),
    ("name: no model\n", ["model", "data"]),
], ids=["empty", "list", "open brace", "tab", "tab and space", "other space", "glued", "glued alone", "merge", "escape", "long escape", "space after a colon", "space after a value", "glued in braces", "not UTF-8", "sections missing"])
def test_text_that_is_no_recipe(text: str, texts: list[str], tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_bytes(text.encode("latin-1" if "\xff" in text else "utf-8"))
    assert_says(flag_error("--config", tmp_path / "recipe.yaml"), *texts)


def test_all_mistakes_together(tmp_path: Path) -> None:
    text = CONFIG.read_text().replace("  lr: 0.01", "  lrr: 0.01").replace("batch_size: 16", "batch_size: 0", 1)
    text = text.replace("topology: ring", "topology: rnig").replace("seed: 0", "seed: 0\nsede: 1")
    (tmp_path / "recipe.yaml").write_text(text)
    message = error_message(run_alone("--config", tmp_path / "recipe.yaml", "--set", "gamma=2"), max_lines=6)
    expected = {"sede": "did you mean 'seed'?", "lrr: 0.01": "did you mean 'lr'?", "batch_size: 0": "integer >= 1",
                "topology: rnig": "did you mean 'ring'?"}
    assert_says(message, "5 mistakes in", "--set gamma=2: ", *expected.values())
    for number, line in enumerate(text.splitlines(), start=1):
        for part, told in expected.items():
            if part in line:
                reported = [m for m in message.splitlines() if m.startswith(f"{tmp_path}/recipe.yaml:{number}:")]
                assert len(reported) == 1 and told in reported[0]
                column = int(reported[0].removeprefix(f"{tmp_path}/recipe.yaml:{number}:").split(":")[0])
                assert line[column - 1 :].startswith((part, part.split(": ")[-1]))


OFF = {
    "model": {"output": None, "label_smoothing": 0.0, "ignore_index": -100, "class_dim": -1,
              "memory_format": "contiguous", "weights": None, "freeze": [], "unfreeze": [], "device": "cpu"},
    "data": {"threads": 1, "on_error": "fail", "transforms": [], "eval_transforms": None},
    "train": {"grad_accumulation": 1},
    "optimizer": {"param_groups": [], "lr_scaling": "none"},
    "parallel": {"grad_clip_norm": 0.0, "update": "auto", "comm_dtype": "fp32", "slices": 1, "modulo_range": None,
                 "link_mbit": None, "backend": "gloo"},
    "amp": {"dtype": "off"},
    "eval": {"at_start": False, "metrics": None},
    "checkpoint": {"every_steps": None, "every_epochs": None, "keep_best": None, "allow_missing": False},
    "log": {"tensorboard": False, "trace": None, "progress": "plain"},
}


def test_off_values_are_accepted(tmp_path: Path) -> None:
    plain = train(tmp_path / "plain", recipe())
    off = train(tmp_path / "off", merged(recipe(), OFF))
    assert list(plain.losses) == list(off.losses)


def test_keys_without_meaning_are_checked_and_unused(tmp_path: Path) -> None:
    plain = train(tmp_path / "plain", recipe(optimizer={"name": "adam"}))
    other = train(tmp_path / "other", recipe(optimizer={"name": "adam", "momentum": 0.5, "nesterov": True}))
    assert list(plain.losses) == list(other.losses)
    assert_says(refused(tmp_path / "wrong", recipe(optimizer={"name": "adam", "momentum": 1.5})), "optimizer.momentum")


# ---- data ----------------------------------------------------------------------------------------------------------

def test_missing_data_file(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.safetensors"
    assert_says(refused(tmp_path, recipe(DIGITS_MLP, path)), path, "data.train", "No such file")


def one_tensor(dtype: str = "F32", shape: tuple = (2, 2), offsets: tuple = (0, 16)) -> dict:
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


# tests/unit/core has many more.
HOSTILE = {
    "empty": b"",
    "huge header": (2**63).to_bytes(8, "little") + b"{}",
    "cut header": (1000).to_bytes(8, "little") + b'{"x":',
    "nested": safetensors_bytes('{"x":' * 100_000, b""),
    "no tensors": safetensors_bytes({}, b""),
    "cut data": safetensors_bytes(one_tensor(), bytes(15)),
    "overflow": safetensors_bytes(one_tensor(shape=(2**40, 2**40)), bytes(16)),
    "unknown dtype": safetensors_bytes(one_tensor(dtype="F31"), bytes(16)),
    "size": safetensors_bytes(one_tensor(shape=(3, 2)), bytes(16)),
    "no samples": safetensors_bytes(one_tensor(shape=(0, 2), offsets=(0, 0)), b""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_damaged_data_file(name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("hostile") / "data.safetensors"
    path.write_bytes(HOSTILE[name])
    assert_says(refused(tmp_path, recipe(DIGITS_MLP, path)), path, "data.train")


def test_too_few_samples(tmp_path: Path) -> None:
    message = refused(tmp_path, recipe(data={"batch_size": 500}), workers=3)
    assert_says(message, "1442", "1500", "500", "3 workers", "data.batch_size")
    assert train(tmp_path / "just enough", recipe(data={"batch_size": 721}), workers=2).lines("train")


@pytest.mark.parametrize("workers, local, valid", [(3, 1, "2, 4, 8"), (3, 2, "4, 8, 16"), (1, 1, "2, 4, 8")])
def test_topology_that_cannot_do_this_many(workers: int, local: int, valid: str, tmp_path: Path) -> None:
    parallel = {"topology": "alternating-exp-ring", "local_world_size": local}
    message = refused(tmp_path, recipe(parallel=parallel), workers=workers)
    assert_says(message, "alternating-exp-ring", "1 worker " if workers == 1 else f"{workers} workers", valid, "parallel.local_world_size")


# ---- errors of several workers -------------------------------------------------------------------------------------

SHARED_MISTAKES = {
    "flag": (["--confg", CONFIG], "--confg"),
    "recipe": (["--config", CONFIG, "--set", "optimizer.lrr=1"], "optimizer.lrr"),
    "model": (["--config", CONFIG, "--set", "model.path=/nowhere.pt"], "/nowhere.pt"),
    "data": (["--config", CONFIG, "--set", "model.target=z"], "model.target"),
}


@pytest.mark.parametrize("name", SHARED_MISTAKES)
def test_told_once_by_three_workers(name: str, tmp_path: Path) -> None:
    flags, text = SHARED_MISTAKES[name]
    ended = run_workers(3, *flags, cwd=tmp_path)
    message = error_message(ended)
    assert_says(message, text)
    assert "rank" not in message
    ends = [e.seconds for e in ended]
    assert max(ends) < 30 and max(ends) - min(ends) < 5
    assert list(tmp_path.iterdir()) == []


def test_mistake_of_one_worker(tmp_path: Path) -> None:
    """All of them leave, and the message says whose mistake it is."""
    common = ["--config", CONFIG, "--set", f"output={tmp_path}/run"]
    ended = run_each([common, [*common, "--set", "model.path=/nowhere.pt"], common], cwd=tmp_path)
    assert_says(error_message(ended), "rank 1:", "/nowhere.pt")
    assert max(e.seconds for e in ended) < 30
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["train.epochs", "eval.every_epochs", "data.batch_size", "data.eval_batch_size",
                                 "parallel.local_world_size", "eval.every_steps", "log.every_steps",
                                 "schedule.warmup_steps", "schedule.t_max"])
@pytest.mark.parametrize("value", [2**31 + 2, 2**62, 2**63 - 1])
def test_numbers_that_are_too_large_do_not_wrap_around(key: str, value: int, tmp_path: Path) -> None:
    """They are refused, or are what they say: a period that does not end, a schedule that has hardly begun."""
    if key == "train.epochs" and value < 2**62:
        pytest.skip("so many epochs are right, and take long")
    changes = {"train": {"steps": None}} if key == "train.epochs" else {}
    (ended,) = attempt(tmp_path, recipe(**changes), "--set", f"{key}={value}")
    if ended.code == 0:
        assert key.split(".")[1] in ("every_epochs", "every_steps", "warmup_steps", "t_max")
        assert len((tmp_path / "run/metrics.jsonl").read_text().splitlines()) >= 1
    else:
        assert_says(error_message(ended), key)
