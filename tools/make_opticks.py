#!/usr/bin/env python3
"""Writes configs/data/opticks-{train,eval}.safetensors, the text that configs/char_gpt.yaml learns.

It is Isaac Newton, "Opticks", 4th edition, London 1730: in the public domain. The copy, transcribed by Suzanne Lybarger,
Steve Harris, Josephine Paolucci and Distributed Proofreaders for Project Gutenberg (no. 33504), is the one that Debian's
package golang-1.19-src carries as testdata/Isaac.Newton-Opticks.txt. Left out: the transcribers' four lines at its head.

The text is cut into n passages of 128 bytes, without overlap; x is a passage and y the same shifted by one byte, both
uint8 [n, 128]. The last tenth of the book is for evaluation.

decent-train does not need this script, the files are part of the repository. To make them again:
    apt-get install golang-1.19-src && python tools/make_opticks.py
"""

import json
import sys
from pathlib import Path

import numpy as np

SOURCE = Path("/usr/share/go-1.19/src/testdata/Isaac.Newton-Opticks.txt")
FOLDER = Path(__file__).resolve().parent.parent / "configs" / "data"
LENGTH = 128


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    header, offset = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "U8", "shape": tensor.shape, "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(t.tobytes() for t in tensors.values()))


def passages(text: np.ndarray) -> dict[str, np.ndarray]:
    count = (len(text) - 1) // LENGTH
    return {name: text[shift : shift + count * LENGTH].reshape(count, LENGTH)
            for name, shift in (("x", 0), ("y", 1))}


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE
    text = np.frombuffer(source.read_bytes(), dtype=np.uint8)
    text = text[text.tobytes().index(b"OPTICKS:"):]
    cut = len(text) * 9 // 10
    for part, piece in (("train", text[:cut]), ("eval", text[cut:])):
        path = FOLDER / f"opticks-{part}.safetensors"
        write_safetensors(path, passages(piece))
        print(f"{path}: {len(piece)} bytes of text, {(len(piece) - 1) // LENGTH} passages")


if __name__ == "__main__":
    main()
