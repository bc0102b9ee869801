#!/usr/bin/env python3
"""Writes configs/data/opticks-{train,eval}.txt, the text that configs/char_gpt.yaml learns.

It is Isaac Newton, "Opticks", 4th edition, London 1730: in the public domain. The copy, transcribed by Suzanne Lybarger,
Steve Harris, Josephine Paolucci and Distributed Proofreaders for Project Gutenberg (no. 33504), is the one that Debian's
package golang-1.19-src carries as testdata/Isaac.Newton-Opticks.txt. Left out: the transcribers' four lines at its head.
The last tenth of the book is for evaluation.

decent-train does not need this script, the files are part of the repository. To make them again:
    apt-get install golang-1.19-src && python tools/make_opticks.py
"""

import sys
from pathlib import Path

SOURCE = Path("/usr/share/go-1.19/src/testdata/Isaac.Newton-Opticks.txt")
FOLDER = Path(__file__).resolve().parent.parent / "configs" / "data"


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE
    text = source.read_bytes()
    text = text[text.index(b"OPTICKS:"):]
    cut = len(text) * 9 // 10
    for part, piece in (("train", text[:cut]), ("eval", text[cut:])):
        path = FOLDER / f"opticks-{part}.txt"
        path.write_bytes(piece)
        print(f"{path}: {len(piece)} bytes")


if __name__ == "__main__":
    main()
