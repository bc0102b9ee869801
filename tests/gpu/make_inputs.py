"""Models, data and recipes of the steps that need others than the repository's: make_inputs.py FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from gpu_inputs import save_net, write_a_bad_sample  # noqa: E402


def write_recipe(path: Path, model: str, data: dict, **sections: dict) -> None:
    recipe = {"model": {"path": model, "device": "cuda"}, "log": {"every_steps": 1},
              "data": {"train": {"format": "safetensors", "path": "bad.safetensors"}, **data}, **sections}
    path.write_text(json.dumps(recipe))


if __name__ == "__main__":
    out = Path(sys.argv[1])
    write_a_bad_sample(out / "bad.safetensors", 137, pixel=99)
    save_net("index", out / "bad.pt")
    save_net("attention", out / "traced.pt")
    write_recipe(out / "bad.yaml", "bad.pt", {"batch_size": 4, "shuffle": False}, train={"steps": 50})
    # Of weights that are made where it is run.
    write_recipe(out / "weights.yaml", "weights.pt", {"batch_size": 2}, train={"steps": 20}, checkpoint={"every_steps": 10})
