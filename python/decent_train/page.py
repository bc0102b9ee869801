"""Pages that show runs: `Run.report` and `compare`."""

from __future__ import annotations

import atexit
import html
import os
import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from .program import run

if TYPE_CHECKING:
    from .runs import Run

_HEIGHT_PX = 800


class Page:
    """A page about one or several runs (docs/report.md). A notebook shows it; elsewhere `open()` does."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> None:
        """Shows the page in the web browser."""
        if not webbrowser.open(self.path.absolute().as_uri()):
            raise RuntimeError(f"no web browser was found: open '{self.path}' in one")

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Page('{self.path}')"

    def _repr_html_(self) -> str:
        """The whole page in a frame. It may run its own scripts, and nothing of it reaches the notebook around it."""
        page = html.escape(self.path.read_text())
        return (f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="width: 100%; height: {_HEIGHT_PX}px; '
                'border: 1px solid #8884"></iframe>')


def compare(*runs: Run | str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> Page:
    """A page that compares runs, given as Run or by their folders; of one run, that run's page.

    path: where the page is written, a name that ends in .html. Without it, the page lies in a temporary folder until Python
        ends. Raises TrainingError if a folder holds no run or the page cannot be written.
    """
    from .runs import Run

    folders = [each.folder if isinstance(each, Run) else Path(each) for each in runs]
    if not folders:
        raise TypeError("compare() needs at least one run")
    file = Path(path) if path is not None else _temporary_file()
    run(["--report", *folders, "--out", file])
    return Page(file)


def _temporary_file() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="decent-train-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return Path(folder.name, "report.html")
