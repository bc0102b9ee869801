"""report.html and --report: what headless Chromium shows of runs, compared with what metrics.jsonl says."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from pathlib import Path

import pytest

from browser import Page
from program import launcher_variables, run_alone
from report_pages import curve, made_by_hand, needs_chromium, report, show
from runs import Run, assert_says, error_message, merged, recipe, train

SETTINGS = recipe(train={"steps": 40}, data={"batch_size": 8}, eval={"every_steps": 10}, log={"every_steps": 2},
                  parallel={"topology": "ring"})
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\u2028'\"&"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Two workers with two learning rates; the first run has been evaluated again afterwards."""
    folder = tmp_path_factory.mktemp("runs")
    made = [train(folder / name, merged(SETTINGS, {"name": name, "optimizer": {"lr": rate}}), workers=2)
            for name, rate in (("quick", 0.003), ("slow", 0.0003))]
    (folder / "again.yaml").write_text(json.dumps(merged(SETTINGS, {"output": str(made[0].folder)})))
    assert run_alone(folder / "again.yaml", "--eval-only", "--checkpoint", "none").code == 0
    return made


# ---- the page of one run --------------------------------------------------------------------------


@needs_chromium
def test_curves_are_the_figures(runs: list[Run], page: Page) -> None:
    """Of the page that the run itself has left."""
    show(page, runs[0].folder / "report.html")
    lines, evaluations = runs[0].lines("train"), runs[0].lines("eval")[:-1]  # without that of --eval-only
    assert len(lines) == 20 and len(evaluations) == 4
    training, mean, evaluated = (curve(page, "loss", number) for number in range(3))
    assert training == {"name": "training", "xs": [line["step"] for line in lines], "ys": [line["loss"] for line in lines]}
    assert mean["name"] == "training, mean" and mean["ys"] == [line["loss_mean"] for line in lines]
    assert evaluated["xs"] == [10, 20, 30, 40] and evaluated["ys"] == [line["loss"] for line in evaluations]
    assert curve(page, "shares")["ys"] == [line["accuracy"] for line in evaluations]
    assert curve(page, "consensus")["ys"] == [line["consensus_distance"] for line in evaluations]
    assert curve(page, "train-lr")["ys"] == [line["lr"] for line in lines]
    assert curve(page, "train-samples_per_s")["ys"] == [line["samples_per_s"] for line in lines]
    data, workers, computing = (curve(page, "step-time", number)["ys"] for number in range(3))
    assert data == [line["data_wait_ms"] for line in lines] and workers == [line["comm_wait_ms"] for line in lines]
    assert [sum(parts) for parts in zip(data, workers, computing)] == pytest.approx([line["step_ms"] for line in lines])


@needs_chromium
def test_axes(runs: list[Run], page: Page) -> None:
    """Samples and time are worked out from the lines alone."""
    show(page, runs[0].folder / "report.html")
    lines = runs[0].lines("train")
    page.run("document.querySelector('input[value=samples]').click()")
    assert curve(page, "loss")["xs"] == [line["step"] * 16 for line in lines]
    assert curve(page, "loss", 2)["xs"] == [160, 320, 480, 640]
    page.run("document.querySelector('input[value=time]').click()")
    times = [sum(2 * line["step_ms"] for line in lines[:count + 1]) / 1000 for count in range(len(lines))]
    assert curve(page, "loss")["xs"] == pytest.approx(times)
    assert curve(page, "loss", 2)["xs"] == pytest.approx(times[4::5])
    assert page.console == []


@needs_chromium
def test_last_evaluation_of_many_samples_is_in_view(page: Page, tmp_path: Path) -> None:
    lines: list[dict] = [{"kind": "train", "step": step, "loss": 2.3 - step / 1e6, "samples_per_s": 102400.0, "step_ms": 10.0}
                         for step in range(1000, 50001, 1000)]
    folder = made_by_hand(tmp_path / "run", [*lines, {"kind": "eval", "step": 50000, "loss": 2.7}])
    show(page, report(tmp_path / "page.html", folder))
    for axis in ("step", "samples", "time"):
        page.run(f"document.querySelector('input[value={axis}]').click()")
        low, high = page.run("document.getElementById('loss').chart.yRange")
        assert low < 2.25 and high > 2.7, axis
    page.run("document.querySelector('input[value=samples]').click(); document.querySelector('#loss .plot').focus()")
    page.key("End")
    assert_says(page.run("document.getElementById('spoken').textContent"), "2.7", "51,200,000 samples")


@needs_chromium
def test_table_of_a_chart_has_all_digits(runs: list[Run], page: Page) -> None:
    show(page, runs[0].folder / "report.html")
    page.run("document.querySelector('#loss summary').click()")
    page.run("new Promise((done) => setTimeout(done, 100))")
    rows = page.run("[...document.querySelectorAll('#loss tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
    assert {int(row[0]): float(row[1]) for row in rows} == {line["step"]: line["loss"] for line in runs[0].lines("train")}


@needs_chromium
def test_rest_of_the_page(runs: list[Run], page: Page) -> None:
    show(page, runs[0].folder / "report.html")
    text = page.run("document.body.innerText")
    assert_says(text, "quick", "completed", "Everyone has heard of everyone after 1 step", "decent-train 0.1.0", "Later evaluations",
                "the root mean square of their distances from the average model")
    assert page.run("document.title") == "quick – decent-train"
    assert page.run("document.querySelectorAll('.topology circle').length") == 4  # two phases of two workers
    changed = page.run("[...document.querySelectorAll('#recipe tbody tr')].map((row) => [row.cells[0].innerText, row.cells[2].innerText])")
    assert ["optimizer.lr", "0.001"] in changed and ["parallel.topology", "complete"] in changed
    assert "optimizer.eps" not in dict(changed)
    confusion = [line.split(",") for line in (runs[0].folder / "eval-confusion.csv").read_text().splitlines()]
    cells = page.run("[...document.querySelectorAll('#confusion tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent || '0'))")
    assert cells == confusion[1:]
    recalls = page.run("[...document.querySelectorAll('#classes tbody tr')].map((row) => row.cells[3].textContent)")
    table = [line.split(",") for line in (runs[0].folder / "eval-classes.csv").read_text().splitlines()]
    assert recalls == [f"{100 * float(row[5]):.2f} %" for row in table[1:]]


@needs_chromium
def test_hover_zoom_and_keys(runs: list[Run], page: Page) -> None:
    show(page, runs[0].folder / "report.html")
    losses = {line["step"]: line["loss"] for line in runs[0].lines("train")}
    left, top, width, height = page.run("(() => { const box = document.querySelector('#loss .u-over').getBoundingClientRect(); "
                                        "return [box.left, box.top, box.width, box.height]; })()")
    y = top + height / 2
    page.mouse("mouseMoved", left + 0.5 * width, y)
    assert_says(page.run("document.querySelector('#loss .legend').innerText"), "step 20", f"{losses[20]:.4g}"[:5])
    assert "step 20" in page.run("document.querySelector('#consensus .legend').innerText")  # all charts follow

    page.mouse("mousePressed", left + 0.25 * width, y, pressed=True, clicks=1)
    page.mouse("mouseMoved", left + 0.5 * width, y, pressed=True)
    page.mouse("mouseReleased", left + 0.5 * width, y, clicks=1)
    assert page.run("decentReport.view.range") == pytest.approx([10, 20], abs=0.1)
    shown = page.run("document.getElementById('train-lr').chart.uplot.scales.x")
    assert [shown["min"], shown["max"]] == pytest.approx([10, 20], abs=0.1)
    page.run("document.getElementById('reset').click()")
    assert page.run("decentReport.view.range") is None

    page.run("document.querySelector('#loss .plot').focus()")
    page.key("ArrowRight")
    page.key("ArrowRight")
    assert_says(page.run("document.getElementById('spoken').textContent"), "training", f"{losses[4]:.4g}"[:5], "step 4")
    page.key("+")
    low, high = page.run("decentReport.view.range")
    assert 0 <= low < 4 < high < 40
    page.key("Escape")
    assert page.run("decentReport.view.range") is None and page.console == []


def all_of(page: Page, selector: str, condition: str) -> bool:
    """Whether the condition holds for each of the elements, of which there are some."""
    return page.run(f"(() => {{ const all = [...document.querySelectorAll('{selector}')]; "
                    f"return all.length > 0 && all.every((each) => {condition}); }})()")


@needs_chromium
def test_names_for_screen_readers(runs: list[Run], page: Page) -> None:
    show(page, runs[0].folder / "report.html")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    controls = [(role, name) for role, name in named if role in ("button", "radio", "application", "table", "region", "figure")]
    assert {name for role, name in controls if role == "application"} >= {"Loss", "Accuracy", "Consensus distance", "Time of an update"}
    assert {name for role, name in controls if role == "radio"} == {"Steps", "Samples", "Time"}
    assert [name for role, name in controls if role in ("button", "radio", "application", "region") and not name] == []
    assert page.run("document.documentElement.lang") == "en"
    levels = page.run("[...document.querySelectorAll('h1, h2, h3')].map((heading) => Number(heading.tagName[1]))")
    assert levels[0] == 1 and all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels
    page.size(400)
    assert all_of(page, ".scroll", "each.tabIndex === 0 && each.getAttribute('role') === 'region' && each.getAttribute('aria-label')")
    assert all_of(page, "button, summary, .choice", "each.tagName === 'SUMMARY' || each.hidden || each.getBoundingClientRect().height >= 24")
    assert all_of(page, "#recipe td", "each.getBoundingClientRect().right <= 400")


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_widths_and_colours(scheme: str, runs: list[Run], page: Page) -> None:
    page.media(scheme)
    show(page, runs[0].folder / "report.html")
    for width in (400, 900, 1600):
        page.size(width)
        page.run("new Promise((done) => setTimeout(done, 50))")
        assert page.run("document.documentElement.scrollWidth") == width
        widths = page.run("[...document.querySelectorAll('.charts figure')].map((each) => [each.clientWidth, each.querySelector('canvas').clientWidth])")
        assert widths and all(figure == canvas and 300 < canvas < 900 for figure, canvas in widths), widths
    dark = page.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 28)"
    assert dark == (scheme == "dark")
    drawn = page.run("(() => { const canvas = document.querySelector('#shares canvas'); const all = canvas.getContext('2d')"
                     ".getImageData(0, 0, canvas.width, canvas.height).data; const found = new Set(); "
                     "for (let i = 0; i < all.length; i += 4) if (all[i + 3] === 255) found.add(`${all[i]},${all[i + 1]},${all[i + 2]}`); "
                     "return [...found]; })()")
    colour = {"light": "209,101,26", "dark": "240,148,90"}
    assert colour[scheme] in drawn and colour["dark" if scheme == "light" else "light"] not in drawn


@needs_chromium
def test_print(runs: list[Run], page: Page) -> None:
    page.media("dark")
    show(page, runs[0].folder / "report.html")
    page.run("addEventListener('beforeprint', () => { window.printed = [...document.querySelectorAll('.charts canvas')].map((each) => "
             "[each.clientWidth, getComputedStyle(document.body).backgroundColor]); })")
    assert page.pdf().startswith(b"%PDF")
    printed = page.run("window.printed")
    assert printed and all(width == 340 and colour == "rgb(255, 255, 255)" for width, colour in printed)
    page.drawn()
    assert page.run("document.querySelector('#loss canvas').clientWidth") > 340 and page.console == []


# ---- files of other versions, damaged and hostile ones ------------------------------------------------


@needs_chromium
def test_hostile_text_stays_text(page: Page, tmp_path: Path) -> None:
    lines = [{"kind": "train", "step": 1, "loss": 1.0, HOSTILE: 2.0}, {"kind": "eval", "step": 1, "loss": 1.0, "samples": 1},
             {"kind": "end", "status": HOSTILE, "step": 1, "wall_s": 1},
             {"kind": "eval", "step": 1, "loss": 1.0, "source": HOSTILE, "checkpoint": HOSTILE}]
    folder = made_by_hand(tmp_path / "<img src=x onerror=alert(1)>", lines, f"name: {json.dumps(HOSTILE)}\n",
                          f"2026-01-02 03:04:05.678 W {HOSTILE}\nsecond line\n")
    start = {"time": HOSTILE, "program": HOSTILE, "step": 1, "workers": 2, "lines": [[HOSTILE, HOSTILE]], "phases": [],
             "changed": [[HOSTILE, HOSTILE, HOSTILE]]}
    (folder / "run.json").write_text(json.dumps({"format": 1, "defaults": {HOSTILE: HOSTILE}, "facts": {HOSTILE: HOSTILE},
                                                 "starts": [start, start]}))
    (folder / "eval-confusion.csv").write_text(f'true \\ predicted,"{HOSTILE.replace(chr(34), chr(34) * 2)}"\n'
                                               f'"{HOSTILE.replace(chr(34), chr(34) * 2)}",3\n')
    show(page, report(tmp_path / "hostile.html", folder))
    assert page.run("window.hacked") is None
    assert page.run("document.images.length") == 0 and page.run("document.scripts.length") == 3
    assert page.run("document.querySelector('h1').firstChild.textContent") == HOSTILE
    text = page.run("document.body.textContent")
    assert text.count("onerror='window.hacked") >= 15
    assert page.run("document.querySelector('#warnings li').lastChild.textContent") == HOSTILE + "\nsecond line"
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    show(page, report(tmp_path / "two.html", folder, other))
    assert page.run("window.hacked") is None


@needs_chromium
def test_damaged_lines_are_left_out_and_counted(page: Page, tmp_path: Path) -> None:
    good = [{"kind": "train", "step": step, "loss": 1.0 / step} for step in (1, 2, 3)]
    bad = ['{"kind":"train","step":4,"lo', "[1]", '"x"', '{"kind":"train","step":2,"loss":9}', '{"kind":"train","step":-1,"loss":9}',
           '{"step":5}', "\x00\xff", '{"kind":"train","step":1e999}', "[" * 100000]
    text = "".join(json.dumps(line) + "\n" for line in good) + "\n".join(bad)
    folder = made_by_hand(tmp_path / "run", text, "name: [1\n")
    show(page, report(tmp_path / "page.html", folder))
    assert curve(page, "loss")["ys"] == [1.0, 0.5, 1 / 3]
    assert_says(page.run("document.querySelector('.notice').innerText"), f"metrics.jsonl: {len(bad)} lines could not be read", "recipe.yaml: line ")


@needs_chromium
def test_run_of_an_older_version(page: Page, tmp_path: Path) -> None:
    """Fewer fields, one that nobody knows, numbers that were not finite, nothing but metrics.jsonl."""
    lines = [{"kind": "train", "step": 1, "loss": 2.0}, {"kind": "train", "step": 2, "loss": None, "later_field": 0.5},
             {"kind": "train", "step": 3, "loss": 1.0, "later_field": 0.25}]
    folder = made_by_hand(tmp_path / "old", lines)
    (folder / "recipe.yaml").unlink()
    show(page, report(tmp_path / "old.html", folder))
    assert curve(page, "loss")["ys"] == [2.0, None, 1.0]
    assert curve(page, "train-later_field")["ys"] == [None, 0.5, 0.25]
    assert_says(page.run("document.body.innerText"), "old", "no end recorded", "Later field")


@needs_chromium
def test_epochs_are_those_of_the_last_line(page: Page, tmp_path: Path) -> None:
    """The last evaluation may be later than the last train line."""
    folder = made_by_hand(tmp_path / "run", [{"kind": "train", "step": 10, "epoch": 2.5, "loss": 2.0},
                                             {"kind": "eval", "step": 12, "epoch": 3.0, "loss": 1.0}])
    show(page, report(tmp_path / "page.html", folder))
    assert_says(page.run("document.querySelector('.tiles').innerText"), "12", "3 epochs")


@needs_chromium
def test_odd_figures_and_recipes(page: Page, runs: list[Run], tmp_path: Path) -> None:
    """Of one run among others: names that every object has, numbers beyond reason, an early end."""
    lines = [{"kind": "train", "step": 1, "loss": 2.0, "constructor": 1.0, "toString": 2.0, "samples_per_s": 16.0, "step_ms": 1000.0},
             {"kind": "end", "status": "completed", "step": 1, "wall_s": 1.0, "stopped_early": True}]
    own = "name: odd\ndata: {batch_size: 4}\nparallel: {topology: ring, gamma: 1.0e+308, slices: -3, local_world_size: 1.0e+300}\n"
    folder = made_by_hand(tmp_path / "odd", lines, own)
    for shown in ([folder], [folder, runs[0].folder]):
        show(page, report(tmp_path / "page.html", *shown))
        assert_says(page.run("document.body.innerText"), "stopped early", "Topolog", "odd")
        assert page.run("document.querySelectorAll('canvas').length") > 3


def test_page_holds_every_digit_and_no_address(runs: list[Run]) -> None:
    """What the page needs is in it, and it asks for nothing (its policy would refuse)."""
    text = (runs[0].folder / "report.html").read_text()
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert data["runs"][0]["train"]["loss"] == [line["loss"] for line in runs[0].lines("train")]
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'" in text
    assert "Permission is hereby granted" in text  # uPlot's licence


# ---- several runs -----------------------------------------------------------------------------------


@needs_chromium
def test_comparison(runs: list[Run], page: Page, tmp_path: Path) -> None:
    show(page, report(tmp_path / "both.html", *(run.folder for run in runs)))
    evaluations = [run.lines("eval")[:4] for run in runs]
    for number, lines in enumerate(evaluations):
        assert curve(page, "eval-loss", number) == {"name": ("quick", "slow")[number], "xs": [10, 20, 30, 40],
                                                    "ys": [line["loss"] for line in lines]}
    common = max(min(line["loss"] for line in lines) for lines in evaluations)
    reached = [next(line["step"] for line in lines if line["loss"] <= common) for lines in evaluations]
    assert page.run("commonLoss(decentReport.runs)") == {"loss": common, "kind": "eval"}
    rows = page.run("[...document.querySelectorAll('#results tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
    assert [row[0] for row in rows] == ["quick", "slow"] and [int(row[-3]) for row in rows] == reached
    assert [int(row[-2]) for row in rows] == [16 * step for step in reached]
    differ = page.run("[...document.querySelectorAll('#differences tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
    assert differ == [["optimizer.lr", "0.003", "3e-04"]]
    page.run("document.querySelector('#results input').click()")  # the first run out of sight
    assert page.run("document.getElementById('eval-loss').chart.uplot.data.length") == 2


@needs_chromium
def test_comparison_of_unlike_runs(page: Page, tmp_path: Path) -> None:
    """Losses of one kind are beside one another, and rates are of all samples over all seconds."""
    unlike = [{"kind": "train", "step": 1, "loss": 0.5, "samples_per_s": 1000.0, "step_ms": 1000.0},
              {"kind": "train", "step": 10, "loss": 0.4, "samples_per_s": 250.0, "step_ms": 4000.0}]
    folders = [made_by_hand(tmp_path / "trained", unlike), made_by_hand(tmp_path / "both", [*unlike, {"kind": "eval", "step": 10, "loss": 0.1}]),
               made_by_hand(tmp_path / "evaluated", [{"kind": "eval", "step": 10, "loss": 0.2}])]
    show(page, report(tmp_path / "page.html", *folders))
    head, *rows = page.run("[...document.querySelectorAll('#results tr')].map((row) => [...row.cells].slice(2).map((cell) => cell.textContent))")
    assert head == ["steps", "training time", "best training loss", "consensus distance", "samples/s"]
    rate = 10000 / 37
    assert rows == [["10", "37.0 s", "0.40", "–", f"{rate:.0f}"]] * 2 + [["10", "–", "–", "–", "–"]]
    show(page, report(tmp_path / "one.html", folders[0]))
    assert_says(page.run("document.querySelector('.tiles').innerText"), f"{rate:.0f} samples/s", "37.0 s")


def test_ways_to_name_folders(runs: list[Run], tmp_path: Path) -> None:
    first, second = (run.folder for run in runs)
    for number, flags in enumerate([["--report", first, second], ["--report", first, "--report", second], [first, "--report", second]]):
        out = tmp_path / f"{number}.html"
        ended = run_alone(*flags, "--out", out)
        assert (ended.code, ended.out, ended.err) == (0, f"{out} of 2 runs\n", "")
        assert out.read_text().count('"status":"completed"') == 2


def test_one_worker_writes(runs: list[Run], tmp_path: Path) -> None:
    """Under a launcher, whose other workers need not even be there."""
    ended = run_alone("--report", runs[0].folder, "--out", tmp_path / "x.html", **launcher_variables(1, 2, 1))
    assert ended.code == 0 and not (tmp_path / "x.html").exists()
    ended = run_alone("--report", runs[0].folder, "--out", tmp_path / "x.html", **launcher_variables(0, 2, 1))
    assert ended.code == 0 and (tmp_path / "x.html").exists()


def test_mistakes(runs: list[Run], tmp_path: Path) -> None:
    folder, out = runs[0].folder, tmp_path / "out.html"
    (tmp_path / "linked.html").hardlink_to(folder / "metrics.jsonl")
    before = (folder / "metrics.jsonl").read_bytes()
    for flags, said in [
        (["--report", tmp_path, "--out", out], "holds no run (neither metrics.jsonl nor recipe.yaml)"),
        (["--report", tmp_path / "none", "--out", out], "there is no such folder"),
        (["--report", folder / "recipe.yaml", "--out", out], "this is a file; give the folder of the run"),
        (["--report", folder], "needs one of --out FILE.html and --serve PORT"),
        (["--report", "--out", "c.html"], "--report needs the folder of a run, got '--out'"),
        (["--report", folder, "--out", "a.html", "--out", "b.html"], "--out is given twice"),
        (["--report", folder, "--out", tmp_path / "out.txt"], "must end in .html"),
        (["--report", folder, "--out", tmp_path / "linked.html"], "A file that is read is never written over"),
        (["--report", folder, "--out", out, "--workers", 2], "does not go with --workers"),
        (["--report", folder, "--out", out, "--config", "x.yaml"], "does not go with --config"),
        (["--report", folder, "--out", out, "--reprot", "x"], "did you mean '--report'"),
        (["x.yaml", "--out", out], "--out is for --report"),
    ]:
        assert_says(error_message([run_alone(*flags)], 2), said)
    assert not out.exists() and (folder / "metrics.jsonl").read_bytes() == before
    assert_says(error_message([run_alone("--report", folder, "--out", tmp_path / "no" / "out.html")], 6), "cannot write", os.strerror(2))


def test_a_run_without_evaluations_has_a_page(tmp_path: Path) -> None:
    folder = train(tmp_path, recipe(train={"steps": 3}, data={"eval": None})).folder
    assert '"status":"completed"' in (folder / "report.html").read_text()
