"""Data of each format, and the Dataset with which a PyTorch program would read it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, TensorDataset, default_collate

from images import photo

LENGTH = 128  # of windows


@dataclass
class Case:
    recipe: dict                      # what of it is not the same for all
    dataset: Callable[[], Dataset]
    collate: Callable = default_collate


def source(**options: object) -> dict:
    return {"data": {"train": {key: str(value) if isinstance(value, Path) else value for key, value in options.items()}}}


def idx(folder: Path) -> Case:
    """As large as MNIST, through torchvision's own class for it."""
    import torchvision
    from torchvision.transforms import ToTensor
    random = np.random.default_rng(0)
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part, samples in (("train", 60_000), ("t10k", 1)):
        for what, array in (("images-idx3", random.integers(0, 256, (samples, 28, 28), np.uint8)),
                            ("labels-idx1", random.integers(0, 10, samples, np.uint8))):
            head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
            (raw / f"{part}-{what}-ubyte").write_bytes(head + array.tobytes())
    return Case(source(format="idx", images=raw / "train-images-idx3-ubyte", labels=raw / "train-labels-idx1-ubyte"),
                lambda: torchvision.datasets.MNIST(folder, transform=ToTensor()))


def images(folder: Path) -> Case:
    """JPEG files of 500 x 375, resized to 72, cropped to 64 at random, flipped and normalized."""
    from torchvision import datasets, transforms
    content = photo(375, 500)
    for number in range(480):
        file = folder / "images" / str(number % 10) / f"{number}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    recipe = source(format="images", path=folder / "images")
    recipe["data"]["transforms"] = [{"resize": 72}, {"random_crop": 64}, "flip", {"normalize": {"mean": 0.5, "std": 0.25}}]
    steps = transforms.Compose([transforms.Resize(72), transforms.RandomCrop(64), transforms.RandomHorizontalFlip(),
                                transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.25] * 3)])
    return Case(recipe, lambda: datasets.ImageFolder(folder / "images", steps))


class Table(Dataset):
    """Read whole into memory at the start."""

    def __init__(self, path: Path) -> None:
        self.rows = torch.from_numpy(np.loadtxt(path, dtype=np.float32, delimiter=",", skiprows=1))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.rows[index, :-1], self.rows[index, -1:]


class TableOnDisk(Dataset):
    """Need not fit into memory: the place of each row is remembered, and a row is read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path, self.file, self.begin = path, None, []
        with path.open("rb") as file:
            at = len(file.readline())
            for line in file:
                self.begin.append(at)
                at += len(line)

    def __len__(self) -> int:
        return len(self.begin)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if self.file is None:  # of each process
            self.file = self.path.open("rb")
        self.file.seek(self.begin[index])
        row = torch.tensor([float(cell) for cell in self.file.readline().split(b",")])
        return row[:-1], row[-1:]


def table(folder: Path, dataset: type[Dataset]) -> Case:
    """32 columns of numbers of six digits, 29 MB."""
    path = folder / "table.csv"
    rows = np.random.default_rng(1).normal(size=(100_000, 32))
    np.savetxt(path, rows, fmt="%.6g", delimiter=",", header=",".join(f"c{i}" for i in range(32)), comments="")
    return Case(source(format="csv", path=path), lambda: dataset(path))


class Pairs(Dataset):
    """Texts as lists in memory; words become numbers when a sample is read."""

    def __init__(self, path: Path) -> None:
        self.pairs = [line.rstrip("\n").split("\t") for line in path.read_text().splitlines()]
        counts: dict[str, int] = {}
        for pair in self.pairs:
            for word in " ".join(pair).split():
                counts[word] = counts.get(word, 0) + 1
        self.number = {word: 4 + i for i, word in enumerate(sorted(counts, key=lambda word: (-counts[word], word)))}

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return tuple(torch.tensor([self.number[word] for word in text.split()]) for text in self.pairs[index])


def padded(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[torch.Tensor, ...]:
    """The fields of the format pairs."""
    begin, end = torch.tensor([1]), torch.tensor([2])
    x = pad_sequence([a for a, _ in pairs], batch_first=True)
    y_in = pad_sequence([torch.cat([begin, b]) for _, b in pairs], batch_first=True)
    y = pad_sequence([torch.cat([b, end]) for _, b in pairs], batch_first=True, padding_value=-100)
    return x, x != 0, y_in, y


def pairs(folder: Path) -> Case:
    """Texts of 1 to 40 words of 5000, padded to the longest of the batch."""
    random = np.random.default_rng(2)
    words = [f"word{i}" for i in range(5000)]
    path = folder / "pairs.tsv"
    with path.open("w") as file:
        for _ in range(20_000):
            print(*(" ".join(random.choice(words, random.integers(1, 41))) for _ in range(2)), sep="\t", file=file)
    recipe = source(format="pairs", path=path, length=41, pad="batch")
    return Case({**recipe, "model": {"inputs": ["x", "x_mask", "y_in"]}}, lambda: Pairs(path), padded)


class Windows(Dataset):
    """Reads as nanoGPT does: from the mapped file, widened to int64."""

    def __init__(self, path: Path, dtype: type) -> None:
        self.ids = np.memmap(path, dtype, "r")

    def __len__(self) -> int:
        return (len(self.ids) - 1) // LENGTH

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        ids = torch.from_numpy(self.ids[index * LENGTH:(index + 1) * LENGTH + 1].astype(np.int64))
        return ids[:-1], ids[1:]


def windows(folder: Path, name: str, dtype: type) -> Case:
    """Windows of 128 of 20 million ids."""
    path = folder / name
    np.random.default_rng(3).integers(0, 256, 20_000_000).astype(dtype).tofile(path)
    return Case(source(format=name, path=path, length=LENGTH), lambda: Windows(path, dtype))


def arrays() -> dict[str, np.ndarray]:
    """As large as CIFAR-10's images, a fifth as many."""
    random = np.random.default_rng(4)
    return {"x": random.random((10_000, 3, 32, 32), np.float32), "y": random.integers(0, 10, 10_000)}


def npz(folder: Path) -> Case:
    np.savez(folder / "a.npz", **arrays())

    def dataset() -> Dataset:
        content = np.load(folder / "a.npz")
        return TensorDataset(*(torch.from_numpy(content[name]) for name in ("x", "y")))

    return Case(source(format="npz", path=folder / "a.npz"), dataset)


def safetensors(folder: Path) -> Case:
    from safetensors.numpy import save_file
    from safetensors.torch import load_file
    save_file(arrays(), folder / "a.safetensors")

    def dataset() -> Dataset:
        content = load_file(folder / "a.safetensors")
        return TensorDataset(content["x"], content["y"])

    return Case(source(format="safetensors", path=folder / "a.safetensors"), dataset)


CASES: dict[str, Callable[[Path], Case]] = {
    "idx": idx,
    "images": images,
    "csv": lambda folder: table(folder, Table),
    "csv (DataLoader from disk)": lambda folder: table(folder, TableOnDisk),
    "pairs": pairs,
    "tokens": lambda folder: windows(folder, "tokens", np.uint16),
    "text": lambda folder: windows(folder, "text", np.uint8),
    "npz": npz,
    "safetensors": safetensors}
