"""Images against Pillow, and folders and lists of them."""

from __future__ import annotations

import io
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps, PngImagePlugin
from torchvision.transforms.v2 import functional as F

from image_runs import array, photo, run
from pages import blocks_of
from reader import Reader
from runs import recipe, train
from tensors import differing, write_safetensors

MODES = {1: "L", 3: "RGB"}


def decoded(file: Path, channels: int) -> np.ndarray:
    return array(run("decode", file, channels), np.uint8)


def of_pillow(file: Path, channels: int) -> np.ndarray:
    with Image.open(file) as image:
        pixels = np.asarray(ImageOps.exif_transpose(image).convert(MODES[channels]))
    return pixels.reshape(*pixels.shape[:2], channels)


def save(pixels: np.ndarray, file: Path, mode: str | None = None, **options: object) -> Path:
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(file, **options)
    return file


def write_png(file: Path, pixels: np.ndarray, interlaced: bool = False) -> Path:
    """Of [height, width, channels], as Pillow does not write it: 16 bits of all kinds, and in seven passes."""
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    parts = [pixels[y::dy, x::dx] for x, y, dx, dy in passes] if interlaced else [pixels]
    rows = b"".join(b"\0" + row.astype(pixels.dtype.newbyteorder(">")).tobytes() for part in parts if part.size for row in part)

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    height, width, channels = pixels.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, pixels.itemsize * 8, kind, 0, 0, interlaced)
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return file


JPEGS = {
    "usual": {}, "fine": {"quality": 100, "subsampling": 0}, "coarse": {"quality": 10},
    "half": {"subsampling": 1}, "progressive": {"progressive": True, "optimize": True},
    "restarts": {"restart_marker_blocks": 3}, "rgb": {"keep_rgb": True},
}


@pytest.mark.parametrize("channels", MODES)
@pytest.mark.parametrize("kind", JPEGS)
def test_jpeg(kind: str, channels: int, tmp_path: Path) -> None:
    file = save(photo(), tmp_path / "a.jpg", **JPEGS[kind])
    assert np.array_equal(decoded(file, channels), of_pillow(file, channels))


@pytest.mark.parametrize("channels", MODES)
@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_jpeg_without_rgb(mode: str, channels: int, tmp_path: Path) -> None:
    file = save(photo(), tmp_path / "a.jpg", mode)
    assert np.array_equal(decoded(file, channels), of_pillow(file, channels))


@pytest.mark.parametrize("channels", MODES)
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "1", "P"])
def test_png(mode: str, channels: int, tmp_path: Path) -> None:
    file = save(photo(channels=4 if "A" in mode else 3), tmp_path / "a.png", mode)
    assert np.array_equal(decoded(file, channels), of_pillow(file, channels))


@pytest.mark.parametrize("channels", MODES)
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_png_of_few_colours(bits: int, channels: int, tmp_path: Path) -> None:
    image = Image.fromarray(photo()).quantize(2**bits)
    image.save(tmp_path / "palette.png", bits=bits, transparency=0)
    assert np.array_equal(decoded(tmp_path / "palette.png", channels), of_pillow(tmp_path / "palette.png", channels))


@pytest.mark.parametrize("channels", MODES)
@pytest.mark.parametrize("stored", [1, 2, 3, 4])
def test_png_of_16_bits(stored: int, channels: int, tmp_path: Path) -> None:
    """Pillow makes white of nearly all of a gray one; here it loses the lower byte, as coloured ones do there."""
    pixels = np.random.default_rng(1).integers(0, 65536, (9, 11, stored), dtype=np.uint16)
    file = write_png(tmp_path / "a.png", pixels)
    theirs = of_pillow(file, channels)
    if stored == 1:
        theirs = np.repeat((np.asarray(Image.open(file)) >> 8).astype(np.uint8)[..., None], channels, -1)
    assert np.array_equal(decoded(file, channels), theirs)


@pytest.mark.parametrize("channels", MODES)
@pytest.mark.parametrize("stored", [1, 3])
@pytest.mark.parametrize("size", [(13, 21), (1, 3)])
def test_interlaced_png(size: tuple[int, int], stored: int, channels: int, tmp_path: Path) -> None:
    file = write_png(tmp_path / "a.png", photo(*size, stored).reshape(*size, stored), interlaced=True)
    assert np.array_equal(decoded(file, channels), of_pillow(file, channels))


@pytest.mark.parametrize("mode", ["L", "P", "1"])
def test_masks(mode: str, tmp_path: Path) -> None:
    """Values as they are stored: of a palette the numbers of colours, of one bit 0 and 1."""
    file = save(photo(), tmp_path / "a.png", mode)
    assert np.array_equal(array(run("decode_mask", file), np.uint8), np.asarray(Image.open(file)))


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_masks_of_few_classes(bits: int, tmp_path: Path) -> None:
    classes = np.random.default_rng(0).integers(0, 2**bits, (9, 13), dtype=np.uint8)
    image = Image.fromarray(classes, "P")
    image.putpalette(bytes(range(3 * 2**bits)))
    image.save(tmp_path / "a.png", bits=bits, transparency=0)
    assert np.array_equal(array(run("decode_mask", tmp_path / "a.png"), np.uint8), classes)


@pytest.mark.parametrize(("stored", "dtype", "said"), [
    (1, np.uint16, "gray of 16 bits"), (2, np.uint8, "gray with alpha"), (3, np.uint8, "RGB"), (4, np.uint16, "RGBA"),
])
def test_images_that_are_no_masks(stored: int, dtype: type, said: str, tmp_path: Path) -> None:
    file = write_png(tmp_path / "a.png", np.zeros((5, 7, stored), dtype))
    assert run("decode_mask", file).stderr.decode() == \
        f"'{file}': not a mask: expected one channel of at most 8 bits, gray or a palette, whose values are classes; it is {said}\n"
    jpeg = save(photo(), tmp_path / "b.jpg")
    assert run("decode_mask", jpeg).stderr.decode() == f"'{jpeg}': not a mask: expected a PNG image\n"


@pytest.mark.parametrize("channels", MODES)
@pytest.mark.parametrize("options", [{"lossless": True}, {"quality": 80}, {"quality": 5}], ids=str)
@pytest.mark.parametrize("stored", [3, 4])
def test_webp(stored: int, options: dict[str, object], channels: int, tmp_path: Path) -> None:
    file = save(photo(channels=stored), tmp_path / "a.webp", **options)
    assert np.array_equal(decoded(file, channels), of_pillow(file, channels))


@pytest.mark.parametrize("kind", ["jpg", "png", "webp"])
@pytest.mark.parametrize("orientation", range(10))
def test_orientation(orientation: int, kind: str, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = save(photo(13, 21), tmp_path / f"a.{kind}", exif=exif)
    assert np.array_equal(decoded(file, 3), of_pillow(file, 3))


def exif_of(type_code: int, order: str, value: int) -> bytes:
    """A TIFF structure that says the orientation as a number of that type, in that order of bytes."""
    number = struct.pack(order + {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i"}[type_code], value).ljust(4, b"\0")
    return b"Exif\0\0" + struct.pack(order + "2sHIHHHI", b"II" if order == "<" else b"MM", 42, 8, 1, 0x0112, type_code, 1) + number + bytes(4)


@pytest.mark.parametrize("kind", ["jpg", "png", "webp"])
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("type_code", [1, 3, 4, 6, 8, 9])
def test_orientation_of_other_types(type_code: int, order: str, kind: str, tmp_path: Path) -> None:
    for orientation in (6, 9):
        file = save(photo(13, 21), tmp_path / f"{orientation}.{kind}", exif=exif_of(type_code, order, orientation))
        assert np.array_equal(decoded(file, 3), of_pillow(file, 3))
    turned = decoded(tmp_path / f"6.{kind}", 3).shape != decoded(tmp_path / f"9.{kind}", 3).shape
    assert turned == (type_code != 1), "Pillow reads bytes as bytes"


@pytest.mark.parametrize("kind", ["jpg", "png", "webp"])
@pytest.mark.parametrize("form", ['<rdf:Description tiff:Orientation="{}"/>', "<tiff:Orientation>{}</tiff:Orientation>"])
@pytest.mark.parametrize("exif", [None, 1], ids=["alone", "beside EXIF"])
def test_orientation_in_xmp(exif: int | None, form: str, kind: str, tmp_path: Path) -> None:
    """As Pillow: only where EXIF says nothing of it."""
    text = f"<x:xmpmeta>{form.format(8)}</x:xmpmeta>"
    options = {"exif": exif_of(3, "<", exif)} if exif else {}
    if kind == "png":
        options["pnginfo"] = PngImagePlugin.PngInfo()
        options["pnginfo"].add_itxt("XML:com.adobe.xmp", text)
    else:
        options["xmp"] = text.encode()
    file = save(photo(13, 21), tmp_path / f"a.{kind}", **options)
    assert np.array_equal(decoded(file, 3), of_pillow(file, 3))


def test_kind_is_told_by_the_content(tmp_path: Path) -> None:
    file = save(photo(), tmp_path / "a.jpg", format="PNG")
    assert np.array_equal(decoded(file, 3), of_pillow(file, 3))


def shown(kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(photo()).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WebP"])
def test_truncated(kind: str, tmp_path: Path) -> None:
    whole = shown(kind)
    for length in (len(whole) // 2, len(whole) * 9 // 10, 30):
        (tmp_path / "a").write_bytes(whole[:length])
        ended = run("decode", tmp_path / "a", 3)
        assert (ended.returncode, ended.stdout) == (2, b"")
        assert ended.stderr.decode().startswith(f"'{tmp_path / 'a'}': a damaged {kind} image: ")


def test_not_an_image(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"GIF89a, or so")
    assert run("decode", tmp_path / "a.jpg", 3).stderr.decode() == \
        f"'{tmp_path / 'a.jpg'}': not an image: expected JPEG, PNG or WebP\n"


def test_bombs(tmp_path: Path) -> None:
    """Refused by what their first bytes promise."""
    jpeg = bytearray(shown("JPEG"))
    at = jpeg.index(b"\xff\xc0") + 5
    jpeg[at:at + 4] = b"\xff\xdc\xff\xdc"
    (tmp_path / "a").write_bytes(jpeg)
    assert "an image of 65500 by 65500 pixels; the most that is read is 178956970 pixels" in \
        run("decode", tmp_path / "a", 3).stderr.decode()
    Image.new("RGB", (9000, 9000)).save(tmp_path / "b.png")
    (tmp_path / "c.png").write_bytes((tmp_path / "b.png").read_bytes()[:1000])
    assert "an image of 9000 by 9000 pixels cannot be in a file of 1000 bytes" in \
        run("decode", tmp_path / "c.png", 3).stderr.decode()


# Sources


def to_tensor(file: Path) -> torch.Tensor:
    return torch.from_numpy(of_pillow(file, 3).copy()).permute(2, 0, 1) / 255


def test_samples_are_as_of_to_tensor(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    file = save(photo(), tmp_path / "cat" / "a.png")
    x = torch.tensor(array(run("sample", tmp_path, 3, 0, 0), np.float32))
    assert torch.equal(x, to_tensor(file))


@pytest.mark.parametrize("size", [(24, 24), (61, 20), (122, 100), (61, 83)])
def test_size(size: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    file = save(photo(), tmp_path / "cat" / "a.jpg")
    x = torch.tensor(array(run("sample", tmp_path, 3, "{},{}".format(*size), 0), np.float32))
    torch.testing.assert_close(x, F.resize(to_tensor(file), list(size), antialias=True), rtol=0, atol=1e-6)


def test_endings_and_folders_of_systems(tmp_path: Path) -> None:
    names = ("a/1.jfif", "a/2.JPE", "a/3.jif", "b/1.apng", "b/deep/2.jpg")
    others = ("@eaDir/a/1.png", "a/@eaDir/2.jpg", "#recycle/1.png", "lost+found/1.png", ".AppleDouble/1.png",
              "System Volume Information/1.png", "b/__MACOSX/1.png", "a/LICENSE", "b/notes.txt", "b/img.png.part")
    for name in names + others:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("words")
    assert run("list", tmp_path).stdout.decode().splitlines() == ["a, b", "0", "0", "0", "1", "1"]


@pytest.mark.parametrize("name", ["1.tga", "1.PSD", "1.dib", "1.gif", "1.tiff", "1.exr", "1"])
def test_images_that_are_not_read_are_refused(name: str, tmp_path: Path) -> None:
    """Without an ending, too."""
    (tmp_path / "a").mkdir()
    save(photo(), tmp_path / "a" / "0.png")
    (tmp_path / "a" / name).write_bytes(shown("JPEG"))
    ended = run("list", tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.decode() == f"'{tmp_path / 'a' / name}': images are read from files that end in .jpg, .jpeg, .png or .webp\n"


def test_classes_are_in_the_order_of_bytes(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/10.png", "a/x/1.PNG", "a/.hidden.png", "é/1.jpeg", "Z/1.webp"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "a" / "notes.txt").touch()
    assert run("list", tmp_path).stdout.decode().splitlines() == ["Z, a, b, é", "0", "1", "2", "2", "3"]


@pytest.mark.parametrize(("files", "said"), [
    (["1.png"], "'{}/1.png' is in none of the folders of classes: expected a folder for each class, or path: a .csv list"),
    (["a/1.png", "b/notes.txt"], "'{}/b', the folder of a class, has no images (.jpg, .jpeg, .png, .webp)"),
    (["a/1.png", "a/2.tif"], "'{}/a/2.tif': images are read from files that end in .jpg, .jpeg, .png or .webp"),
    ([], "'{}' has no folders: expected one for each class, with its images"),
])
def test_folders_that_are_none(files: list[str], said: str, tmp_path: Path) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert run("list", tmp_path).stderr.decode() == said.format(tmp_path) + "\n"


@pytest.mark.parametrize(("text", "classes", "labels"), [
    ("file,label\na.png,cat\nb.png,ant\n", "ant, cat", [1, 0]),
    ("a.png,3\r\nb.png,-1\r\n\r\n", "", [3, -1]),
    ('\ufeff"a,b.png","say ""x"""\nb.png,7up', '7up, say "x"', [1, 0]),
])
def test_list(text: str, classes: str, labels: list[int], tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_bytes(text.encode())
    assert run("list", tmp_path / "list.csv").stdout.decode().splitlines() == [classes, *map(str, labels)]


@pytest.mark.parametrize(("text", "said"), [
    ("a.png,cat\nb.png\n", ", line 2: expected two fields, file and label"),
    ("a.png,cat,dog\n", ", line 1: more than two fields; quote those with commas, or name columns of numbers with `fields`"),
    ('a.png,"cat\n\n', ", line 1: a quote that does not end"),
    ("a.png,\n", ", line 1: the label is empty"),
    ("a.png,1\nb.png,0.5\n", ", line 2: label 0.5: expected a whole number or a name"),
    ("file,label\n", " lists no images: expected lines of file,label"),
])
def test_list_with_mistakes(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(text)
    assert run("list", tmp_path / "list.csv").stderr.decode() == f"'{tmp_path / 'list.csv'}'{said}\n"


def test_files_of_a_list_are_relative_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    file = save(photo(), tmp_path / "images" / "a.png")
    (tmp_path / "list.csv").write_text("images/a.png,1\nimages/b.png,0\n")
    x = torch.tensor(array(run("sample", tmp_path / "list.csv", 3, 0, 0), np.float32))
    assert torch.equal(x, to_tensor(file))
    assert run("sample", tmp_path / "list.csv", 3, 0, 1).stderr.decode() == \
        f"cannot read '{tmp_path}/images/b.png': No such file or directory\n"


def test_trains_to_the_same_weights_as_arrays(tmp_path: Path) -> None:
    """A folder of PNG images, a list of them, and their values in float32."""
    random = np.random.default_rng(3)
    pixels, labels = random.integers(0, 256, (60, 8, 8), dtype=np.uint8), np.sort(random.integers(0, 10, 60))
    write_safetensors(tmp_path / "a.safetensors", {"x": (pixels[:, None] / np.float32(255)), "y": labels})
    lines = []
    for number, (one, label) in enumerate(zip(pixels, labels)):
        (tmp_path / "images" / f"class {label}").mkdir(parents=True, exist_ok=True)
        lines.append(f"images/class {label}/{number:02}.png,{label}")
        save(one, tmp_path / lines[-1].rpartition(",")[0])
    (tmp_path / "list.csv").write_text("\n".join(lines))
    assert len(set(labels)) == 10  # the names' numbers are the labels
    sources = {"arrays": {"format": "safetensors", "path": str(tmp_path / "a.safetensors")}}
    for name in ("images", "list.csv"):
        sources[name] = {"format": "images", "path": str(tmp_path / name), "channels": 1, "size": 8}
    runs = {name: train(tmp_path / f"run-{name}", recipe(data={"train": source, "eval": None}))
            for name, source in sources.items()}
    for run in runs.values():
        assert list(run.losses) == list(runs["arrays"].losses)
        assert not differing(run.weights, runs["arrays"].weights)


def test_the_page(tmp_path: Path) -> None:
    """docs/images.md: its files and commands, in their order."""
    reader = Reader(tmp_path)
    for block in blocks_of("images.md"):
        reader.do(block)
    metrics = [json.loads(line) for line in (tmp_path / "runs" / "patterns" / "metrics.jsonl").read_text().splitlines()]
    assert max(line.get("accuracy", 0) for line in metrics) > 0.9
