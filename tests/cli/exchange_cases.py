"""What runs are compared in: numbers of workers, topologies, types of exchange, slices."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from runs import DIGITS_CNN, merged, recipe

STEPS = 14


def phases(*of: list[tuple[list[int], float]]) -> dict:
    return {"phases": [[{"ranks": ranks, "weight": weight} for ranks, weight in phase] for phase in of]}


# Edges of different sizes and weights in one phase, workers without a peer, no two phases alike.
UNEVEN_PAIRS = {
    2: phases([([0, 1], 0.7)], [([0], 1.0), ([1], 1.0)], [([0, 1], 0.4)]),
    3: phases([([0, 2], 0.25), ([1], 1.0)], [([1, 2], 0.6), ([0], 1.0)], [([0, 1], 0.5), ([2], 1.0)]),
    4: phases([([0, 3], 0.3), ([1, 2], 0.9)], [([1, 3], 0.5), ([0], 1.0), ([2], 1.0)], [([2, 3], 0.6), ([0, 1], 0.45)]),
    8: phases([([0, 7], 0.3), ([1, 6], 0.9), ([2, 5], 0.5), ([3, 4], 0.6)],
              [([0, 1], 0.4), ([2, 6], 0.7), ([3], 1.0), ([4, 5], 0.2), ([7], 1.0)]),
}
UNEVEN_GROUPS = {
    3: phases([([0, 1, 2], 0.4)], [([0, 2], 0.25), ([1], 1.0)], [([0, 1, 2], 0.7)]),
    4: phases([([0, 1, 2], 0.5), ([3], 1.0)], [([1, 2, 3], 0.2), ([0], 1.0)], [([0, 1, 2, 3], 0.3)]),
    5: phases([([0, 1, 2, 3, 4], 0.3)], [([0, 4], 0.6), ([1, 2, 3], 0.45)]),
    8: phases([([0, 1, 2, 3, 4], 0.3), ([5, 6, 7], 0.6)], [([7, 0], 0.5), ([1, 6], 0.25), ([2, 3, 4, 5], 0.4)],
              [([0, 2, 4, 6, 7, 5], 0.15), ([1, 3], 0.8)]),
}
LARGEST_SENT = {"fp32": 2, "bf16": 4}  # larger edges add up; codes of modulo are always sent


@dataclass(frozen=True)
class Case:
    """topology: a name, with alternating-exp-ring and the workers of a node as `nodes-of-2`, or the name of a table above."""

    workers: int
    topology: str
    comm_dtype: str = "fp32"
    slices: int = 1

    @property
    def name(self) -> str:
        return f"{self.workers}-{self.topology}-{self.comm_dtype}-{self.slices}"

    @property
    def parallel(self) -> dict[str, Any]:
        """The recipe's section."""
        own: dict[str, Any] = {"comm_dtype": self.comm_dtype, "slices": self.slices, "bucket_mb": 0.02}  # several buckets
        if self.topology.startswith("nodes-of-"):
            return {**own, "topology": "alternating-exp-ring", "local_world_size": int(self.topology[-1])}
        tables = {"uneven-pairs": UNEVEN_PAIRS, "uneven-groups": UNEVEN_GROUPS}
        topology = tables[self.topology][self.workers] if self.topology in tables else self.topology
        return {**own, "topology": topology}

    @property
    def largest_edge(self) -> int:
        topology = self.parallel["topology"]
        if isinstance(topology, dict):
            return max(len(edge["ranks"]) for phase in topology["phases"] for edge in phase)
        return {"complete": self.workers, "alternating-exp-ring": 2 * self.parallel.get("local_world_size", 1)}.get(topology, 2)

    @property
    def adds_up(self) -> bool:
        """Whether any edge adds weights up instead of sending them."""
        return self.largest_edge > LARGEST_SENT.get(self.comm_dtype, self.workers)

    def recipe(self, **changes: Any) -> dict:
        base = recipe(DIGITS_CNN, parallel=self.parallel, optimizer={"lr": 0.003}, train={"steps": STEPS},
                      eval={"every_steps": 5}, checkpoint={"every_steps": STEPS})
        return merged(base, changes)


TOPOLOGIES = {
    2: ("ring", "one-peer-exp", "complete", "nodes-of-1", "uneven-pairs"),
    3: ("ring", "one-peer-exp", "complete", "uneven-pairs", "uneven-groups"),
    4: ("ring", "one-peer-exp", "complete", "nodes-of-1", "nodes-of-2", "uneven-pairs", "uneven-groups"),
    8: ("ring", "one-peer-exp", "complete", "nodes-of-2", "nodes-of-4", "uneven-pairs", "uneven-groups"),
}
GRID = [Case(workers, topology, comm_dtype, slices) for workers, names in TOPOLOGIES.items()
        for topology, comm_dtype, slices in itertools.product(names, ("fp32", "bf16", "modulo2", "modulo4"), (1, 3))]
# Every value once at least.
FEW = [Case(2, "ring"), Case(2, "uneven-pairs", "modulo4"), Case(3, "uneven-pairs", "fp32", 3), Case(3, "complete", "modulo2"),
       Case(4, "one-peer-exp", "modulo4", 3), Case(4, "uneven-groups", "bf16", 3), Case(8, "nodes-of-2", "bf16"),
       Case(3, "complete"), Case(4, "nodes-of-2", "fp32", 3), Case(8, "uneven-groups", "bf16")]
