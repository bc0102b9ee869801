"""Images with masks: training, figures and predictions of a class for each pixel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from predictions import outputs_of, predict, predicted
from runs import Run, assert_same_weights, assert_says, attempt, error_message, merged, recipe, refused, train

CLASSES, NO_CLASS = 3, 255
HEIGHT, WIDTH, CROP = 20, 24, 16
COUNTS = {"train": 24, "test": 10}


def picture(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A red box and a green one on blue, with noise, and their classes; pixels at the border have none."""
    random = np.random.default_rng(seed)
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    for label in (1, 2):
        top, left = random.integers(1, HEIGHT - 9), random.integers(1, WIDTH - 9)
        mask[top:top + 8, left:left + 8] = label
    colors = np.array([[40, 40, 200], [200, 40, 40], [40, 200, 40]])
    pixels = (colors[mask] + random.normal(0, 25, (HEIGHT, WIDTH, 3))).clip(0, 255).astype(np.uint8)
    mask[[0, -1]] = mask[:, [0, -1]] = NO_CLASS
    return pixels, mask


def save_mask(classes: np.ndarray, file: Path) -> None:
    """As in Pascal VOC: with a palette."""
    image = Image.fromarray(classes)
    image.putpalette(bytes(value * 37 % 256 for value in range(768)))
    image.save(file)


def write_data(folder: Path) -> dict[str, dict]:
    """Images of both parts, their masks, and the sources of both."""
    for part, count in COUNTS.items():
        for number in range(count):
            pixels, mask = picture(number + 1000 * (part == "test"))
            name = Path(part, "even" if number % 2 == 0 else "odd", f"{number:02}")
            for kind in ("images", "masks"):
                (folder / kind / name).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(folder / "images" / name.with_suffix(".webp"), lossless=True)
            save_mask(mask, folder / "masks" / name.with_suffix(".png"))
    return {part: {"format": "images", "path": str(folder / "images" / part), "masks": str(folder / "masks" / part)} for part in COUNTS}


def write_model(folder: Path) -> Path:
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, CLASSES, 1))
    torch.jit.script(net).save(str(folder / "net.pt"))
    return folder / "net.pt"


def settings(folder: Path, sources: dict[str, dict], **changes: object) -> dict:
    own = recipe(folder / "net.pt", model={"class_dim": 1, "ignore_index": NO_CLASS},
                 data={"train": sources["train"], "eval": sources["test"], "batch_size": 4, "eval_batch_size": 4,
                       "transforms": [{"random_crop": {"size": CROP, "padding": 2}}, {"flip": 0.5}]},
                 train={"steps": 60}, optimizer={"lr": 0.02},
                 eval={"every_epochs": 1, "metrics": ["accuracy", "mean_iou", "dice"]}, checkpoint={"every_steps": 30})
    return merged(own, changes)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, dict]:
    folder = tmp_path_factory.mktemp("segmentation")
    write_model(folder)
    own = settings(folder, write_data(folder))
    return train(folder / "trained", own), own


def middle(arrays: np.ndarray) -> np.ndarray:
    """What evaluation sees of pictures: the crop in the middle."""
    top, left = (HEIGHT - CROP) // 2, (WIDTH - CROP) // 2
    return arrays[:, top:top + CROP, left:left + CROP]


def part_of_test() -> tuple[np.ndarray, np.ndarray]:
    """Its images and masks in the order of the source: even numbers first."""
    numbers = [*range(0, COUNTS["test"], 2), *range(1, COUNTS["test"], 2)]
    pictures = [picture(number + 1000) for number in numbers]
    return tuple(np.stack(arrays) for arrays in zip(*pictures))


def inputs_of(pixels: np.ndarray) -> np.ndarray:
    return pixels.transpose(0, 3, 1, 2) / np.float32(255)


def figures(classes: np.ndarray, masks: np.ndarray) -> dict[str, float]:
    """By the definitions: means over the classes that are predicted or true."""
    counts = masks != NO_CLASS
    predicted, truth = classes[counts], masks[counts]
    hits = [np.sum((predicted == label) & (truth == label)) for label in range(CLASSES)]
    both = [np.sum(predicted == label) + np.sum(truth == label) for label in range(CLASSES)]
    return {"accuracy": np.mean(predicted == truth), "mean_iou": np.mean([h / (b - h) for h, b in zip(hits, both)]),
            "dice": np.mean([2 * h / b for h, b in zip(hits, both)])}


def measured(line: dict) -> dict[str, float]:
    return {name: line[name] for name in ("accuracy", "mean_iou", "dice")}


def test_learns(trained: tuple[Run, dict]) -> None:
    run, _ = trained
    figures_by_step = [line["mean_iou"] for line in run.lines("eval")]
    assert figures_by_step[-1] > 0.9 > figures_by_step[0]


def test_figures_on_any_number_of_workers(trained: tuple[Run, dict], tmp_path: Path) -> None:
    run, own = trained
    lines = []
    for workers in (1, 3):
        ended = attempt(tmp_path, merged(own, {"output": str(run.folder)}), "--eval-only", workers=workers)
        assert [e.code for e in ended] == [0] * workers, ended[0].err
        lines.append(measured(run.evaluation))
    assert lines[0] == lines[1]
    images, masks = part_of_test()
    output = outputs_of(run.folder / "model.pt", inputs_of(middle(images)), batch=4)
    assert lines[0] == pytest.approx(figures(output.argmax(1), middle(masks)), rel=1e-12)  # quotients of the same counts


def test_resumes_with_the_same_bits(trained: tuple[Run, dict], tmp_path: Path) -> None:
    """In the middle of an epoch."""
    run, own = trained
    train(tmp_path, merged(own, {"train": {"steps": 33}}))
    assert_same_weights(run, train(tmp_path, own, "--resume", "auto"))


def test_a_list_of_images(trained: tuple[Run, dict], tmp_path: Path) -> None:
    """Its files are relative to its folder, and so are those of the masks."""
    run, own = trained
    images = Path(own["data"]["train"]["path"])
    files = sorted(images.glob("*/*.webp"))
    (images.parent / "list.csv").write_text("".join(f"{file.relative_to(images.parent)}\n" for file in files))
    source = {"format": "images", "path": str(images.parent / "list.csv"), "masks": str(images.parents[1] / "masks")}
    assert_same_weights(run, train(tmp_path, merged(own, {"data": {"train": source}})))


def test_size(trained: tuple[Run, dict], tmp_path: Path) -> None:
    """Masks take the nearest pixels."""
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms.v2 import functional as F

    _, own = trained
    size = [9, 13]
    sources = {part: {**own["data"][part], "size": size} for part in ("train", "eval")}
    line = train(tmp_path, merged(own, {"data": {**sources, "transforms": []}, "train": {"steps": 1}, "eval": {"at_start": True}}))
    images, masks = part_of_test()
    resized = F.resize(torch.from_numpy(inputs_of(images)), size, antialias=True).numpy()
    classes = outputs_of(Path(own["model"]["path"]), resized, batch=4).argmax(1)
    # Images are torchvision's up to 1e-6: the scores of a pixel or two of 1170 may be as near to one another.
    wanted = figures(classes, F.resize(tv_tensors.Mask(torch.from_numpy(masks)), size).numpy())
    assert measured(line.lines("eval")[0]) == pytest.approx(wanted, abs=2e-3)


def test_predictions(trained: tuple[Run, dict], tmp_path: Path) -> None:
    run, own = trained
    source = {"format": "images", "path": own["data"]["eval"]["path"]}
    found = predicted(tmp_path, merged(own, {"output": str(run.folder), "data": {"predict": source}}))
    images, _ = part_of_test()
    wanted = outputs_of(run.folder / "model.pt", inputs_of(middle(images)), batch=4)
    np.testing.assert_allclose(found["output"], wanted, rtol=1e-5, atol=1e-5)  # the average of one replica is rounded once
    np.testing.assert_array_equal(found["class"], found["output"].argmax(1))
    assert found["file"].tolist()[:2] == ["even/00.webp", "even/02.webp"]


def test_predicted_masks(trained: tuple[Run, dict], tmp_path: Path) -> None:
    """The classes of the other formats, the same bytes on any number of workers."""
    run, own = trained
    source = {"format": "images", "path": own["data"]["eval"]["path"]}
    own = merged(own, {"output": str(run.folder), "data": {"predict": source}})
    found = predicted(tmp_path / "arrays", own)
    for workers in (1, 3):
        ended = predict(tmp_path / str(workers), own, "masks/", workers=workers)
        assert [e.code for e in ended] == [0] * workers, ended[0].err
        assert {path.name for path in (tmp_path / str(workers)).iterdir()} == {"predict.yaml", "masks"}
    for name, classes in zip(found["file"], found["class"], strict=True):
        files = [(tmp_path / str(workers) / "masks" / name).with_suffix(".png") for workers in (1, 3)]
        image = Image.open(files[0])
        assert image.mode == "L"
        np.testing.assert_array_equal(np.asarray(image), classes)
        assert files[0].read_bytes() == files[1].read_bytes()
    assert len(list((tmp_path / "1" / "masks").rglob("*.png"))) == COUNTS["test"]
    again = predict(tmp_path / "1", own, "masks/")[0]
    assert again.code == 2
    assert_says(again.err, "--predict 'masks/': there is something of this name already; remove it, or choose another name")


FIRST, ALL = "even/00.png", "*/*.png"
WRONG_MASKS: dict[str, tuple[str, Callable[[Path], None], list[str]]] = {
    "missing": (FIRST, Path.unlink, ["data.train: image 'even/00.webp' has no mask: there is no '", "masks/train/even/00.png'"]),
    "of another size": (ALL, lambda file: save_mask(np.zeros((5, 7), np.uint8), file),
                        [".png': the mask has 7 by 5 pixels, its image '", ".webp' 24 by 20"]),
    "of another class": (FIRST, lambda file: save_mask(np.full((HEIGHT, WIDTH), 7, np.uint8), file),
                         ["data.train: sample 0 ('even/00.webp'), counted from 0: the target has class 7, the model's output has "
                          "3 classes: 0 to 2"]),
    "coloured": (FIRST, lambda file: Image.new("RGB", (WIDTH, HEIGHT)).save(file),
                 ["data.train: ", "masks/train/even/00.png': not a mask: expected one channel of at most 8 bits", "it is RGB"]),
    "no PNG": (FIRST, lambda file: Image.new("L", (WIDTH, HEIGHT)).save(file, "JPEG"),
               ["masks/train/even/00.png': not a mask: expected a PNG image"]),
}


@pytest.mark.parametrize("name", WRONG_MASKS)
def test_wrong_masks(name: str, tmp_path: Path) -> None:
    which, spoil, texts = WRONG_MASKS[name]
    write_model(tmp_path)
    own = settings(tmp_path, write_data(tmp_path))
    for file in list((tmp_path / "masks" / "train").glob(which)):
        spoil(file)
    assert_says(refused(tmp_path / "run", own), *texts)


@pytest.mark.parametrize(("changes", "texts"), [
    ({"model": {"ignore_index": -100}},
     ["the target has class 255, the model's output has 3 classes: 0 to 2; with model.ignore_index: 255, which in masks is no class, "
      "it does not count"]),
    ({"data": {"transforms": [{"trivial_augment": 31}]}},
     ["data.train: transform trivial_augment: it takes no images with masks, and field 'y' is the mask of 'x'"]),
    ({"data": {"transforms": [{"random_crop": CROP}, {"mixup": {"alpha": 1, "num_classes": CLASSES}}]}},
     ["data.train: transform mixup: field 'y' is int64[16, 16] a sample; expected one class"]),
    ({"model": {"class_dim": -1}}, ["the classes in dimension -1 (model.class_dim)"]),
])
def test_keys_that_do_not_fit_masks(changes: dict, texts: list[str], trained: tuple[Run, dict], tmp_path: Path) -> None:
    _, own = trained
    assert_says(refused(tmp_path, merged(own, changes)), *texts)


def test_sources_that_do_not_fit_one_another(trained: tuple[Run, dict], tmp_path: Path) -> None:
    _, own = trained
    masked = own["data"]["train"]
    plain = {"format": "images", "path": masked["path"]}
    for name, sources, text in [
        ("eval", {"train": masked, "eval": plain},
         "data.eval: images: masks: data.train has masks; name the folder of the masks of this data"),
        ("train", {"train": plain, "eval": masked}, "data.eval: images: masks: data.train has no masks; leave it out"),
        ("nowhere", {"train": {**masked, "masks": "nowhere"}, "eval": masked}, "nowhere': expected a folder with a mask for each image"),
    ]:
        assert_says(refused(tmp_path / name, merged(own, {"data": sources})), text)
