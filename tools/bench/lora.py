#!/usr/bin/env python3
"""What a step with adapters costs beside PyTorch with PEFT: time on one thread, and memory. With --link: what it costs over a thin line.

    .venv/bin/python tools/bench/lora.py [--rounds 5] [--steps 12]
    .venv/bin/python tools/bench/lora.py --link 10   # Mbit/s; as root, for network namespaces

A GPT-2 of transformers, exported by torch.export; the contenders alternate. Each time is the median step of a run of its own, and memory
is the peak of a process. --link: ViT-B/16 of torchvision, 86 million weights, with two workers on two hosts, one thread each.
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


# ---- over a thin line -----------------------------------------------------------------------------------------------

IMAGES = 2  # a step and worker
OF_VIT = {"match": ["*in_proj_weight"], "rank": 8, "alpha": 16, "train": ["heads.*"]}
CONTENDERS = {
    "adapters, nothing sent": ({"method": "none"}, OF_VIT),
    "adapters, modulo2": ({"comm_dtype": "modulo2"}, OF_VIT),
    "adapters, fp32": ({}, OF_VIT),
}
ALL_WEIGHTS = ({"method": "none"}, None)


def prepare_vit(folder: Path, steps: int) -> None:
    import numpy as np
    import torch
    import torchvision

    from tensors import write_safetensors

    torch.manual_seed(0)
    net = torchvision.models.vit_b_16(num_classes=10).train()
    torch.export.save(torch.export.export(net, (torch.zeros(IMAGES, 3, 224, 224),)), folder / "net.pt2")
    random = np.random.default_rng(0)
    images = random.normal(size=(2 * steps * IMAGES, 3, 224, 224)).astype(np.float32)
    write_safetensors(folder / "data.safetensors", {"x": images, "y": random.integers(0, 10, len(images))})


def on_two_hosts(pair: list, folder: Path, parallel: dict, lora: dict | None, steps: int) -> tuple[float, float, float]:
    """Milliseconds of the median step, seconds of the whole run, and the peak in MB of a worker."""
    from host_runs import commands_on
    from runs import recipe

    own = recipe(folder / "net.pt2", folder / "data.safetensors", model={"lora": lora}, data={"batch_size": IMAGES, "eval": None},
                 train={"steps": steps}, parallel=parallel, optimizer={"name": "adamw", "lr": 1e-4})
    with tempfile.TemporaryDirectory() as place:
        begin = time.perf_counter()
        commands, environments = commands_on(pair, Path(place), own, "--quiet", workers=2)
        workers = [subprocess.Popen(list(map(str, command)), env=environment, stdout=subprocess.DEVNULL)
                   for command, environment in zip(commands, environments)]
        ended = [os.wait4(worker.pid, 0) for worker in workers]
        assert [code for _, code, _ in ended] == [0, 0]
        lines = [json.loads(line) for line in (Path(place) / "a" / "metrics.jsonl").read_text().splitlines()]
    times = [line["step_ms"] for line in lines if line["kind"] == "train"][2:]
    return statistics.median(times), time.perf_counter() - begin, max(usage.ru_maxrss for _, _, usage in ended) / 1024


def over_a_link(folder: Path, mbit: int, arguments: argparse.Namespace) -> None:
    sys.path.append(str(Path(__file__).parent))
    import network
    from hosts import hosts

    prepare_vit(folder, arguments.steps)
    measured: dict[str, list[tuple[float, float, float]]] = {name: [] for name in CONTENDERS}
    with hosts(2) as pair:
        whole = on_two_hosts(pair, folder, *ALL_WEIGHTS, 5)
        network.limit(pair, mbit)
        for _ in range(arguments.rounds):
            for name, (parallel, lora) in CONTENDERS.items():
                measured[name].append(on_two_hosts(pair, folder, parallel, lora, arguments.steps))
                print(name, measured[name][-1], flush=True)
    alone = measured["adapters, nothing sent"]
    print(f"{mbit} Mbit/s\n| | ms a step | of nothing sent | run of {arguments.steps} steps, s | MB |\n|---|---:|---:|---:|---:|")
    for name, of in measured.items():
        ratio = statistics.median(own[0] / other[0] for own, other in zip(of, alone))
        ms, seconds, memory = (statistics.median(each[i] for each in of) for i in range(3))
        print(f"| {name} | {ms:.0f} | {ratio:.2f} | {seconds:.1f} | {memory:.0f} |")
    print(f"| all weights, nothing sent, no limit | {whole[0]:.0f} | | | {whole[2]:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--link", type=int)
    parser.add_argument("--peft", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peft:
        return peft_step(Path(arguments.peft[0]), json.loads(arguments.peft[1]), arguments.steps, arguments.size, arguments.layers)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.link:
            return over_a_link(Path(folder), arguments.link, arguments)
        prepare(Path(folder), arguments)
        compare(Path(folder), arguments)


if __name__ == "__main__":
    main()
