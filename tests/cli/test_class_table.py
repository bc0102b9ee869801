"""--eval-only tells how each class does: on the screen, and as CSV beside the metrics."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from predictions import read_predictions
from program import Ended
from runs import NO_CHECKPOINTS, attempt, merged, recipe, train
from tensors import write_safetensors

NAMES = ["ant", 'the "cat", wet', "dog\nnew line", "never"]
ROWS = 90


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, len(NAMES))

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x)


def write_table(path: Path) -> np.ndarray:
    """Classes of 90 rows: the third is rare, the fourth stands in one row. Returns their numbers in the order of names."""
    random = np.random.default_rng(4)
    classes = random.choice(4, ROWS, p=[0.5, 0.4, 0.08, 0.02])
    classes[0] = 3
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "what"])
        writer.writerows([*(f"{value:.3f}" for value in random.normal(size=2) + [number, -number]), NAMES[number]]
                         for number in classes)
    order = sorted(NAMES)
    return np.array([order.index(NAMES[number]) for number in classes])


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict, np.ndarray]:
    folder = tmp_path_factory.mktemp("classes")
    truths = write_table(folder / "table.csv")
    torch.manual_seed(2)
    torch.jit.script(Net()).save(str(folder / "net.pt"))
    source = {"format": "csv", "path": str(folder / "table.csv"), "y": "what"}
    own = recipe(folder / "net.pt", data={"train": source, "eval": source, "eval_batch_size": 7}, train={"steps": 20},
                 optimizer={"name": "adamw", "lr": 0.05}, checkpoint=merged(NO_CHECKPOINTS, {"every_steps": 20}))
    train(folder, own)
    return folder, own, truths


def evaluated(folder: Path, own: dict, workers: int = 1, flags: Sequence[object] = ()) -> Ended:
    ended = attempt(folder, own, "--eval-only", *flags, workers=workers)
    assert [each.code for each in ended] == [0] * workers, ended[0].err
    return ended[0]


def matrix_of(folder: Path, truths: np.ndarray) -> np.ndarray:
    rows = np.genfromtxt((line for line in csv_numbers(folder / "table.csv")), delimiter=",", dtype=np.float32)
    with torch.no_grad():
        predicted = torch.jit.load(str(folder / "run" / "model.pt"))(torch.from_numpy(rows)).argmax(1).numpy()
    matrix = np.zeros((4, 4), np.int64)
    np.add.at(matrix, (truths, predicted), 1)
    return matrix


def csv_numbers(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return [",".join(row[:2]) for row in list(csv.reader(file))[1:]]


def read_csv(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("workers", [1, 3])
def test_table_and_matrix(own: tuple[Path, dict, np.ndarray], workers: int) -> None:
    folder, settings, truths = own
    for name in ("eval-classes.csv", "eval-confusion.csv"):
        (folder / "run" / name).unlink(missing_ok=True)
    out = evaluated(folder, settings, workers).out
    wanted = matrix_of(folder, truths)
    assert wanted.sum() == ROWS and np.count_nonzero(wanted) > 4
    head, *rows = read_csv(folder / "run" / "eval-confusion.csv")
    assert head == ["true \\ predicted", *sorted(NAMES)] and [row[0] for row in rows] == sorted(NAMES)
    assert np.array_equal(np.array([row[1:] for row in rows], int), wanted)
    head, *rows = read_csv(folder / "run" / "eval-classes.csv")
    assert head == ["class", "samples", "predicted", "right", "precision", "recall", "f1"]
    for number, row in enumerate(rows):
        right, samples, predicted = wanted[number, number], wanted[number].sum(), wanted[:, number].sum()
        assert row[:4] == [sorted(NAMES)[number], str(samples), str(predicted), str(right)]
        shares = [right / max(predicted, 1), right / max(samples, 1), 2 * right / max(predicted + samples, 1)]
        assert [float(value) for value in row[4:]] == pytest.approx(shares, rel=1e-15)
    table = out[out.index("  class "):].splitlines()
    assert len(table) == 5
    assert table[1].split()[:2] == ["ant", str(wanted[0].sum())]
    assert any(line.startswith("  dog?new line ") for line in table), table  # one line each


def test_a_checkpoint_of_another_run_has_its_names(own: tuple[Path, dict, np.ndarray], tmp_path: Path) -> None:
    """And leaves the tables of the run in the output folder as they are."""
    folder, settings, _ = own
    evaluated(folder, settings)
    tables = [folder / "run" / name for name in ("eval-classes.csv", "eval-confusion.csv")]
    before = [table.read_bytes() for table in tables]
    (tmp_path / "table.csv").write_text((folder / "table.csv").read_text().replace("ant", "aardvark"))
    source = {"format": "csv", "path": str(tmp_path / "table.csv"), "y": "what"}
    other = train(tmp_path, merged(settings, {"data": {"train": source, "eval": source}}))
    out = evaluated(folder, settings, flags=["--checkpoint", other.checkpoint(20), "--set", f"data.eval.path={tmp_path / 'table.csv'}"]).out
    assert "aardvark" in out and "  ant " not in out
    assert [table.read_bytes() for table in tables] == before


def test_without_a_run_there_are_no_files(own: tuple[Path, dict, np.ndarray], tmp_path: Path) -> None:
    _, settings, _ = own
    ended = attempt(tmp_path, settings, "--eval-only", "--checkpoint", "none")
    assert [each.code for each in ended] == [0] and "  class " in ended[0].out
    assert not (tmp_path / "run").exists()


def test_no_table_of_bytes_and_numbers(tmp_path: Path) -> None:
    """Of each byte of a text there would be 256 lines that say little."""
    random = np.random.default_rng(1)
    write_safetensors(tmp_path / "bytes.safetensors", {"x": random.normal(size=(16, 3, 2)).astype(np.float32),
                                                       "y": random.integers(0, 4, (16, 3))})
    write_safetensors(tmp_path / "numbers.safetensors", {"x": random.normal(size=(16, 2)).astype(np.float32),
                                                         "y": random.normal(size=(16, 4)).astype(np.float32)})
    torch.jit.script(Net()).save(str(tmp_path / "net.pt"))
    for name, model in {"bytes": {}, "numbers": {"loss": "mse"}}.items():
        run = recipe(tmp_path / "net.pt", tmp_path / f"{name}.safetensors", model=model)
        ended = attempt(tmp_path, run, "--eval-only", "--checkpoint", "none")
        assert [each.code for each in ended] == [0], ended[0].err
        assert "eval at step" in ended[0].out and "  class " not in ended[0].out


def test_inputs_are_not_written_over(own: tuple[Path, dict, np.ndarray]) -> None:
    folder, settings, _ = own
    copy = folder / "run" / "eval-classes.csv"
    copy.write_bytes((folder / "table.csv").read_bytes())
    before = copy.read_bytes()
    source = {"format": "csv", "path": str(copy), "y": "what"}
    ended = attempt(folder, merged(settings, {"data": {"eval": source}}), "--eval-only")
    assert [each.code for each in ended] == [2] and "eval-classes.csv" in ended[0].err
    assert copy.read_bytes() == before


def test_names_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    """Texts get the mark of a text, numbers do not; whoever reads the tables takes it away again."""
    names = ["=cmd()", "-5", "-a", "'b", "@c", "+d", "plain"]
    (tmp_path / "table.csv").write_text("a,b,what\n" + "".join(f"{i},{i % 3},{names[i % 7]}\n" for i in range(28)))
    torch.jit.script(nn.Linear(2, 7)).save(str(tmp_path / "net.pt"))
    source = {"format": "csv", "path": str(tmp_path / "table.csv"), "y": "what", "y_type": "class"}
    own = recipe(tmp_path / "net.pt", data={"train": source, "eval": source, "predict": source}, checkpoint={"every_steps": 12})
    run = train(tmp_path, own)
    evaluated(tmp_path, own)
    marked = [name if name in ("-5", "plain") else "'" + name for name in sorted(names)]
    for file in ("eval-classes.csv", "eval-confusion.csv"):
        assert [row[0] for row in read_csv(run.folder / file)[1:]] == marked
    assert read_csv(run.folder / "eval-confusion.csv")[0][1:] == marked
    attempt(tmp_path, own, "--predict", "p.csv")
    with (tmp_path / "p.csv").open(newline="") as table:
        written = [row["class"] for row in csv.DictReader(table)]
    assert len(written) == 28 and set(written) <= set(marked)
    unmarked = dict(zip(marked, sorted(names)))
    assert list(read_predictions(tmp_path / "p.csv")["class"]) == [unmarked[each] for each in written]
    page = (run.folder / "report.html").read_text()
    assert "=cmd()" in page and "'=cmd()" not in page
