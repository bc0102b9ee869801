"""Report pages: what makes them easy to read, and what they say where something is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from browser import Page
from report_pages import made_by_hand, needs_chromium, report, show
from runs import assert_says


def with_classes(folder: Path, count: int, lines: list[dict] | None = None) -> Path:
    made_by_hand(folder, lines or [{"kind": "train", "step": 1, "loss": 1.0}])
    names = [f"species {number}" for number in range(count)]
    rows = [[names[row], *("900" if column == row else "11" for column in range(count))] for row in range(count)]
    (folder / "eval-confusion.csv").write_text("".join(",".join(row) + "\n" for row in [["true \\ predicted", *names], *rows]))
    return folder


def contrast(one: str, other: str) -> float:
    """By WCAG 2."""
    def luminance(colour: str) -> float:
        parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@needs_chromium
def test_what_is_too_wide_for_paper_is_made_smaller(page: Page, tmp_path: Path) -> None:
    folder = with_classes(tmp_path / "run", 30)
    show(page, report(tmp_path / "page.html", folder))
    page.run("addEventListener('beforeprint', () => { window.printed = [byId('confusion').getBoundingClientRect().width, "
             "byId('loss').querySelector('canvas').clientHeight]; })")
    page.pdf()
    width, height = page.run("window.printed")
    assert 600 < width <= 705 and height == 170
    assert page.run("byId('confusion').style.zoom") == ""


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_share_can_be_read(scheme: str, page: Page, tmp_path: Path) -> None:
    page.media(scheme)
    show(page, report(tmp_path / "page.html", with_classes(tmp_path / "run", 2)))
    looks = page.run("Array.from({length: 1001}, (_, i) => shareColors(i / 1000))")
    assert min(contrast(look["color"], look["background"]) for look in looks) >= 4.5
    shown = "document.querySelector('#confusion [data-share]').style.background"
    before = page.run(shown)
    page.media("dark" if scheme == "light" else "light")
    page.drawn()
    assert page.run(shown) != before


@needs_chromium
@pytest.mark.parametrize("ticks, texts", [
    ([0, 0.00025, 0.0005, 0.00075], ["0", "0.00025", "0.0005", "0.00075"]),
    ([1e-5, 1e-4, 1e-3, 0.01], ["1e-5", "1e-4", "1e-3", "1e-2"]),
    ([0, 2.5e6, 5e6], ["0", "2.5M", "5M"]), ([-5000, -2500, 0], ["-5,000", "-2,500", "0"]),
    ([123456, 123457], ["123.456k", "123.457k"]), ([0, 5e8, 1e9], ["0", "5e8", "1e9"]), ([1e300, None], ["1e300", ""])])
def test_ticks_are_alike(ticks: list, texts: list, page: Page, tmp_path: Path) -> None:
    show(page, report(tmp_path / "page.html", made_by_hand(tmp_path / "run", [])))
    assert page.run(f"tickTexts({json.dumps(ticks)})") == texts


@needs_chromium
def test_scales(page: Page, tmp_path: Path) -> None:
    """Shares end at 100 %, huge values have numbers beside them, long numbers have room, and zeros are told of where they are not drawn."""
    lines = [{"kind": "train", "step": 10, "loss": 1.0, "lr": 0.001, "grad_norm": 1e300},
             {"kind": "train", "step": 20, "loss": 0.0, "lr": 0.0, "grad_norm": 1.0},
             {"kind": "eval", "step": 10, "loss": 1.0, "accuracy": 0.9}, {"kind": "eval", "step": 20, "loss": 1.0, "accuracy": 1.0}]
    show(page, report(tmp_path / "page.html", made_by_hand(tmp_path / "run", lines)))
    _, high = page.run("byId('shares').chart.yRange")
    assert 1 <= high < 1.002
    page.run("byId('train-grad_norm').chart.log && byId('train-grad_norm').chart.toggleLog()")
    shown = "byId('{}').chart.uplot.axes[1]._values.filter(Boolean)"
    assert "1e300" in page.run(shown.format("train-grad_norm"))
    longest = page.run("(() => { const context = document.createElement('canvas').getContext('2d'); context.font = "
                       "\"12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\"; "
                       "return Math.max(..." + shown.format("train-lr") + ".map((text) => context.measureText(text).width)); })()")
    assert page.run("byId('train-lr').chart.uplot.axes[1]._size") >= longest + 6
    said = "byId('loss').querySelector('.note').textContent"
    assert "not drawn" not in page.run(said)
    page.run("byId('loss').chart.toggleLog()")
    assert_says(page.run(said), "Values of 0 and below have no place on a logarithmic scale and are not drawn.")


@needs_chromium
def test_memory_of_a_gpu_has_a_chart_where_there_is_one(page: Page, tmp_path: Path) -> None:
    plain = [{"kind": "train", "step": step, "loss": 1.0} for step in (10, 20)]
    for name, lines in (("cpu", plain), ("cuda", [{**line, "gpu_memory_mb": 1536.5} for line in plain])):
        show(page, report(tmp_path / f"{name}.html", made_by_hand(tmp_path / name, lines)))
        assert page.run("byId('train-gpu_memory_mb') !== null") == (name == "cuda")
    assert "Memory of the GPU" in page.run("byId('train-gpu_memory_mb').innerText")


@needs_chromium
def test_what_is_missing_is_said(page: Page, tmp_path: Path) -> None:
    end = {"kind": "end", "status": "failed", "step": 1, "wall_s": 1.0}
    log = "2026-01-02 03:04:05.678 I decent-train 0.1.0\n2026-01-02 03:04:06.678 E there is no memory\n"
    failed = made_by_hand(tmp_path / "failed", [end], log=log)
    show(page, report(tmp_path / "page.html", failed))
    assert_says(page.run("document.querySelector('#head .notice').innerText"), "The run failed. Its log ends with: there is no memory")
    assert page.run("document.querySelector('.empty').textContent") == "There are no figures."
    assert_says(page.run("document.getElementById('recipe').innerText"), "Nothing differs from the defaults.")
    later = {"kind": "eval", "step": 7, "loss": 1.0, "accuracy": 0.5, "samples": 31 * 900 + 31 * 30 * 11, "source": "other.csv"}
    show(page, report(tmp_path / "page.html", with_classes(tmp_path / "many", 31, [later])))
    assert_says(page.run("document.body.innerText"), "Of the last --eval-only: step 7, checkpoint: the run's, data: other.csv, 38,130 samples.",
                "matrix of 31 classes is too large for a page: eval-confusion.csv", "50.00 %")
    assert page.run("document.getElementById('confusion')") is None


@needs_chromium
def test_comparison_of_many_runs(page: Page, tmp_path: Path) -> None:
    """Legends are short until they are opened, notes are folded, and no two curves look the same."""
    text = "name: {}\noptimizer: {{lr: {}}}\nparallel: {{topology: ring}}\n"
    lines = [{"kind": "train", "step": 1, "loss": 1.0, "samples_per_s": 16.0, "step_ms": 1000.0}, {"kind": "train"}]
    folders = [made_by_hand(tmp_path / str(number), lines,
                            text.format(number, number) + "data: {batch_size: 4}\n") for number in range(1, 13)]
    show(page, report(tmp_path / "page.html", *folders))
    legend = "[...document.querySelectorAll('#train-loss .legend li')].filter((item) => item.checkVisibility()).length"
    assert page.run(legend) == 8
    page.run("document.querySelector('#train-loss .more').click()")
    assert page.run(legend) == 12
    looks = page.run("document.getElementById('train-loss').chart.uplot.series.slice(1)"
                     ".map((each) => JSON.stringify([each._stroke ?? each.stroke(), each.dash]))")
    assert len(set(looks)) == 12
    assert page.run("document.querySelectorAll('.notice').length") == 1
    assert page.run("document.querySelector('details.notice summary').textContent").startswith("12 notes")
    assert page.run("document.querySelectorAll('#differences tbody tr').length") == 12  # a row for each run
    assert page.run("document.querySelectorAll('.topology').length") == 1
    assert page.run("document.querySelectorAll('.keys .key').length") == 12
