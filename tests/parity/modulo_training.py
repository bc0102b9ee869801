"""Whole runs of modulo_cases.py's problem in NumPy: N workers side by side, in float64."""

from __future__ import annotations

import numpy as np

from modulo_cases import BETAS, PERIOD, WEIGHT_DECAY, Bucket, ModuloCase, layout


class AdamW:
    """torch.optim.AdamW of one worker's bucket."""

    def __init__(self, numel: int) -> None:
        self.m, self.v, self.s = np.zeros(numel), np.zeros(numel), 0

    def update(self, x: np.ndarray, g: np.ndarray, lr: np.ndarray) -> np.ndarray:
        b1, b2 = BETAS["adamw"]
        self.s += 1
        self.m = b1 * self.m + (1 - b1) * g
        self.v = b2 * self.v + (1 - b2) * g * g
        denominator = np.sqrt(self.v / (1 - b2**self.s)) + 1e-8
        return x - lr * WEIGHT_DECAY * x - lr * self.m / (1 - b1**self.s) / denominator


class Lion:
    """Algorithm 2 of arXiv 2302.06675, of one worker's bucket."""

    def __init__(self, numel: int) -> None:
        self.m = np.zeros(numel)

    def update(self, x: np.ndarray, g: np.ndarray, lr: np.ndarray) -> np.ndarray:
        b1, b2 = BETAS["lion"]
        direction = np.sign(b1 * self.m + (1 - b1) * g)
        self.m = b2 * self.m + (1 - b2) * g
        return x - lr * (direction + WEIGHT_DECAY * x)


OPTIMIZERS = {"adamw": AdamW, "lion": Lion}


class Training:
    """One bucket on all workers."""

    def __init__(self, case: ModuloCase, bucket: Bucket) -> None:
        self.case, self.bucket, self.exchange = case, bucket, case.reference()
        start = bucket.flat({name: x[0] for name, x in case.start().items()})  # rank 0's is everyone's
        self.xs = [start.copy() for _ in range(case.workers)]
        self.optimizers = [OPTIMIZERS[case.optimizer](bucket.numel) for _ in range(case.workers)]
        targets = case.targets()
        self.targets = [[bucket.flat({name: target[rank, step] for name, target in targets.items()})
                         for step in range(PERIOD)] for rank in range(case.workers)]

    def step(self, t: int) -> None:
        lr = float(self.case.schedule(np.array([t]))[0]) * self.bucket.scales
        met = self.exchange.meet(self.xs, t, self.bucket.scales)
        for rank, (x, mixed) in enumerate(zip(self.xs, met)):
            gradient = x - self.targets[rank][t % PERIOD]
            z = x if mixed is None else mixed.z(x)
            self.xs[rank] = self.optimizers[rank].update(z, gradient, lr)

    def trained(self) -> list[np.ndarray]:
        """The bucket of every worker after all steps."""
        for t in range(1, self.case.steps + 1):
            self.step(t)
        return self.xs


def train(case: ModuloCase) -> list[list[np.ndarray]]:
    """By bucket, by worker."""
    return [Training(case, bucket).trained() for bucket in layout(case)]
