#!/usr/bin/env python3
"""Writes configs/data/breast_cancer.csv, the table that configs/breast_cancer.yaml learns.

It is "Breast Cancer Wisconsin (Diagnostic)", UCI Machine Learning Repository, by W. Wolberg, O. Mangasarian, N. Street and
W. Street (1993), https://doi.org/10.24432/C5DW2B, licensed CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/), in the form
that scikit-learn ships. Changes: a line of column names, and the diagnosis as a word.

569 rows of 30 measurements of cell nuclei and the diagnosis, malignant or benign.

decent-train does not need this script, the file is part of the repository. To make it again:
    pip install scikit-learn && python tools/make_breast_cancer.py
"""

import csv
from pathlib import Path

OUTPUT = Path(__file__).resolve().parent.parent / "configs" / "data" / "breast_cancer.csv"


def main() -> None:
    import sklearn.datasets

    names = [name.replace(" ", "_") for name in sklearn.datasets.load_breast_cancer().feature_names]
    source = Path(sklearn.datasets.__file__).parent / "data" / "breast_cancer.csv"
    with source.open(newline="") as file:
        (_, _, *words), *rows = csv.reader(file)
    lines = [",".join([*names, "diagnosis"])]
    lines += [",".join([*row[:-1], words[int(row[-1])]]) for row in rows]
    OUTPUT.write_text("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    main()
