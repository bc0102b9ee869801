#!/usr/bin/env python3
"""Exports every model of this folder to models/*.pt:  python models/export.py

Your own model takes two lines (decent-train trains what forward does; leave the module in train mode):
    import torch
    torch.jit.script(MyModel()).save("my_model.pt")

The weights come from a fixed seed and TorchScript's text from a fixed hash seed, so running this again gives the
same files, byte for byte (with the same version of PyTorch).
"""

import os
import sys
from pathlib import Path

import torch
from torch import nn

from digits import DigitsCNN, DigitsMLP

FOLDER = Path(__file__).resolve().parent
MODELS = {"digits_mlp": DigitsMLP, "digits_cnn": DigitsCNN}


def export(model: nn.Module, path: Path) -> None:
    """Saves the scripted model, without debug records: they hold the paths of this machine's Python files."""
    torch.jit.script(model.train()).save(str(path))
    reader = torch._C.PyTorchFileReader(str(path))
    names = [n for n in reader.get_all_records() if not n.endswith(".debug_pkl") and not n.startswith(".data/")]
    records = {n: reader.get_record(n) for n in names if n != "version"}
    del reader
    writer = torch._C.PyTorchFileWriter(str(path))
    for name, data in records.items():
        writer.write_record(name, data, len(data))
    writer.write_end_of_file()


def main() -> None:
    if os.environ.get("PYTHONHASHSEED") != "0":  # TorchScript writes constants in the order of a Python set
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    for name, make in MODELS.items():
        torch.manual_seed(0)
        model = make()
        export(model, FOLDER / f"{name}.pt")
        print(f"models/{name}.pt: {sum(p.numel() for p in model.parameters())} parameters")


if __name__ == "__main__":
    main()
