"""Runs an .onnx file in onnxruntime, in a process of its own: a file that crashes it is a failure, not the end.

    python inference.py MODEL.onnx INPUTS.npz OUTPUTS.npz
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np


def run(model: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Input name -> array; the outputs by name."""
    given, made = model.with_suffix(".inputs.npz"), model.with_suffix(".outputs.npz")
    np.savez(given, **inputs)
    ended = subprocess.run([sys.executable, __file__, model, given, made], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, f"onnxruntime on {model}: exit {ended.returncode}\n{ended.stderr}"
    with np.load(made) as arrays:
        return dict(arrays)


def main(model: str, given: str, made: str) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    with np.load(given) as arrays:
        outputs = session.run(names, dict(arrays))
    np.savez(made, **dict(zip(names, outputs)))


if __name__ == "__main__":
    main(*sys.argv[1:])
