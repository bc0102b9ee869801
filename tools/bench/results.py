"""Results of single measurements, each in a file of its own, so that an interrupted measurement can go on."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Callable
from pathlib import Path


class Results:
    """A folder of results. The identity of a result is kept beside it, so that another result is not taken for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _file(self, name: str) -> Path:
        return self._folder / f"{re.sub('[^a-z0-9.]+', '-', name.lower())}.json"

    def find(self, name: str, identity: dict) -> dict | None:
        path = self._file(name)
        if not path.exists():
            return None
        kept = json.loads(path.read_text())
        return kept["result"] if kept["identity"] == json.loads(json.dumps(identity)) else None

    def get(self, name: str, identity: dict, measure: Callable[[], dict]) -> dict:
        """The existing result, or a new one."""
        found = self.find(name, identity)
        return found if found is not None else self.put(name, identity, measure())

    def put(self, name: str, identity: dict, result: dict) -> dict:
        path = self._file(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        date = datetime.date.today().isoformat()
        part = path.with_suffix(".part")  # an interruption leaves no half of a file under the name
        part.write_text(json.dumps({"identity": identity, "date": date, "result": result}, indent=1) + "\n")
        os.replace(part, path)
        return result

    def made(self) -> tuple[set[str], set[str]]:
        """Dates, and the programs' names in results."""
        kept = [json.loads(path.read_text()) for path in self._folder.glob("*.json")]
        return {one["date"] for one in kept}, {one["result"]["program"] for one in kept if "program" in one["result"]}
