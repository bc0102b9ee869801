"""Runs whose workers are on two hosts without a shared file system."""

from __future__ import annotations

import json
from pathlib import Path

import hosts
from ports import free_port
from program import PROGRAM, Ended, environment, launcher_variables, run_commands


def commands_on(made: list[hosts.Host], folder: Path, recipe: dict, *flags: object, workers: int = 4,
                folders: tuple[str, str] = ("a", "b")) -> tuple[list[list[object]], list[dict[str, str]]]:
    """Half of the workers on each host, with an output folder of its own: <folder>/a and <folder>/b."""
    port, local = free_port(), workers // 2
    commands, environments = [], []
    for rank in range(workers):
        host = rank // local
        folder.mkdir(exist_ok=True)
        config = folder / f"{folders[host]}.yaml"
        config.write_text(json.dumps({**recipe, "output": str(folder / folders[host])}))
        commands.append([*made[host].prefix, PROGRAM, "--config", config, *flags])
        own = {**launcher_variables(rank, workers, port, local=local), "MASTER_ADDR": made[0].address}
        environments.append(environment(**own))
    return commands, environments


def run_on(*arguments: object, **options: object) -> list[Ended]:
    commands, environments = commands_on(*arguments, **options)
    return run_commands(commands, environments, arguments[1])


def check_well(ended: list[Ended]) -> None:
    assert [e.code for e in ended] == [0] * len(ended), "\n".join(e.err + e.out for e in ended)
