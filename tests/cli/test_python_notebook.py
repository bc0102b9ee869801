"""In Jupyter's kernel: examples/python/digits.ipynb as a reader would run it; a training shown, interrupted, ended."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import Any

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from decent_train import Run
from program import ROOT
from runs import Run as OtherRun
from runs import merged, write_recipe
from scripts import ENDLESS, LONG, surroundings
from supervised import processes_of, wait_until

NOTEBOOK = ROOT / "examples" / "python" / "digits.ipynb"
WAIT_S = 120


def outputs_of(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_the_notebook_keeps_no_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert outputs_of(notebook) == []
    assert [cell.execution_count for cell in notebook.cells if cell.cell_type == "code" and cell.execution_count] == []


def test_the_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs from its first cell to its last, in an empty folder, and shows what its text promises."""
    replace_environment(monkeypatch)
    notebook = nbformat.read(shutil.copy(NOTEBOOK, tmp_path), as_version=4)
    NotebookClient(notebook, timeout=WAIT_S, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = outputs_of(notebook)
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    shown = [output.data for output in outputs if "data" in output]
    texts = [data["text/plain"] for data in shown]
    pages = [data["text/html"] for data in shown if "<iframe srcdoc" in data.get("text/html", "")]
    assert len(pages) == 2  # of one run, and of both
    ended = [text for text in texts if re.search(r"^done: \d+ updates in", text, re.M)]
    bars = [bar for data in shown for bar in re.findall(r'<progress value="(\d+)" max="(\d+)"', data.get("text/html", ""))]
    assert len(ended) == 2 and len(bars) == 2 and all(value == most for value, most in bars), texts
    assert [data for data in shown if 'class="dataframe"' in data.get("text/html", "")]
    (line,) = [line for output in outputs for line in output.get("text", "").splitlines() if line.startswith("right: ")]
    assert float(line.split()[1].rstrip("%")) > 90


def replace_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels inherit it: a user's of the clone."""
    wanted = surroundings()
    for name in set(os.environ) - set(wanted):
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)


class Kernel:
    """A kernel that runs one cell at a time."""

    def __init__(self, manager: KernelManager) -> None:
        self.manager = manager
        self.client = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=WAIT_S)

    def start(self, code: str) -> None:
        self.client.execute(code)

    def messages(self) -> Iterator[dict]:
        """What the cell says, until the kernel is idle again."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except Empty:
                continue
            yield message
            if message["content"].get("execution_state") == "idle":
                return
        pytest.fail("the kernel is still busy")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    replace_environment(monkeypatch)
    with running(tmp_path) as manager:
        yield Kernel(manager)


@contextmanager
def running(folder: Path) -> Iterator[KernelManager]:
    manager = KernelManager(kernel_name="python3")
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=command, display_name="Python", language="python")
    manager.start_kernel(cwd=str(folder))
    try:
        yield manager
    finally:
        manager.shutdown_kernel(now=True)


def training(config: Path) -> str:
    return f"import decent_train\nrun = decent_train.train({str(config)!r}, workers=2)\nrun"


def test_progress_in_a_notebook(kernel: Kernel, tmp_path: Path) -> None:
    """One display that changes: a bar, the last step, the last evaluation. At the end the cell shows the run."""
    kernel.start(training(write_recipe(tmp_path, merged(LONG, {"train": {"steps": 2000}}))))
    messages = list(kernel.messages())
    shown = [each for each in messages if each["msg_type"] == "display_data"]
    updates = [each for each in messages if each["msg_type"] == "update_display_data"]
    assert len(shown) == 1 and len(updates) >= 3
    display = shown[0]["content"]["transient"]["display_id"]
    assert {each["content"]["transient"]["display_id"] for each in updates} == {display}
    pages = [each["content"]["data"]["text/html"] for each in updates]
    values = [int(re.search(r'<progress value="(\d+)" max="2000"', page)[1]) for page in pages if 'max="2000"' in page]
    assert values == sorted(values) and values[0] < 2000 and values[-1] == 2000
    last = updates[-1]["content"]["data"]["text/plain"].splitlines()
    assert [line.split()[0] for line in last] == ["step", "eval", "done:"]
    assert last[1].startswith("eval at step 2000: average of 2 models: accuracy ")
    assert "<details>" in pages[-1] and "topology ring" in pages[-1]
    assert not [each for each in messages if each["msg_type"] in ("stream", "error")]
    (result,) = [each["content"]["data"]["text/plain"] for each in messages if each["msg_type"] == "execute_result"]
    assert result.startswith(f"Run('{tmp_path / 'run'}': completed, step 2000, accuracy ")


def test_interrupting_the_kernel_saves(kernel: Kernel, tmp_path: Path) -> None:
    """As its stop button does: a signal to the whole process group of the kernel."""
    config = write_recipe(tmp_path, ENDLESS)
    kernel.start(training(config))
    wait_until(lambda: OtherRun(tmp_path / "run", []).checkpoints, WAIT_S)
    kernel.manager.interrupt_kernel()
    (error,) = [each["content"] for each in kernel.messages() if each["msg_type"] == "error"]
    assert error["ename"] == "Stopped" and re.match(r"stopped after step \d+ by SIGINT", error["evalue"]), error
    run = Run(tmp_path / "run")
    assert run.status == "stopped" and f"after step {run.checkpoints[-1].step} " in error["evalue"]
    assert processes_of(config) == []


@pytest.mark.parametrize("now", [True, False])
def test_a_kernel_that_ends_leaves_no_orphan(now: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed, or restarted by its user: the program saves and stops."""
    replace_environment(monkeypatch)
    config = write_recipe(tmp_path, ENDLESS)
    with running(tmp_path) as manager:
        Kernel(manager).start(training(config))
        wait_until(lambda: OtherRun(tmp_path / "run", []).checkpoints, WAIT_S)
        manager.shutdown_kernel(now=now)
        wait_until(lambda: processes_of(config) == [], 20)
    assert Run(tmp_path / "run").status == "stopped"


def test_an_error_in_a_notebook(kernel: Kernel) -> None:
    kernel.start("import decent_train\ndecent_train.train('nowhere.yaml')")
    (error,) = [each["content"] for each in kernel.messages() if each["msg_type"] == "error"]
    assert (error["ename"], error["evalue"]) == ("TrainingError", "cannot read 'nowhere.yaml': No such file or directory")
