"""Transforms against torchvision's on the same random parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torchvision import tv_tensors
from torchvision.transforms.v2 import InterpolationMode, RandomErasing, TrivialAugmentWide
from torchvision.transforms.v2 import functional as F

from image_runs import arrays, photo, run


class Stream:
    """The numbers of lib/decent/data/transforms/sample_random.h."""

    WORD = 2**64 - 1

    def __init__(self, seed: int, epoch: int, sample: int, transform: int = 0) -> None:
        self.key, self.drawn = 0, 0
        for part in (seed, epoch, sample, transform):
            self.key = self.mix(self.key, part)

    def mix(self, key: int, index: int) -> int:
        z = key + (index + 1) * 0x9E3779B97F4A7C15 & self.WORD
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & self.WORD
        z = (z ^ z >> 27) * 0x94D049BB133111EB & self.WORD
        return z ^ z >> 31

    def bits(self) -> int:
        self.drawn += 1
        return self.mix(self.key, self.drawn - 1)

    def uniform(self, low: float = 0, high: float = 1) -> float:
        return low + (self.bits() >> 11) * 2.0**-53 * (high - low)

    def normal(self) -> float:
        return math.sqrt(-2 * math.log(1 - self.uniform())) * math.cos(2 * math.pi * self.uniform())

    def integer(self, n: int) -> int:
        return self.bits() % n  # a number that is drawn again has a chance below n / 2^64


def image(height: int = 37, width: int = 53, channels: int = 3) -> torch.Tensor:
    pixels = photo(height, width, channels).reshape(height, width, channels)
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous() / 255


def samples(x: torch.Tensor, steps: str, count: int, epoch: int = 2) -> list[torch.Tensor]:
    """x as so many samples, with seed 5."""
    shape = ",".join(map(str, x.shape))
    ended = run("transform", 5, epoch, count, shape, steps, stdin=x.numpy().tobytes())
    return [torch.tensor(one) for one in arrays(ended, np.float32)]


def transformed(x: torch.Tensor, steps: str) -> torch.Tensor:
    return samples(x, steps, 1)[0]


def masks(x: torch.Tensor, mask: torch.Tensor, steps: str, count: int) -> list[torch.Tensor]:
    """The mask of x as so many samples, with seed 5 and epoch 2; the images are those without a mask."""
    shape = ",".join(map(str, x.shape))
    ended = run("transform", 5, 2, count, shape, steps, stdin=x.numpy().tobytes() + mask.numpy().tobytes())
    both = [torch.tensor(one) for one in arrays(ended, np.float32)]
    assert all(torch.equal(ours, alone) for ours, alone in zip(both[::2], samples(x, steps, count), strict=True))
    return [one.long() for one in both[1::2]]


def stream(sample: int, transform: int = 0, epoch: int = 2) -> Stream:
    return Stream(5, epoch, sample, transform)


def assert_near(ours: torch.Tensor, theirs: torch.Tensor, most: float = 1e-6) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=most)


@pytest.mark.parametrize("size", [[16], [37], [100], [9, 91], [74, 20], [1, 1], [36, 52]])
@pytest.mark.parametrize("shape", [(37, 53, 3), (53, 37, 1), (8, 300, 3), (1, 1, 3)])
def test_resize(shape: tuple[int, int, int], size: list[int]) -> None:
    """PyTorch has the places of inputs in float32: of a side of 3750 that is 2.6e-6 in the values."""
    x = image(*shape)
    assert_near(transformed(x, "resize size=" + ",".join(map(str, size))), F.resize(x, size, antialias=True), 5e-6)


@pytest.mark.parametrize("size", [(20, 20), (21, 20), (37, 53), (60, 20), (60, 70), (1, 2)])
def test_center_crop(size: tuple[int, int]) -> None:
    x = image()
    assert torch.equal(transformed(x, "center_crop size={},{}".format(*size)), F.center_crop(x, list(size)))


@pytest.mark.parametrize(("keys", "padding"), [
    ("size=32", [0, 0, 0, 0]), ("size=32 padding=4 fill=0.5", [4, 4, 4, 4]),
    ("size=30,60 padding=1,2,9,4", [1, 2, 9, 4]), ("size=32,40 padding=3,1", [3, 1, 3, 1]),
    ("size=41,60 pad_if_needed=true", [7, 4, 7, 4]),
])
def test_random_crop(keys: str, padding: list[int]) -> None:
    x = image()
    padded = F.pad(x, padding, fill=0.5 if "fill" in keys else 0)
    sides = [int(n) for n in keys.split()[0].removeprefix("size=").split(",")]
    height, width = sides[0], sides[-1]
    for sample, ours in enumerate(samples(x, f"random_crop {keys}", 5)):
        draw = stream(sample)
        top = draw.integer(padded.shape[1] - height + 1)
        left = draw.integer(padded.shape[2] - width + 1)
        assert torch.equal(ours, F.crop(padded, top, left, height, width))


def test_random_crop_of_a_small_image() -> None:
    ended = run("transform", 0, 0, 1, "1,3,9", "random_crop size=4", stdin=image(3, 9, 1).numpy().tobytes())
    assert ended.stderr.decode() == "transform random_crop: an image of [3, 9] is too small for a crop of [4, 4]; " \
        "give padding, or pad_if_needed: true\n"


def test_flip() -> None:
    x = image()
    flipped = 0
    for sample, ours in enumerate(samples(x, "flip p=0.25", 40)):
        flip = stream(sample).uniform() < 0.25
        flipped += flip
        assert torch.equal(ours, F.horizontal_flip(x) if flip else x)
    assert 0 < flipped < 40
    assert torch.equal(transformed(x, "flip p=1 direction=vertical"), F.vertical_flip(x))


@pytest.mark.parametrize("ratio", [(3 / 4, 4 / 3), (20, 30)])
def test_random_resized_crop(ratio: tuple[float, float]) -> None:
    x = image()
    steps = "random_resized_crop size=24,20 scale=0.3,1 ratio={},{}".format(*ratio)
    for sample, ours in enumerate(samples(x, steps, 8)):
        draw = stream(sample)
        for _ in range(10):
            area = 37 * 53 * draw.uniform(0.3, 1.0)
            drawn = math.exp(draw.uniform(math.log(ratio[0]), math.log(ratio[1])))
            width, height = round(math.sqrt(area * drawn)), round(math.sqrt(area / drawn))
            if 0 < width <= 53 and 0 < height <= 37:
                top, left = draw.integer(37 - height + 1), draw.integer(53 - width + 1)
                break
        else:
            width, height = 53, round(53 / ratio[0])
            top, left = (37 - height) // 2, 0
        theirs = F.resized_crop(x, top, left, height, width, [24, 20], antialias=True)
        assert_near(ours, theirs)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("factor", [0.0, 0.4, 1.7])
@pytest.mark.parametrize("change", ["brightness", "contrast", "saturation"])
def test_color_jitter(change: str, factor: float, channels: int) -> None:
    x = image(channels=channels)
    theirs = getattr(F, f"adjust_{change}")(x, factor)
    assert_near(transformed(x, f"color_jitter {change}={factor},{factor}"), theirs)


@pytest.mark.parametrize("hue", [-0.5, -0.13, 0.0, 0.4])
def test_hue(hue: float) -> None:
    x = torch.cat([image(), torch.rand(3, 200, 53, generator=torch.Generator().manual_seed(1))], 1)
    x[:, :3] = x[:1, :3]  # gray
    x[1:, 3:5] = x[:1, 3:5].flip(-1)  # two channels alike
    assert_near(transformed(x, f"color_jitter hue={hue},{hue}"), F.adjust_hue(x, hue), 2e-5)


def test_color_jitter_draws() -> None:
    x = image()
    names = ["brightness", "contrast", "saturation", "hue"]
    steps = "color_jitter brightness=0.4 contrast=2 saturation=0.5,0.75 hue=0.1"
    for sample, ours in enumerate(samples(x, steps, 8)):
        draw, order, theirs = stream(sample), list(range(4)), x
        for i in (3, 2, 1):
            j = draw.integer(i + 1)
            order[i], order[j] = order[j], order[i]
        factors = [draw.uniform(0.6, 1.4), draw.uniform(0, 3), draw.uniform(0.5, 0.75), draw.uniform(-0.1, 0.1)]
        for which in order:
            theirs = getattr(F, f"adjust_{names[which]}")(theirs, factors[which])
        assert_near(ours, theirs, 2e-5)


def test_cutout() -> None:
    x = image()
    for sample, ours in enumerate(samples(x, "cutout size=9,10 fill=0.25 p=0.7", 10)):
        draw = stream(sample)
        hole = draw.uniform() < 0.7
        top, left = draw.integer(37) - 4, draw.integer(53) - 5
        bottom, right = min(top + 9, 37), min(left + 10, 53)
        top, left = max(top, 0), max(left, 0)
        theirs = F.erase(x, top, left, bottom - top, right - left, torch.tensor(0.25)) if hole else x
        assert torch.equal(ours, theirs)


TRIVIAL = TrivialAugmentWide(fill=0.25)
CHANGES = list(TRIVIAL._AUGMENTATION_SPACE)
PLACES = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate")
BINS = 31


def magnitude_of(change: str, at: int) -> float:
    """Without the roundings of PyTorch's linspace to float32, which depend on the processor."""
    magnitudes = TRIVIAL._AUGMENTATION_SPACE[change][0](BINS, 0, 0)
    if magnitudes is None:
        return 0.0
    first, last = (round(float(magnitudes[end]), 6) for end in (0, -1))
    exact = float(magnitudes[at]) if change == "Posterize" else first + (last - first) * at / (BINS - 1)
    assert exact == pytest.approx(float(magnitudes[at]), rel=1e-6, abs=1e-6)
    return exact


def trivially_augmented(x: torch.Tensor, change: str, magnitude: float, interpolation: str = "nearest") -> torch.Tensor:
    return TRIVIAL._apply_image_or_video_transform(x, change, magnitude, InterpolationMode(interpolation), TRIVIAL._fill)


def assert_augmented(ours: torch.Tensor, x: torch.Tensor, change: str, magnitude: float, interpolation: str = "nearest") -> None:
    theirs = trivially_augmented(x, change, magnitude, interpolation)
    if change in ("Brightness", "Color", "Contrast", "Sharpness"):
        assert_near(ours, theirs)
    elif change in PLACES and interpolation == "bilinear":  # places in float32: of 23 pixels that is 4e-6 in the values
        assert_near(ours, theirs, 1e-5)
    elif change == "Rotate":  # places in float32: a pixel 1e-4 degrees from the border to the next one may be either
        near = [trivially_augmented(x, change, magnitude + more) for more in (-1e-4, 1e-4)]
        assert torch.stack([ours == each for each in (theirs, *near)]).any(0).all()
    else:
        assert torch.equal(ours, theirs), (change, magnitude)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("channels", [1, 3])
def test_trivial_augment(channels: int, interpolation: str) -> None:
    """Every change at every magnitude. The sides of the image are odd: no shear comes from the border between two pixels."""
    x = image(19, 23, channels)
    counts = {(change, at): 0 for change in CHANGES for at in range(BINS)}
    signs = set()
    for epoch in range(20):
        for sample, ours in enumerate(samples(x, f"trivial_augment fill=0.25 interpolation={interpolation}", 250, epoch)):
            draw = stream(sample, epoch=epoch)
            change, at = CHANGES[draw.integer(len(CHANGES))], draw.integer(BINS)
            magnitude = magnitude_of(change, at)
            if TRIVIAL._AUGMENTATION_SPACE[change][1]:
                sign = -1 if draw.uniform() < 0.5 else 1
                signs.add((change, sign))
                magnitude *= sign
            assert_augmented(ours, x, change, magnitude, interpolation)
            counts[change, at] += 1
    assert min(counts.values()) > 0 and len(signs) == 2 * 9
    # Within four standard errors of an even share; with fixed seeds, a test that passes once passes always.
    share = 1 / len(CHANGES)
    for change in CHANGES:
        times = sum(counts[change, at] for at in range(BINS))
        assert times == pytest.approx(5000 * share, abs=4 * math.sqrt(5000 * share * (1 - share)))


def test_trivial_augment_of_plain_images() -> None:
    """One colour has nothing to stretch or to spread, and two pixels have no neighbourhood."""
    for x in (torch.full((3, 5, 7), 0.3), image(2, 9, 3)):
        for sample, ours in enumerate(samples(x, "trivial_augment fill=0.25 num_magnitude_bins=2", 100)):
            draw = stream(sample)
            change, strongest = CHANGES[draw.integer(len(CHANGES))], draw.integer(2) == 1
            magnitude = magnitude_of(change, (BINS - 1) * strongest)
            if TRIVIAL._AUGMENTATION_SPACE[change][1] and draw.uniform() < 0.5:
                magnitude *= -1
            if change not in ("ShearX", "ShearY", "Rotate"):
                assert_augmented(ours, x, change, magnitude)


def test_nearest_pixels_are_the_default() -> None:
    x = image(19, 23)
    whole, named = (samples(x, f"trivial_augment{keys}", 60) for keys in ("", " interpolation=nearest"))
    assert all(torch.equal(one, other) for one, other in zip(whole, named))


@pytest.mark.parametrize("value", ["0.25", "random"])
@pytest.mark.parametrize("ratio", [(0.3, 3.3), (0.01, 0.1)], ids=["usual", "rarely fits"])
def test_random_erasing(ratio: tuple[float, float], value: str) -> None:
    x, erased = image(), 0
    for sample, ours in enumerate(samples(x, "random_erasing p=0.8 ratio={},{} value={}".format(*ratio, value), 30)):
        draw, theirs = stream(sample), x
        for _ in range(10 if draw.uniform() < 0.8 else 0):
            area = 37 * 53 * draw.uniform(0.02, 0.33)
            drawn = math.exp(draw.uniform(math.log(ratio[0]), math.log(ratio[1])))
            height, width = round(math.sqrt(area * drawn)), round(math.sqrt(area / drawn))
            if height < 37 and width < 53:
                top, left = draw.integer(37 - height + 1), draw.integer(53 - width + 1)
                shape = (3, height, width) if value == "random" else (1, 1, 1)
                new = [draw.normal() if value == "random" else 0.25 for _ in range(math.prod(shape))]
                theirs = F.erase(x, top, left, height, width, torch.tensor(new).reshape(shape))
                erased += 1
                break
        assert_near(ours, theirs)  # the last bit of noise is that of the machine's logarithm and cosine
    assert 0 < erased < 30


def test_random_erasing_draws() -> None:
    """Shares and places of 400 holes, within four standard errors; with fixed seeds, a test that passes once passes always."""
    x = torch.ones(1, 100, 100)
    holes = [hole == 0 for hole in samples(x, "random_erasing p=1 scale=0.1,0.2 ratio=0.5,2", 400)]
    # Areas are uniform over [0.1, 0.2]; sides that are rounded to a pixel add no more than 2 %, at random.
    areas = np.array([hole.float().mean().item() for hole in holes])
    assert areas.mean() == pytest.approx(0.15, abs=4 * 0.1 / math.sqrt(12 * 400))
    for dim in (1, 2):
        sides = [hole[0].any(2 - dim).nonzero().flatten() for hole in holes]
        places = np.array([side[0].item() / (100 - len(side)) for side in sides])  # uniform over [0, 1]
        assert places.mean() == pytest.approx(0.5, abs=4 / math.sqrt(12 * 400))


def test_normalize() -> None:
    x, mean, std = image(), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    assert torch.equal(transformed(x, "normalize mean=0.485,0.456,0.406 std=0.229,0.224,0.225"), F.normalize(x, mean, std))


def test_each_transform_of_a_list_draws_its_own() -> None:
    x = image()
    for sample, ours in enumerate(samples(x, "flip/flip/flip", 6)):
        theirs = x
        for transform in range(3):
            theirs = F.horizontal_flip(theirs) if stream(sample, transform).uniform() < 0.5 else theirs
        assert torch.equal(ours, theirs)


# Masks: the same draws as of the image, the nearest pixels, and class 255 beyond the image


MASK = tv_tensors.Mask(torch.randint(0, 256, (37, 53), generator=torch.Generator().manual_seed(2)))
NO_CLASS = 255


@pytest.mark.parametrize("size", [[16], [37], [100], [9, 91], [74, 20], [1, 1], [36, 52]])
def test_resize_of_masks(size: list[int]) -> None:
    ours, = masks(image(), MASK, "resize size=" + ",".join(map(str, size)), 1)
    assert torch.equal(ours, F.resize(MASK, size))


@pytest.mark.parametrize("size", [(20, 20), (21, 20), (37, 53), (60, 20), (60, 70)])
def test_center_crop_of_masks(size: tuple[int, int]) -> None:
    """torchvision pads with class 0: here every class is one higher, and 0 is what lies beyond the image."""
    ours, = masks(image(), MASK, "center_crop size={},{}".format(*size), 1)
    theirs = F.center_crop(tv_tensors.Mask(MASK + 1), list(size)) - 1
    assert torch.equal(ours, torch.where(theirs < 0, NO_CLASS, theirs))


def test_random_crop_of_masks() -> None:
    padded = F.pad(MASK, [4, 4, 4, 4], fill=NO_CLASS)
    for sample, ours in enumerate(masks(image(), MASK, "random_crop size=32 padding=4 fill=0.5", 5)):
        draw = stream(sample)
        top, left = draw.integer(37 + 8 - 32 + 1), draw.integer(53 + 8 - 32 + 1)
        assert torch.equal(ours, F.crop(padded, top, left, 32, 32))


def test_random_resized_crop_of_masks() -> None:
    for sample, ours in enumerate(masks(image(), MASK, "random_resized_crop size=24,20 scale=0.3,1", 8)):
        draw = stream(sample)
        while True:
            area = 37 * 53 * draw.uniform(0.3, 1.0)
            drawn = math.exp(draw.uniform(math.log(3 / 4), math.log(4 / 3)))
            width, height = round(math.sqrt(area * drawn)), round(math.sqrt(area / drawn))
            if width <= 53 and height <= 37:
                break
        top, left = draw.integer(37 - height + 1), draw.integer(53 - width + 1)
        assert torch.equal(ours, F.resized_crop(MASK, top, left, height, width, [24, 20]))


def test_flip_of_masks() -> None:
    for sample, ours in enumerate(masks(image(), MASK, "flip p=0.5", 10)):
        assert torch.equal(ours, F.horizontal_flip(MASK) if stream(sample).uniform() < 0.5 else MASK)
    ours, = masks(image(), MASK, "flip p=1 direction=vertical", 1)
    assert torch.equal(ours, F.vertical_flip(MASK))


@pytest.mark.filterwarnings("ignore:.*passing through")
def test_masks_stay_where_pixels_stay() -> None:
    for step in ("color_jitter brightness=0.4 hue=0.1", "normalize mean=0.5 std=0.25", "cutout size=9", "random_erasing p=1"):
        ours, = masks(image(), MASK, step, 1)
        assert torch.equal(ours, MASK), step
    assert torch.equal(RandomErasing(p=1)(tv_tensors.Image(image()), MASK)[1], MASK)  # torchvision's leaves masks, too


def test_trivial_augment_refuses_masks() -> None:
    """torchvision's does, too."""
    x = image()
    ended = run("transform", 5, 2, 1, "3,37,53", "trivial_augment", stdin=x.numpy().tobytes() + MASK.numpy().tobytes())
    assert ended.stderr.decode() == "transform trivial_augment: it takes no images with masks, and field 'y' is the mask of 'x'; " \
        "leave it out\n"
    with pytest.raises(TypeError, match="Mask"):
        TRIVIAL(tv_tensors.Image(x), MASK)
