"""Tar shards (format: webdataset): trained on as the same images in folders are, and read as the package webdataset reads them."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
import webdataset
from PIL import Image

from image_runs import write_images
from predictions import predicted
from runs import assert_same_run, assert_same_weights, assert_says, attempt, merged, recipe, refused, train
from tensors import same_bits, write_safetensors

DIALECTS = {"ustar": tarfile.USTAR_FORMAT, "pax": tarfile.PAX_FORMAT, "gnu": tarfile.GNU_FORMAT}
# Too long for the name in a tar header: each dialect has its own way to keep it.
LONG = "digits-of-eight-by-eight-" * 6
SHARDS = 3


def digits(count: int = 96) -> tuple[np.ndarray, np.ndarray]:
    """Sorted by class, as folders of images have them."""
    random = np.random.default_rng(1)
    return random.integers(0, 256, (count, 8, 8), np.uint8), np.sort(np.arange(count) % 10)


def pack(path: Path, members: dict[str, bytes], dialect: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, "w", format=dialect) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def members_of(files: list[Path], labels: list[object] | np.ndarray | None, ending: str = "cls") -> dict[str, bytes]:
    members = {}
    for i, file in enumerate(files):
        key = f"{LONG}/{file.parent.name}.d/{file.stem}"
        members[f"{key}.PNG"] = file.read_bytes()
        if labels is not None:
            label = labels[i]
            members[f"{key}.{ending}"] = (json.dumps({"id": i, "class": label}) if ending == "json" else f"{label}\n").encode()
    return members


def write_shards(folder: Path, files: list[Path], labels: list[object] | np.ndarray | None, ending: str = "cls",
                 dialect: int = tarfile.PAX_FORMAT) -> dict:
    """The source. The last shard is the shortest."""
    folder.mkdir(parents=True)
    size = -(-len(files) // SHARDS)
    for shard in range(SHARDS):
        part = slice(shard * size, (shard + 1) * size)
        pack(folder / f"s-{shard:03}.tar", members_of(files[part], None if labels is None else labels[part], ending), dialect)
    return shards_in(folder)


def shards_in(folder: Path, **more: object) -> dict:
    return {"format": "webdataset", "path": f"{folder}/s-{{000..{SHARDS - 1:03}}}.tar", "channels": 1, **more}


def image_folder(path: Path) -> dict:
    return {"format": "images", "path": str(path), "channels": 1}


def settings(source: dict, **changes: object) -> dict:
    base = recipe(data={"train": source, "eval": source}, train={"steps": 20}, eval={"every_steps": 10},
                  checkpoint={"every_steps": 10})
    return merged(base, changes)


def classes_of(folder: Path) -> list[str]:
    return json.loads((folder / "data.json").read_text())["train"]["classes"]


# ---- the same as images in folders -----------------------------------------------------------------------------------

@pytest.mark.parametrize("dialect", DIALECTS)
def test_trains_as_on_a_folder(dialect: str, tmp_path: Path) -> None:
    """Labels that are names, and numbers; in a text and in JSON."""
    pixels, labels = digits()
    files = write_images(tmp_path / "png", pixels, labels)
    names = [file.parent.name for file in files]
    wanted = train(tmp_path / "wanted", settings(image_folder(tmp_path / "png")))
    sources = {
        "names": write_shards(tmp_path / "a", files, names, dialect=DIALECTS[dialect]),
        "numbers": write_shards(tmp_path / "b", files, labels, dialect=DIALECTS[dialect]),
        "json": {**write_shards(tmp_path / "c", files, labels.tolist(), "json", DIALECTS[dialect]), "label": "json.class"},
    }
    for name, source in sources.items():
        run = train(tmp_path / name, settings(source))
        assert_same_weights(run, wanted)
        assert run.metrics_without_times == wanted.metrics_without_times, name
        assert classes_of(run.folder) == (classes_of(wanted.folder) if name == "names" else [])


def test_workers_threads_and_resuming(tmp_path: Path) -> None:
    files = write_images(tmp_path / "png", *digits())
    source = write_shards(tmp_path / "tar", files, [file.parent.name for file in files])
    own = settings(source, data={"transforms": [{"random_crop": {"size": 8, "padding": 1}}, "flip"]})
    folder = merged(own, {"data": {"train": image_folder(tmp_path / "png"), "eval": image_folder(tmp_path / "png")}})
    for workers in (2, 3):
        wanted = train(tmp_path / f"wanted {workers}", folder, workers=workers)
        run = train(tmp_path / f"run {workers}", own, workers=workers)
        assert_same_weights(run, wanted)
        assert run.metrics_without_times == wanted.metrics_without_times
    threaded = merged(own, {"data": {"threads": 3, "prefetch": 7}})
    assert_same_run(train(tmp_path / "threads", threaded, workers=3), run)
    train(tmp_path / "resumed", own, "--set", "train.steps=10", workers=3)
    assert_same_run(train(tmp_path / "resumed", own, "--resume", "auto", workers=3), run)


def test_one_glob_or_a_list(tmp_path: Path) -> None:
    files = write_images(tmp_path / "png", *digits())
    source = write_shards(tmp_path / "tar", files, [file.parent.name for file in files])
    wanted = train(tmp_path / "braces", settings(source))
    paths = {"glob": f"{tmp_path}/tar/s-*.tar", "list": [f"{tmp_path}/tar/s-{{000,001}}.tar", f"{tmp_path}/tar/s-002.tar"]}
    for name, path in paths.items():
        assert_same_run(train(tmp_path / name, settings({**source, "path": path})), wanted)


# ---- the package webdataset ------------------------------------------------------------------------------------------

def test_reads_what_webdataset_writes_and_reads(tmp_path: Path) -> None:
    pixels, labels = digits()
    with webdataset.ShardWriter(f"{tmp_path}/s-%03d.tar", maxcount=32, verbose=0) as writer:
        for number, (image, label) in enumerate(zip(pixels, labels)):
            content = io.BytesIO()
            Image.fromarray(image).save(content, "png")
            writer.write({"__key__": f"digits/{number:05}", "png": content.getvalue(), "cls": int(label)})
    samples = list(webdataset.WebDataset(f"{tmp_path}/s-{{000..002}}.tar", shardshuffle=False))
    assert [sample["__key__"] for sample in samples] == [f"digits/{number:05}" for number in range(len(pixels))]
    x = np.stack([np.asarray(Image.open(io.BytesIO(sample["png"])))[None] for sample in samples])
    arrays = {"x": x.astype(np.float32) / np.float32(255), "y": np.array([int(sample["cls"]) for sample in samples])}
    write_safetensors(tmp_path / "a.safetensors", arrays)
    wanted = train(tmp_path / "wanted", settings({"format": "safetensors", "path": str(tmp_path / "a.safetensors")}))
    run = train(tmp_path / "run", settings(shards_in(tmp_path)))
    assert_same_weights(run, wanted)
    assert run.metrics_without_times == wanted.metrics_without_times


def test_samples_are_those_of_webdataset(tmp_path: Path) -> None:
    """Members that it leaves out are no samples here either."""
    files = write_images(tmp_path / "png", *digits(6))
    plain = {f"d.x/{i}.{ending}": content for i, file in enumerate(files)
             for ending, content in (("png", file.read_bytes()), ("cls", str(i).encode()), ("seg.png", b"another ending"))}
    pack(tmp_path / "s.tar", {"__meta__": b"{}", "__about__/1.png": b"", "README": b"no dot", **plain})
    samples = list(webdataset.WebDataset(str(tmp_path / "s.tar"), shardshuffle=False))
    assert [sample["__key__"] for sample in samples] == [f"d.x/{i}" for i in range(6)]
    source = {"format": "webdataset", "path": str(tmp_path / "s.tar"), "channels": 1}
    ended, = attempt(tmp_path / "run", settings(source, data={"batch_size": 2}), "--dry-run")
    assert ended.code == 0, ended.err
    assert_says(ended.out, "6 samples")


# ---- evaluation and prediction ---------------------------------------------------------------------------------------

class Channel(torch.nn.Module):
    """[B, 1, 8, 8] to the score of each of ten classes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.fc = torch.nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x.flatten(1))


def test_classes_are_those_of_training(tmp_path: Path) -> None:
    """Shards with some of the classes, after training on folders, count by data.json; other classes are refused."""
    files = write_images(tmp_path / "png", *digits())
    trained = train(tmp_path / "run", settings(image_folder(tmp_path / "png")))
    some = files[-30:]
    own = write_shards(tmp_path / "tar", some, [file.parent.name for file in some])
    folder = tmp_path / "some"
    for file in some:
        (folder / file.parent.name).mkdir(parents=True, exist_ok=True)
        (folder / file.parent.name / file.name).write_bytes(file.read_bytes())
    printed = []
    for name, source in {"tar": own, "png": image_folder(folder)}.items():
        made = settings(source, output=str(tmp_path / "eval" / name))
        ended, = attempt(tmp_path / f"eval {name}", made, "--eval-only", "--checkpoint", trained.checkpoint(20))
        assert (ended.code, ended.err) == (0, "")
        assert_says(ended.out, "on 30 samples")
        printed.append(re.findall(r"(?:loss|accuracy) [0-9.]+%?", ended.out))
    assert printed[0] == printed[1] and len(printed[0]) >= 2
    other = write_shards(tmp_path / "other", some, ["cow"] * len(some))
    message = refused(tmp_path / "refused", settings(other), "--eval-only", "--checkpoint", trained.checkpoint(20))
    assert_says(message, "s-000.tar/", ".PNG': label 'cow' is no class of '", "data.json', which has digit 0, digit 1")


def test_predicts_without_labels(tmp_path: Path) -> None:
    files = write_images(tmp_path / "png", *digits(20))
    torch.jit.script(Channel()).save(str(tmp_path / "net.pt"))
    gone = {"format": "npz", "path": str(tmp_path / "gone.npz")}
    sources = {"tar": write_shards(tmp_path / "tar", files, None), "png": image_folder(tmp_path / "png")}
    found = {name: predicted(tmp_path, recipe(tmp_path / "net.pt", data={"train": gone, "eval": None, "predict": source}),
                             f"{name}.npz", "--checkpoint", "none", workers=2) for name, source in sources.items()}
    assert same_bits(found["tar"]["output"], found["png"]["output"])
    assert [Path(file).stem for file in found["tar"]["file"]] == [Path(file).stem for file in found["png"]["file"]]
    assert found["tar"]["file"][0] == f"{tmp_path}/tar/s-000.tar/{LONG}/{files[0].parent.name}.d/{files[0].stem}.PNG"


def test_without_labels_there_is_no_target(tmp_path: Path) -> None:
    files = write_images(tmp_path / "png", *digits(24))
    source = {**write_shards(tmp_path / "tar", files, None), "label": None}
    assert_says(refused(tmp_path / "run", settings(source)), "data.train has no field 'y'", "model.target")


# ---- mistakes --------------------------------------------------------------------------------------------------------

IMAGE = b"\x89PNG\r\n\x1a\n"
PAIR = {"a/1.png": IMAGE, "a/1.cls": b"3"}
WRONG = {
    "no label": ({"a/1.png": IMAGE, "a/1.txt": b"3"}, {}, ["s.tar', sample 'a/1': it has no label, .cls; ", "end in png, txt"]),
    "no image": ({"a/1.bmp": b"", "a/1.cls": b"3"}, {}, ["s.tar', sample 'a/1': it has no image, .jpg or .jpeg or .png or .webp; "]),
    "another image": (PAIR, {"image": "jpg"}, ["s.tar', sample 'a/1': it has no image, .jpg; its neighbouring members end in png, cls"]),
    "two images": ({**PAIR, "a/1.jpg": IMAGE}, {}, ["s.tar', member 'a/1.jpg': the second image of its sample", "`image`"]),
    "one key twice": ({**PAIR, "b/1.png": IMAGE, "b/1.cls": b"1", "a/1.webp": b""}, {}, ["s.tar', sample 'a/1': ", "tar --sort=name"]),
    "no JSON": ({"a/1.png": IMAGE, "a/1.json": b"["}, {"label": "json.class"}, ["s.tar', member 'a/1.json': not a JSON object"]),
    "no key": ({"a/1.png": IMAGE, "a/1.json": b"{}"}, {"label": "json.class"}, ["s.tar', member 'a/1.json': no key 'class'"]),
    "no key in the recipe": (PAIR, {"label": "json"}, ["webdataset: label: json names no key: expected json.KEY"]),
    "half a class": ({"a/1.png": IMAGE, "a/1.cls": b"0.5"}, {}, ["s.tar/a/1.png': label 0.5: expected a whole number or a name"]),
    "a missing label": ({**PAIR, "b.png": IMAGE, "b.cls": b"NA"}, {}, ["s.tar/b.png': label 'NA': expected a whole number, as the other"]),
    "no samples": ({"README": b""}, {}, ["s.tar' has no samples"]),
    "no such shard": (PAIR, {"path": "s-{0..1}.tar"}, ["cannot read '", "s-0.tar': No such file"]),
    "too many shards": (PAIR, {"path": "s-{0..1000000}.tar"}, ["s-{0..1000000}.tar': its braces are more than a million files"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_shards(name: str, tmp_path: Path) -> None:
    members, keys, texts = WRONG[name]
    pack(tmp_path / "s.tar", members)
    source = {"format": "webdataset", "path": "s.tar", **keys}
    source["path"] = f"{tmp_path}/{source['path']}"
    assert_says(refused(tmp_path / "run", settings(source)), "data.train: ", *texts)


BROKEN = {
    "compressed": (gzip.compress, ["s.tar' is compressed by gzip, not a tar archive: gunzip decompresses it"]),
    "empty": (lambda archive: b"", ["s.tar': not a tar archive", "a compressed one must be unpacked first"]),
    "cut in a member": (lambda archive: archive[:515], ["s.tar': truncated: member 'a/1.png' has 8 bytes from byte 512"]),
    "cut behind a member": (lambda archive: archive[:2048], ["s.tar': truncated: it ends after member 'a/1.cls'"]),
    "a damaged header": (lambda archive: b"b" + archive[1:], ["s.tar': "]),
    "another damaged header": (lambda archive: archive[:1024] + b"b" + archive[1025:], ["s.tar': damaged after member 'a/1.png': "]),
    "joined by cat": (lambda archive: archive + archive, ["s.tar': there are ", "bytes behind the end", "tar --concatenate"]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_shards(name: str, tmp_path: Path) -> None:
    break_it, texts = BROKEN[name]
    archive = pack(tmp_path / "s.tar", PAIR, tarfile.USTAR_FORMAT).read_bytes()
    (tmp_path / "s.tar").write_bytes(break_it(archive))
    assert_says(refused(tmp_path / "run", settings({"format": "webdataset", "path": str(tmp_path / "s.tar")})), "data.train: ", *texts)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_links(kind: bytes, tmp_path: Path) -> None:
    """What they lead to may be anywhere."""
    with tarfile.open(tmp_path / "s.tar", "w") as archive:
        entry = tarfile.TarInfo("a/1.png")
        entry.type, entry.linkname = kind, "b/1.png"
        archive.addfile(entry)
    message = refused(tmp_path / "run", settings({"format": "webdataset", "path": str(tmp_path / "s.tar")}))
    assert_says(message, "s.tar': member 'a/1.png' is a link; tar --dereference --hard-dereference")


def test_a_broken_image(tmp_path: Path) -> None:
    """Its shard and member are named; on_error: skip leaves it out."""
    files = write_images(tmp_path / "png", *digits())
    files[0].write_bytes(files[0].read_bytes()[:60])
    source = write_shards(tmp_path / "tar", files, [file.parent.name for file in files])
    own = settings(source, data={"eval": None}, eval={"every_steps": None}, train={"steps": None, "epochs": 1})
    assert_says(refused(tmp_path / "run", own), f"tar/s-000.tar/{LONG}/{files[0].parent.name}.d/{files[0].stem}.PNG': a damaged PNG image")
    run = train(tmp_path / "skips", merged(own, {"data": {"on_error": "skip"}}))
    skipped, = (run.folder / "skipped.jsonl").read_text().splitlines()
    assert_says(skipped, f"{files[0].stem}.PNG")
