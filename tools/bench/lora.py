#!/usr/bin/env python3
"""What a step with adapters costs beside PyTorch with PEFT: time on one thread, and memory.

    .venv/bin/pip install peft transformers; .venv/bin/python tools/bench/lora.py [--rounds 5] [--steps 12]

A GPT-2 of transformers, exported by torch.export; the contenders alternate. Each time is the median step of a run of its own. Memory is
the peak of a process less what it has before the model is opened, for training of all weights too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tests" / "support")]

BATCH, LENGTH, RANK, ALPHA, VOCABULARY = 4, 128, 8, 16, 4096
MATCHES = {"query, key and value": (["*c_attn.weight"], ["c_attn"]),
           "all linear layers": (["*c_attn.weight", "*c_proj.weight", "*c_fc.weight"], ["c_attn", "c_proj", "c_fc"])}


def make(size: int, layers: int):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.m = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=size, n_layer=layers, n_head=size // 64,
                                                attn_pdrop=0, embd_pdrop=0, resid_pdrop=0, bos_token_id=0, eos_token_id=0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.m(input_ids=x, use_cache=False).logits

    torch.manual_seed(0)
    return Logits().train()


def peak_mb() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peft_step(folder: Path, targets: list[str] | None, steps: int, size: int, layers: int) -> None:
    """In a process of its own: prints the median step in ms and the peak in MB. All weights train without targets."""
    import torch

    torch.set_num_threads(1)
    import peft

    from tensors import read_safetensors

    net = make(size, layers)
    if targets is not None:
        net.m = peft.get_peft_model(net.m, peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=targets))
    optimizer = torch.optim.AdamW([each for each in net.parameters() if each.requires_grad], lr=1e-3)
    data = {name: torch.tensor(value) for name, value in read_safetensors(folder / "data.safetensors").items()}
    times = []
    for step in range(steps):
        part = slice(step * BATCH, (step + 1) * BATCH)
        begin = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(net(data["x"][part]).flatten(0, 1), data["y"][part].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    print(json.dumps([1e3 * statistics.median(times[2:]), peak_mb()]))


def own_step(folder: Path, match: list[str] | None, steps: int) -> tuple[float, float]:
    from program import PROGRAM, environment
    from runs import recipe, write_recipe

    lora = {"match": match, "rank": RANK, "alpha": ALPHA} if match else None
    own = recipe(folder / "net.pt2", folder / "data.safetensors", model={"lora": lora}, data={"batch_size": BATCH, "eval": None},
                 train={"steps": steps}, optimizer={"name": "adamw", "lr": 1e-3})
    with tempfile.TemporaryDirectory() as place:
        config = write_recipe(Path(place), own)
        process = subprocess.Popen([str(PROGRAM), str(config), "--quiet"], env=environment(), stdout=subprocess.DEVNULL)
        _, code, usage = os.wait4(process.pid, 0)
        assert code == 0
        lines = [json.loads(line) for line in (Path(place) / "run" / "metrics.jsonl").read_text().splitlines()]
    return statistics.median([line["step_ms"] for line in lines if line["kind"] == "train"][2:]), usage.ru_maxrss / 1024


def in_process(folder: Path, targets: list[str] | None, arguments: argparse.Namespace) -> tuple[float, float]:
    command = [sys.executable, __file__, "--peft", str(folder), json.dumps(targets), "--steps", str(arguments.steps), "--size",
               str(arguments.size), "--layers", str(arguments.layers)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}).stdout
    return tuple(json.loads(out.splitlines()[-1]))


def prepare(folder: Path, arguments: argparse.Namespace) -> None:
    import numpy as np
    import torch

    from tensors import write_safetensors

    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (arguments.steps * BATCH, LENGTH + 1))
    write_safetensors(folder / "data.safetensors", {"x": tokens[:, :-1].copy(), "y": tokens[:, 1:].copy()})
    net = make(arguments.size, arguments.layers)
    print(f"{sum(each.numel() for each in net.parameters()) / 1e6:.1f} million weights, {BATCH} x {LENGTH} tokens, rank {RANK}")
    torch.export.save(torch.export.export(net, (torch.tensor(tokens[:BATCH, :-1]),)), folder / "net.pt2")


def compare(folder: Path, arguments: argparse.Namespace) -> None:
    print("| | ms a step | PEFT's | ratio | MB | PEFT's MB |\n|---|---:|---:|---:|---:|---:|")
    for name, (match, targets) in {**MATCHES, "all weights train": (None, None)}.items():
        pairs = [(own_step(folder, match, arguments.steps), in_process(folder, targets, arguments)) for _ in range(arguments.rounds)]
        ratio = statistics.median(own[0] / peft[0] for own, peft in pairs)
        own, peft = (([statistics.median(each[k][i] for each in pairs) for i in (0, 1)]) for k in (0, 1))
        print(f"| {name} | {own[0]:.1f} | {peft[0]:.1f} | {ratio:.2f} | {own[1]:.0f} | {peft[1]:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--peft", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peft:
        return peft_step(Path(arguments.peft[0]), json.loads(arguments.peft[1]), arguments.steps, arguments.size, arguments.layers)
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), arguments)
        compare(Path(folder), arguments)


if __name__ == "__main__":
    main()
