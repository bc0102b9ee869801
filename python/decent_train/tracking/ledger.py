"""Which lines of a run a tracker holds."""

from __future__ import annotations

import hashlib
from typing import Any

from .row import Identity
from .steps import Steps

# In this form in a tag of MLflow, which holds some thousand characters.
_FORMAT = 1


class Ledger:
    """The lines that a tracker holds and that count: where other workers trained steps again, those of the last time.
    """

    def __init__(self) -> None:
        self.train = Steps()
        self.eval = Steps()
        self.added: dict[str, int] = {}  # as said by added_key(): how many
        self.resumes: list[list[Any]] = []
        self.end: list[Any] | None = None  # step and status

    def note(self, identity: Identity) -> None:
        """The tracker has got this line."""
        kind, *rest = identity
        if rest and isinstance(rest[-1], dict):
            back = rest.pop()
            self._go_back(back["back"], back["resumes"])
        if kind == "resume":
            self.resumes.append(rest)
        elif kind == "added":
            step, source, checkpoint, number = rest
            self.added[added_key(step, source, checkpoint)] = number
        elif kind == "end":
            self.end = rest
        else:
            (self.train if kind == "train" else self.eval).add(rest[0])

    def _go_back(self, step: int, resumes: int) -> None:
        self.train.cut(step)
        self.eval.cut(step)
        del self.resumes[resumes:]

    def to_json(self) -> dict[str, Any]:
        return {"format": _FORMAT, "train": self.train.ranges(), "eval": self.eval.ranges(), "added": self.added,
                "resumes": self.resumes, "end": self.end}

    @classmethod
    def from_json(cls, json: dict[str, Any]) -> Ledger:
        """Raises ValueError if a later version wrote it."""
        if json["format"] != _FORMAT:
            raise ValueError("a later version of decent-track has sent this run")
        ledger = cls()
        ledger.train, ledger.eval = Steps(json["train"]), Steps(json["eval"])
        ledger.added, ledger.resumes, ledger.end = json["added"], json["resumes"], json["end"]
        return ledger

    def copy(self) -> Ledger:
        import json

        return Ledger.from_json(json.loads(json.dumps(self.to_json())))


def added_key(step: int, source: str, checkpoint: str) -> str:
    """Short, as a tag of MLflow holds some thousand characters, and each evaluation that was added has one."""
    return hashlib.sha256("|".join((str(step), source, checkpoint)).encode(errors="replace")).hexdigest()[:10]
