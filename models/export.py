#!/usr/bin/env python3
"""Exports the models of this folder:
    python models/export.py                                 # all that are kept in models/
    python models/export.py gpt_11m --folder build/models   # these, to that folder
    python models/export.py digits_cnn.onnx                 # as ONNX (needs the packages onnx and onnxscript)
    python models/export.py digits_cnn.pt2                  # as an archive of torch.export

Your own model takes two lines (decent-train trains what forward does; leave the module in train mode):
    import torch
    torch.jit.script(MyModel()).save("my_model.pt")

The weights come from a fixed seed and TorchScript's text from a fixed hash seed, so running this again gives the
same files, byte for byte (with the same version of PyTorch), whichever models are asked for.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

from char_gpt import char_gpt, gpt_11m, gpt_85m
from digits import DigitsCNN, DigitsMLP
from resnet import ResNet18, resnet18_small_images
from seq2seq import pronunciation
from table import table_mlp
from torchscript import export

FOLDER = Path(__file__).resolve().parent
KEPT = {"digits_mlp": DigitsMLP, "digits_cnn": DigitsCNN, "char_gpt": char_gpt, "table_mlp": table_mlp,
        "pronunciation": pronunciation}
MODELS = {**KEPT, "gpt_11m": gpt_11m, "gpt_85m": gpt_85m, "resnet18": ResNet18,
          "resnet18_small_images": resnet18_small_images}  # large: made where they are needed
# Inputs for the exports that need some.
EXAMPLES = {"digits_cnn": torch.zeros(2, 1, 8, 8), "char_gpt": torch.zeros(2, 128, dtype=torch.int64),
            "gpt_11m": torch.zeros(2, 256, dtype=torch.int64), "gpt_85m": torch.zeros(2, 256, dtype=torch.int64),
            "resnet18": torch.zeros(2, 3, 64, 64)}
KEPT_EXPORTS = ["digits_cnn.onnx", "digits_cnn.pt2"]


def export_onnx(model: nn.Module, x: torch.Tensor, path: Path) -> None:
    """In the form that keeps training possible: in train mode, nothing folded, the batch size free. Without what the
    exporter notes about the Python source: it holds the paths of this machine."""
    import onnx

    program = torch.onnx.export(model.train(), (x,), dynamo=True, optimize=False, dynamic_shapes=({0: "batch"},),
                                input_names=["x"], output_names=["logits"], verbose=False)
    program.save(str(path), external_data=False)
    file = onnx.load(path)
    for node in file.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    path.write_bytes(file.SerializeToString(deterministic=True))


def export_pt2(model: nn.Module, x: torch.Tensor, path: Path) -> None:
    """In train mode, so that dropout and batch norm can be switched, the batch size free. Without what the exporter
    notes about the Python source."""
    program = torch.export.export(model.train(), (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    torch.export.save(program, path)


EXPORTERS = {".onnx": export_onnx, ".pt2": export_pt2}  # that trace a forward


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Exports models.")
    known = [*MODELS, *(f"{name}{extension}" for name in EXAMPLES for extension in EXPORTERS)]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(known)}")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write them (default: models)")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"there is no model {', '.join(unknown)}; there are {', '.join(known)}")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    names = arguments.names or [*KEPT, *KEPT_EXPORTS]
    if len(names) > 1 or os.environ.get("PYTHONHASHSEED") != "0":
        # A process for each model, and hashes that do not vary: TorchScript's names for classes depend on what was
        # scripted before, and it writes constants in the order of a Python set.
        for name in names:
            command = [sys.executable, __file__, name, "--folder", str(arguments.folder)]
            subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "0"}, check=True)
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    name, extension = os.path.splitext(names[0])
    model = MODELS[name]()
    path = arguments.folder / f"{name}{extension or '.pt'}"
    if extension:
        EXPORTERS[extension](model, EXAMPLES[name], path)
    else:
        export(model, path)
    print(f"{path}: {sum(p.numel() for p in model.parameters())} parameters")


if __name__ == "__main__":
    main()
