"""Copies inside a GPU's memory:  gpu_copy.py BYTES ROUNDS. Prints the milliseconds of each round as JSON."""

import json
import sys

import torch


def main() -> None:
    size, rounds = map(int, sys.argv[1:])
    source = torch.zeros(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    milliseconds = []
    for _ in range(rounds + 1):  # one to warm up
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        milliseconds.append(begin.elapsed_time(end))
    print(json.dumps(milliseconds[1:]), flush=True)


if __name__ == "__main__":
    main()
