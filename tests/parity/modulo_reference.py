"""The exchanges of decent-train with slices, and its modulo exchange (Moniqua, arXiv 2002.11787, on a grid that follows
the schedule), written out in NumPy from their definition: all workers side by side, one bucket at a time.

A bucket has n elements, padding included. In update t >= 2, with u = t - 2, P phases, K slices:

    slice k = u mod K: elements [c(k), c(k+1)), c(k) = min(n, 32 floor(k ceil(n/32) / K));  phase = floor(u/K) mod P
    L  = max of lr(tau), tau = max(1, t-1-8 max(K,2)) .. t-1, at least 2^-12 of the highest lr over 1 .. t-1,
         times the parameter's lr_scale (0 counts as the largest lr_scale of any parameter)
    R  = max(4, 2K) / sqrt(q), q = gamma times the smallest n W_ij over edges of n > 1 members and weight < 1
    b  = 2, M = 16 (or b = 4, M = 8);  m = floor(u/(K P)) mod M
    b' = 8 for elements [e(m), e(m+1)) of the slice, e(m) = min(len, 32 floor(m ceil(len/32) / M)), else b
    s' = 2^ceil(log2(2 R L / 2^b)), at least 2^-100;  v = frac(0.6180339887498949 t) for b = 2, 0.5 for b = 4
    y  = floor(x_i / s' + v);  c_i = y - 2^b' floor(y / 2^b'), 0 where y is not finite
    d_ij = (c_j - c_i + h) mod 2^b' - h, h = 2^(b'-1), with -h made 0
    z_i  = x_i + gamma s' sum_j W_ij d_ij on the slice, x_i elsewhere
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

Phase = list[tuple[list[int], float]]  # edges: (ranks, weight that each member gives to itself)
Lr = Callable[[np.ndarray], np.ndarray]  # of the steps 1, 2, ..


def bound(n: int, k: int, parts: int) -> int:
    """Where part k of `parts` begins, in blocks of 32 elements: c(k) of a bucket and e(m) of a slice."""
    return min(n, 32 * (k * -(-n // 32) // parts))


def power_of_two_from(value: float) -> float:
    """The smallest power of two >= value, and >= 2^-100."""
    mantissa, exponent = math.frexp(value)  # value = mantissa * 2^exponent, mantissa in [0.5, 1) or 0
    if mantissa == 0:
        return 2.0**-100
    return 2.0 ** max(-100, exponent - 1 if mantissa == 0.5 else exponent)


def packed(codes: np.ndarray, bits: int) -> bytes:
    """The codes one after another, the first in the low bits; the last byte is filled with zeros."""
    each = 8 // bits
    whole = np.zeros(-(-codes.size // each) * each, dtype=np.int64)
    whole[: codes.size] = codes
    return (whole.reshape(-1, each) << (bits * np.arange(each))).sum(axis=1).astype(np.uint8).tobytes()


def bfloat16(x: np.ndarray) -> np.ndarray:
    """Rounded to bfloat16, through float32 and to the nearest, ties to even, as torch does; of x's type. Finite x."""
    raw = x.astype(np.float32).view(np.uint32)
    rounded = (raw + np.uint32(0x7FFF) + ((raw >> 16) & 1)) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32).astype(x.dtype)


@functools.cache
def recent_lr(lr: Lr, slices: int, t: int) -> float:
    """L in update t for an lr_scale of 1."""
    past = lr(np.arange(1, t))  # of the steps 1 .. t-1
    return max(past[-(8 * max(slices, 2) + 1):].max(), past.max() * 2.0**-12)


@dataclass
class Mixed:
    """What one worker has of one bucket's exchange: z = x + strength * unit * total on `where`, x elsewhere."""

    ranks: list[int]  # of the edge, with this worker's
    where: slice
    own: np.ndarray  # [len] what d_ij is the difference to: x, or x rounded where that is sent
    strength: float  # gamma W_ij
    unit: np.ndarray  # [len] s', or 1 where weights are sent as they are
    total: np.ndarray  # [len] sum over the others of d_ij
    sent: bytes  # to each of the others
    wide: int = 0  # how many d_ij came from 8 bits
    wrapped: int = 0  # those of them that b bits could not say

    def z(self, x: np.ndarray) -> np.ndarray:
        return self.moved(x, x[self.where], self.strength)

    def received(self, x: np.ndarray) -> np.ndarray:
        """What a pre-average callback sees: own + unit * mean_j d_ij on the slice, x elsewhere."""
        return self.moved(x, self.own, 1 / (len(self.ranks) - 1))

    def moved(self, x: np.ndarray, begin: np.ndarray, share: float) -> np.ndarray:
        """begin + share * unit * total on the slice, x elsewhere, in x's type."""
        z = x.copy()
        z[self.where] = begin + x.dtype.type(share) * self.unit * self.total.astype(x.dtype)
        return z


@dataclass(frozen=True)
class Whole:
    """fp32, bf16: the weights of a slice, as they are or rounded; differences are of what is sent."""

    method: str
    slices: int
    gamma: float
    phases: list[Phase]

    def edges(self, t: int) -> Phase:
        return self.phases[(t - 2) // self.slices % len(self.phases)]

    def where(self, n: int, t: int) -> slice:
        k = (t - 2) % self.slices
        return slice(bound(n, k, self.slices), bound(n, k + 1, self.slices))

    def meet(self, xs: list[np.ndarray], t: int, scales: np.ndarray) -> list[Mixed | None]:
        """What becomes of a bucket in update t, by worker; None for one to whom nothing is sent. scales: [n] lr_scale."""
        result: list[Mixed | None] = [None] * len(xs)
        where = self.where(xs[0].size, t)
        if t < 2 or where.start == where.stop:
            return result
        for ranks, weight in self.edges(t):
            if len(ranks) > 1:
                for rank, mixed in self.of_edge(xs, ranks, weight, where, t, scales):
                    result[rank] = mixed
        return result

    def of_edge(self, xs: list[np.ndarray], ranks: list[int], weight: float, where: slice, t: int,
                scales: np.ndarray) -> Iterator[tuple[int, Mixed]]:
        values = {i: bfloat16(xs[i][where]) if self.method == "bf16" else xs[i][where] for i in ranks}
        strength = self.gamma * (1 - weight) / (len(ranks) - 1)
        for i in ranks:
            total = sum(values[j] - values[i] for j in ranks if j != i)
            as_sent = values[i].astype(np.float32).view(np.uint16)[1::2] if self.method == "bf16" else values[i]
            yield i, Mixed(ranks, where, values[i], strength, np.ones_like(values[i]), total, as_sent.tobytes())


@dataclass(frozen=True)
class Modulo(Whole):
    """modulo2, modulo4: integers modulo 2^b', on a grid that all workers compute from the schedule."""

    lr: Lr
    largest_scale: float  # the largest lr_scale of any parameter
    given_range: float | None = None  # R

    @property
    def bits(self) -> int:
        return {"modulo2": 2, "modulo4": 4}[self.method]

    @property
    def parts(self) -> int:
        return {2: 16, 4: 8}[self.bits]

    def smallest_share(self) -> float | None:
        """q; None: nothing is sent."""
        shares = [len(ranks) * (1 - weight) / (len(ranks) - 1)
                  for phase in self.phases for ranks, weight in phase if len(ranks) > 1 and weight < 1]
        return self.gamma * min(shares) if shares and self.gamma > 0 else None

    def range(self) -> float:
        if self.given_range is not None:
            return self.given_range
        return max(4, 2 * self.slices) / math.sqrt(self.smallest_share())

    def unit(self, t: int, scales: np.ndarray, kind: type) -> np.ndarray:
        """s' of every element, by its lr_scale."""
        lr, reach = recent_lr(self.lr, self.slices, t), self.range()
        different, which = np.unique(scales, return_inverse=True)
        grids = [power_of_two_from(2 * reach * (lr * (scale or self.largest_scale)) / 2**self.bits) for scale in different]
        return np.array(grids, dtype=kind)[which]

    def dither(self, t: int) -> float:
        return math.fmod(0.6180339887498949 * t, 1) if self.bits == 2 else 0.5

    def bits_of(self, length: int, t: int) -> np.ndarray:
        """b' of every element of the slice."""
        m = (t - 2) // (self.slices * len(self.phases)) % self.parts
        bits = np.full(length, self.bits)
        bits[bound(length, m, self.parts):bound(length, m + 1, self.parts)] = 8
        return bits

    def codes(self, x: np.ndarray, t: int, unit: np.ndarray, bits: np.ndarray) -> np.ndarray:
        """c of the elements of a slice."""
        modulus = (2.0**bits).astype(x.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            y = np.floor(x / unit + x.dtype.type(self.dither(t)))
            codes = y - modulus * np.floor(y / modulus)
        return np.where(np.isfinite(y), codes, 0).astype(np.int64)

    def wire(self, codes: np.ndarray, bits: np.ndarray) -> bytes:
        """The 8-bit part, then the rest in order."""
        return packed(codes[bits == 8], 8) + packed(codes[bits != 8], self.bits)

    def meet(self, xs: list[np.ndarray], t: int, scales: np.ndarray) -> list[Mixed | None]:
        return [None] * len(xs) if self.smallest_share() is None else super().meet(xs, t, scales)

    def of_edge(self, xs: list[np.ndarray], ranks: list[int], weight: float, where: slice, t: int,
                scales: np.ndarray) -> Iterator[tuple[int, Mixed]]:
        bits = self.bits_of(where.stop - where.start, t)
        unit = self.unit(t, scales[where], xs[0].dtype.type)
        codes = {i: self.codes(xs[i][where], t, unit, bits) for i in ranks}
        strength = self.gamma * (1 - weight) / (len(ranks) - 1)
        for i in ranks:
            d = np.array([difference(codes[i], codes[j], bits) for j in ranks if j != i])
            wide = d[:, bits == 8]
            wrapped = int((np.abs(wide) >= 2 ** (self.bits - 1)).sum())
            yield i, Mixed(ranks, where, xs[i][where], strength, unit, d.sum(axis=0), self.wire(codes[i], bits),
                           wide.size, wrapped)


def difference(own: np.ndarray, other: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """d_ij, in (-2^(b'-1), 2^(b'-1))."""
    half = 2 ** (bits - 1)
    d = (other - own + half) % 2**bits - half
    return np.where(d == -half, 0, d)
