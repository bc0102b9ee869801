"""The transformers of models/char_gpt.py, and the recipe that trains one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from program import ROOT, run_workers
from runs import Run, assert_says, recipe, train
from passages import passages
from tensors import write_safetensors

CONFIG = ROOT / "configs" / "char_gpt.yaml"
TEXT = ROOT / "configs" / "data" / "opticks-train.txt"
CHAR_GPT = ROOT / "models" / "char_gpt.pt"
# Sums in another order differ by rounding: seen over these 6 steps up to 1.5e-7 of a loss.
FLOAT32 = 1e-6


def export(folder: Path, *names: str) -> None:
    subprocess.run([sys.executable, ROOT / "models" / "export.py", *names, "--folder", folder], check=True,
                   capture_output=True, timeout=300)


def test_files_are_what_the_script_exports(tmp_path: Path) -> None:
    export(tmp_path / "all")
    export(tmp_path / "one", "char_gpt")
    files = sorted(path for path in (ROOT / "models").iterdir() if path.suffix in (".pt", ".onnx", ".pt2"))
    assert CHAR_GPT in files and len(files) == len(list((tmp_path / "all").iterdir()))
    for file in files:
        assert (tmp_path / "all" / file.name).read_bytes() == file.read_bytes(), file
    assert (tmp_path / "one" / "char_gpt.pt").read_bytes() == CHAR_GPT.read_bytes()


def test_a_gpt_of_any_size(tmp_path: Path) -> None:
    import torch

    sizes = {"layers": 2, "width": 32, "heads": 2, "context": 20, "vocabulary": 50}
    flags = [text for name, size in sizes.items() for text in (f"--{name}", str(size))]
    subprocess.run([sys.executable, ROOT / "models" / "char_gpt.py", tmp_path / "small.pt", *flags], check=True,
                   capture_output=True, timeout=300)
    model = torch.jit.load(str(tmp_path / "small.pt"))
    width = sizes["width"]  # the head has no weights of its own
    assert sum(p.numel() for p in model.parameters()) == 70 * width + 2 * (12 * width**2 + 13 * width) + 2 * width
    assert model(torch.zeros(1, 20, dtype=torch.int64)).shape == (1, 20, 50)
    rows = np.random.default_rng(0).integers(0, 50, (64, 20))
    write_safetensors(tmp_path / "ids.safetensors", {"x": rows[:, :-1].copy(), "y": rows[:, 1:].copy()})
    run = train(tmp_path, recipe(tmp_path / "small.pt", tmp_path / "ids.safetensors", train={"steps": 4}))
    assert run.losses[0] == pytest.approx(np.log(50), abs=0.2)


def test_the_text_is_the_book() -> None:
    assert TEXT.read_bytes().startswith(b"OPTICKS:")
    assert TEXT.with_name("opticks-eval.txt").read_bytes().rstrip().endswith(b"corrupted\nthemselves.")


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_only_earlier_bytes_count(dtype: str) -> None:
    import torch

    model = torch.jit.load(str(CHAR_GPT)).eval()
    x = torch.randint(0, 256, (2, 40), generator=torch.Generator().manual_seed(1)).to(getattr(torch, dtype))
    changed = x.clone()
    changed[:, 25] = 255 - changed[:, 25]
    with torch.no_grad():
        logits, others = model(x), model(changed)
    assert logits.shape == (2, 40, 256)
    assert torch.equal(logits[:, :25], others[:, :25])
    assert (logits[:, 25:] != others[:, 25:]).any(dim=-1).all()


def test_gpt_11m_is_exported_where_asked(tmp_path: Path) -> None:
    import torch

    export(tmp_path, "gpt_11m")
    model = torch.jit.load(str(tmp_path / "gpt_11m.pt"))
    # bytes and positions; per block 12 width^2 weights, 9 width biases, 2 norms; the last norm and the head
    width = 384
    expected = 512 * width + 6 * (12 * width**2 + 13 * width) + 2 * width + 256 * width
    assert sum(p.numel() for p in model.parameters()) == expected
    with torch.no_grad():
        assert model(torch.zeros(1, 256, dtype=torch.uint8)).shape == (1, 256, 256)


def test_as_a_loop_in_pytorch(tmp_path: Path) -> None:
    """char_gpt on the book, in order: losses and weights of torch.optim.AdamW."""
    import plain
    import torch
    import torch.nn.functional as F

    steps, batch = 6, 4
    adamw = {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1}
    run = train(tmp_path, recipe(CHAR_GPT, data={"train": {"format": "text", "path": str(TEXT), "length": 128}, "shuffle": False,
                                           "eval": None, "batch_size": batch},
                                 train={"steps": steps}, optimizer=adamw))
    fields = {name: torch.from_numpy(a.copy()) for name, a in passages(TEXT, 128).items()}
    model = plain.load(CHAR_GPT)
    optimizer = plain.make_optimizer(model, adamw)
    losses = []
    for step in range(steps):
        rows = slice(step * batch, (step + 1) * batch)
        loss = F.cross_entropy(model(fields["x"][rows]).flatten(0, 1), fields["y"][rows].flatten().long())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    np.testing.assert_allclose(run.losses, losses, rtol=FLOAT32)


def test_recipe_trains_on_two_workers(tmp_path: Path) -> None:
    ended = run_workers(2, "--config", CONFIG, "--set", f"output={tmp_path}/run", "--set", "train.steps=60",
                        "--set", "log.every_steps=1", cwd=tmp_path)
    assert [e.code for e in ended] == [0, 0], "\n".join(e.err + e.out for e in ended)
    run = Run(tmp_path / "run", ended)
    assert run.losses[0] == pytest.approx(np.log(256), abs=0.2)  # at first every byte is as likely as any other
    # A model that knows only how often each byte occurs ends at the entropy of the text.
    counts = np.bincount(np.frombuffer(TEXT.read_bytes(), np.uint8))
    shares = counts[counts > 0] / counts.sum()
    assert run.evaluation["loss"] < -(shares * np.log(shares)).sum()
    assert run.evaluation["samples"] == 443
    assert_says(ended[0].out, "842496 parameters")
