"""Reads a document of settings and collects what is wrong with it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from ..program import TrainingError
from ..yaml_files import Document, KeyPath

KINDS = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false", int: "an integer", float: "a number",
         type(None): "null"}


class Reader:
    """The parts of a document by their paths. Every problem is noted; `finish` reports all of them together."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._problems: list[str] = []

    def at(self, path: KeyPath, default: Any = None) -> Any:
        """The part at this path, or `default` if it is not there."""
        value = self._document.value
        for key in path:
            if isinstance(value, dict) and key not in value:
                return default
            value = value[key]
        return value

    def wrong(self, path: KeyPath, problem: str) -> None:
        """Notes a problem with the part at this path."""
        place, dotted = self._document.place(path), ".".join(map(str, path))
        self._problems.append(f"{place}: {dotted}: {problem}" if dotted else f"{place}: {problem}")

    @property
    def is_good(self) -> bool:
        return not self._problems

    def finish(self) -> None:
        """Raises TrainingError (code 2) with all problems, one a line, if there are any."""
        if self._problems:
            raise TrainingError("\n".join(self._problems), 2)

    def mapping(self, path: KeyPath) -> dict[str, Any]:
        """The mapping at this path; an empty one, with a problem noted, if it is something else."""
        value = self.at(path)
        if isinstance(value, dict):
            return value
        self.wrong(path, f"must be a mapping, not {kind_of(value)}")
        return {}

    def known(self, path: KeyPath, valid: Iterable[str]) -> None:
        """Notes the keys of the mapping at this path that are not valid."""
        valid = list(valid)
        for key in self.mapping(path):
            if key not in valid:
                self.wrong((*path, key), f"unknown key; {nearest(key, valid)}")

    def integer(self, path: KeyPath, least: int, default: int | None = None) -> int | None:
        """The integer at this path, which must be `least` or more; null and nothing there are the default."""
        value = self.at(path)
        if value is None:
            return default
        if is_integer(value) and value >= least:
            return value
        self.wrong(path, f"must be an integer >= {least}, not {shown(value)}")
        return default

    def text(self, path: KeyPath, default: str | None = None) -> str | None:
        """The text at this path; null and nothing there are the default."""
        value = self.at(path)
        if value is None:
            return default
        if isinstance(value, str) and value:
            return value
        self.wrong(path, f"must be a text, not {shown(value)}")
        return default

    def one_of(self, path: KeyPath, valid: Iterable[str], default: str | None = None) -> str | None:
        """The name at this path, one of the valid ones; null and nothing there are the default."""
        value, valid = self.at(path), list(valid)
        if value is None:
            return default
        if isinstance(value, str) and value in valid:
            return value
        self.wrong(path, f"{shown(value)} is not valid; {nearest(str(value), valid)}")
        return default


def is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def kind_of(value: object) -> str:
    return KINDS.get(type(value), type(value).__name__)


def shown(value: object) -> str:
    """The value for a message: a plain one as YAML has it, others by their kind."""
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if is_number(value) else kind_of(value)


def nearest(name: str, valid: Iterable[str]) -> str:
    """What to write instead of `name`: the valid name that is most like it, else all of them."""
    valid = list(valid)
    found = difflib.get_close_matches(name, valid, n=1, cutoff=0.6)
    return f"did you mean '{found[0]}'?" if found else f"valid: {', '.join(valid)}"
