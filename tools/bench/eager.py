"""A plain PyTorch program on one GPU: the model as its Python class, bf16 autocast, fused AdamW. bench.py starts it:

    python eager.py MODEL DATA.safetensors BATCH_SIZE STEPS WARM_UP WINDOW

Each step reads a batch, runs forward, loss, backward and update. The GPU is waited for at the end of each window of
steps, where the loss is looked at. Prints the milliseconds a step of each window after the warm-up as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import support
import torch
import torch.nn.functional as F
from contender import adamw
from tensors import read_safetensors

sys.path.append(str(Path(__file__).resolve().parents[2] / "models"))
import char_gpt


def main() -> None:
    name, data_file = sys.argv[1:3]
    batch_size, steps, warm_up, window = map(int, sys.argv[3:])
    device = torch.device("cuda")
    fields = {n: torch.from_numpy(a.copy()) for n, a in read_safetensors(Path(data_file)).items()}
    model = getattr(char_gpt, name)().to(device).train()
    optimizer = adamw(list(model.named_parameters()), fused=True)
    batches = len(fields["x"]) // batch_size
    milliseconds = []
    begin = time.perf_counter()
    for step in range(1, steps + 1):
        first = (step - 1) % batches * batch_size
        x, y = (fields[n][first : first + batch_size].pin_memory().to(device, non_blocking=True) for n in "xy")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(x)
            loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1).long())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % window == 0:
            assert loss.item() < 100
            torch.cuda.synchronize()
            if step > warm_up:
                milliseconds.append(1e3 * (time.perf_counter() - begin) / window)
            begin = time.perf_counter()
    print(json.dumps(milliseconds), flush=True)


if __name__ == "__main__":
    main()
