"""Flags (CONTRACT section 2): what is accepted, and how mistakes are told."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from program import ROOT, run_alone, run_workers
from runs import assert_says, flag_error

CONFIG = ROOT / "configs" / "digits.yaml"


def test_help() -> None:
    """Also what it points at is there."""
    ended = run_alone("--help")
    assert (ended.code, ended.err) == (0, "")
    pointed_at = set(re.findall(r"(?:configs|docs)/[\w.]*\w", ended.out))
    assert pointed_at and {path for path in pointed_at if not (ROOT / path).exists()} == set()
    assert_says(ended.out, "use\nonly models that you trust")


def test_version() -> None:
    ended = run_alone("--version")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("decent-train ") and len(ended.out.splitlines()) == 1


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_once_from_three_workers(flag: str) -> None:
    ended = run_workers(3, flag)
    assert [e.code for e in ended] == [0, 0, 0]
    assert ended[0].out and [e.out + e.err for e in ended[1:]] == ["", ""] and ended[0].err == ""


def test_no_flags() -> None:
    assert_says(flag_error(), "--config FILE", "--help")


@pytest.mark.parametrize("wrong, nearest", [("--confg", "--config"), ("--quite", "--quiet"), ("--Version", "--version"),
                                            ("--print_config", "--print-config"), ("--sett=seed=1", "--set")])
def test_unknown_flag(wrong: str, nearest: str) -> None:
    assert_says(flag_error("--config", CONFIG, wrong), wrong.split("=")[0], f"did you mean '{nearest}'?")


def test_flag_that_is_like_no_other() -> None:
    assert_says(flag_error("--config", CONFIG, "--learning-rate-of-everything"), "--learning-rate", "--config", "--set")


@pytest.mark.parametrize("flag, advice", [
    ("--lr", "it is a key of the recipe: --set optimizer.lr=VALUE"),
    ("--lr=0.1", "it is a key of the recipe: --set optimizer.lr=VALUE"),
    ("--epochs", "it is a key of the recipe: --set train.epochs=VALUE"),
    ("--learning-rate", "it is a key of the recipe: --set optimizer.lr=VALUE"),
    ("--batch-size", "it is a key of the recipe: --set data.batch_size=VALUE"),
    ("--data.batch_size", "it is a key of the recipe: --set data.batch_size=VALUE"),
    ("--output-dir", "it is a key of the recipe: --set output=VALUE"),
    ("--nproc-per-node", "the number of workers is a flag, --workers N, or is set by the launcher (torchrun"),
    ("--eval", "did you mean '--eval-only'?"),
])
def test_flag_that_is_a_key(flag: str, advice: str) -> None:
    message = flag_error("--config", CONFIG, flag, "3")
    assert_says(message, f"unknown flag '{flag.split('=')[0]}'; {advice}")


def test_recipe_without_its_flag() -> None:
    with_flag, without = (run_alone(*words, "--print-config") for words in (["--config", CONFIG], [CONFIG]))
    assert without.code == 0 and "topology: ring" in without.out
    assert without == replace(with_flag, seconds=without.seconds)


def test_more_than_one_recipe() -> None:
    assert_says(flag_error(CONFIG, "other.yaml"), "'other.yaml'", "one recipe is given already")
    assert_says(flag_error(CONFIG, "--config", CONFIG), "more than one recipe")


@pytest.mark.parametrize("wrong, nearest", [("-help", "--help"), ("-workers", "--workers"), ("-config=a", "--config")])
def test_single_dash(wrong: str, nearest: str) -> None:
    assert_says(flag_error(CONFIG, wrong), f"unknown flag '{wrong}'", f"did you mean '{nearest}'")


def test_short_help() -> None:
    assert run_alone("-h").out == run_alone("--help").out != ""


@pytest.mark.parametrize("flags, text", [
    (["--workers", "0"], "--workers '0': expected an integer from 1 to 1024"),
    (["--workers", "two"], "--workers 'two'"), (["--workers", "1025"], "from 1 to 1024"), (["--workers=-1"], "'-1'"),
    (["--workers"], "workers"), (["--workers", "2", "--workers", "3"], "--workers is given more than once"),
    (["--max-restarts", "1"], "--max-restarts needs --workers"),
    (["--workers", "2", "--max-restarts", "-1"], "from 0 to"),
    (["--min-workers", "1"], "--min-workers needs --workers"),
    (["--workers", "2", "--min-workers", "1"], "--min-workers needs --max-restarts"),
    (["--workers", "2", "--max-restarts", "1", "--min-workers", "3"], "--min-workers 3 is more than --workers 2"),
    (["--workers", "2", "--max-restarts", "1", "--min-workers", "0"], "--min-workers '0': expected an integer from 1 to 1024"),
    (["--workers", "2", "--max-restarts", "1", "--eval-only"], "--max-restarts is for training")])
def test_workers_that_make_no_sense(flags: list, text: str) -> None:
    assert_says(flag_error(CONFIG, *flags), text)


@pytest.mark.parametrize("flags, text", [(["--config"], "config"), (["--config", CONFIG, "--set"], "set"),
                                         (["--config", CONFIG, "--config", CONFIG], "--config"),
                                         (["--config", CONFIG, "--quiet", "--verbose"], "--quiet and --verbose")],
                         ids=["no file", "no key", "twice", "quiet and verbose"])
def test_flags_that_make_no_sense(flags: list, text: str) -> None:
    assert_says(flag_error(*flags), text)


@pytest.mark.parametrize("flags, texts", [
    (["--resume", "auto", "--eval-only"], ["--resume", "--eval-only", "--checkpoint"]),
    (["--resume", "auto", "--export", "x.pt"], ["--resume", "--export"]),
    (["--resume", "auto", "--resume", "x"], ["--resume is given more than once"]),
    (["--resume"], ["resume"]),
    (["--checkpoint", "none"], ["--checkpoint", "--eval-only", "--resume auto|DIR"]),
    (["--dry-run", "--eval-only"], ["--dry-run", "--eval-only"]),
    (["--export", "model.bin"], ["model.bin", ".pt", ".safetensors", ".onnx"]),
], ids=lambda value: " ".join(value))
def test_flags_on_checkpoints(flags: list[str], texts: list[str]) -> None:
    assert_says(flag_error("--config", CONFIG, *flags), *texts)


@pytest.mark.parametrize("flag", ["--resume", "--checkpoint", "--predict", "--export", "--workers"])
def test_a_flag_in_the_place_of_a_value(flag: str) -> None:
    assert_says(flag_error(CONFIG, flag, "--set", "train.steps=9"), f"{flag} needs a value", "'--set', which follows it, is a flag")
