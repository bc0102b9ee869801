"""Writes a model as TorchScript, the same bytes on every machine."""

from pathlib import Path

import torch
from torch import nn


def export(model: nn.Module, path: Path) -> None:
    """Saves the scripted model, without debug records: they hold the paths of this machine's Python files."""
    torch.jit.script(model.train()).save(str(path))
    reader = torch._C.PyTorchFileReader(str(path))
    names = reader.get_all_records()
    version = next(n for n in ("version", ".data/version") if n in names)  # its place depends on its value
    kept = [n for n in names if not n.endswith(".debug_pkl") and not n.startswith(".data/") and n != version]
    records = {n: reader.get_record(n) for n in kept}
    operators_version = int(reader.get_record(version))  # what the operators in the text mean
    del reader
    writer = torch._C.PyTorchFileWriter(str(path))
    writer.set_min_version(operators_version)
    for name, data in records.items():
        writer.write_record(name, data, len(data))
    writer.write_end_of_file()
