"""A network is cut in two while a run trains on four machines: one part saves, the other one writes nothing more."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hosts
from program import PROGRAM, environment, launcher_variables, run_workers
from runs import Run, on_each, recipe, write_recipe

REASON = hosts.why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
TIMEOUT_S, FAREWELL_S = 3, 10
ENDLESS = recipe(train={"steps": 1000000}, parallel={"timeout_s": TIMEOUT_S, "farewell_s": FAREWELL_S, "topology": "ring"},
                 eval={"every_steps": 7}, checkpoint={"every_steps": 5, "keep": 2})
FOLDERS = {"one folder": ("run", "run", "run", "run"), "folders of their own": ("a", "b", "c", "d")}


class Apart:
    """A worker on each of four machines."""

    def __init__(self, made: list[hosts.Host], folder: Path, outputs: tuple[str, ...]) -> None:
        self.hosts, self.folder, self.outputs = made, folder, outputs
        config = write_recipe(folder, ENDLESS)
        self.processes, self.files = [], []
        for rank, host in enumerate(made):
            variables = launcher_variables(rank, len(made), 29500, local=1) | {"MASTER_ADDR": made[0].address}
            self.files.append((folder / f"{rank}.said").open("w"))
            self.processes.append(subprocess.Popen(
                [*host.prefix, PROGRAM, "--config", config, "--set", f"output={folder / outputs[rank]}"],
                env=environment(**variables), cwd=folder, stdin=subprocess.DEVNULL, stdout=self.files[-1], stderr=subprocess.STDOUT))

    def run(self, rank: int) -> Run:
        return Run(self.folder / self.outputs[rank], [])

    def said(self) -> str:
        return "\n".join((self.folder / f"{rank}.said").read_text() for rank in range(len(self.hosts)))

    def wait_until_it_trains(self) -> None:
        deadline = time.monotonic() + 60
        while len(self.run(3).checkpoints) < 2:
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.01)

    def cut(self, *parts: set[int]) -> None:
        """No packet passes from one part to another."""
        for part in parts:
            for rank in part:
                others = ", ".join(self.hosts[other].address for other in range(len(self.hosts)) if other not in part)
                rules = f"table ip cut {{ chain input {{ type filter hook input priority 0;\nip saddr {{ {others} }} drop\n}}\n}}\n"
                subprocess.run([*self.hosts[rank].prefix, "nft", "-f", "-"], input=rules, text=True, check=True)

    def codes(self) -> list[int]:
        deadline = time.monotonic() + TIMEOUT_S + FAREWELL_S + 15
        return [process.wait(max(0.1, deadline - time.monotonic())) for process in self.processes]

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for file in self.files:
            file.close()


@pytest.fixture
def apart(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Apart]:
    with hosts.hosts(4) as made:
        run = Apart(made, tmp_path, FOLDERS[request.param])
        try:
            yield run
        finally:
            run.end()


def lost_in(checkpoint: Path) -> list[int]:
    return json.loads((checkpoint / "manifest.json").read_text()).get("lost", [])


@pytest.mark.parametrize("larger", [{0, 1}, {1, 2, 3}], ids=["halves", "without worker 0"])
@pytest.mark.parametrize("apart", FOLDERS, indirect=True)
def test_one_part_saves(larger: set[int], apart: Apart) -> None:
    """Of two halves that with worker 0, else the larger part."""
    apart.wait_until_it_trains()
    smaller = set(range(4)) - larger
    apart.cut(larger, smaller)
    assert apart.codes() == [3, 3, 3, 3], apart.said()
    saved = re.findall(r"The others have saved all steps in '.*/step-(\d+)'", apart.said())
    assert len(saved) == 1, apart.said()
    step = int(saved[0])
    assert apart.said().count("These workers save nothing, because as many others may still be there, or more") == 1, apart.said()
    for rank in larger:
        assert apart.run(rank).checkpoints[-1] == step
        assert lost_in(apart.run(rank).checkpoint(step)) in (sorted(smaller), [])  # none: it was saved before
    for rank in smaller:
        for each in apart.run(rank).checkpoints:
            assert lost_in(apart.run(rank).checkpoint(each)) in ([], sorted(smaller)), each
    outputs = tuple(dict.fromkeys(apart.outputs[rank] for rank in sorted(larger)))
    ending = ("--resume", "auto", "--set", f"train.steps={step + 3}")
    if len(outputs) == 1:
        ended = run_workers(len(larger), "--config", apart.folder / "recipe.yaml", "--set", f"output={apart.folder / outputs[0]}", *ending)
    else:
        ended = on_each(apart.folder, ENDLESS, *ending, outputs=outputs)
    assert [each.code for each in ended] == [0] * len(larger), ended
    assert f"after step {step} of {step + 3}" in ended[0].out
