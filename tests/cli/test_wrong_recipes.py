"""Every key of the recipe with wrong types, out of range and misspelled: exit 2, a line that names it for each, no training.

All mistakes of a recipe are reported together, so one recipe has a mistake in every key; that a key alone is refused shows
a key of each section. unit.config has every key alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from program import ROOT, run_alone
from runs import recipe


def documented_keys() -> dict[str, str]:
    """Dotted key -> its type, from the tables of docs/recipe.md, which the program's own schema writes (and a test checks)."""
    keys, section = {}, None
    for line in (ROOT / "docs" / "recipe.md").read_text().splitlines():
        if line.startswith("### "):
            title = line.removeprefix("### ").strip()
            named = re.fullmatch(r"`(\w+)`", title)
            section = "" if title == "At the top" else f"{named.group(1)}." if named else None
        cells = [cell.strip() for cell in line.split(" | ")]
        key = re.fullmatch(r"\| `(\w+)`", cells[0]) if section is not None and len(cells) >= 4 else None
        if key:
            keys[section + key.group(1)] = cells[1]
    return keys


def wrong_types(key: str, type_: str) -> list[object]:
    if key == "model.inputs":  # {argument: field} is one of its forms
        return [3, [[1]]]
    if type_.startswith("a list") or type_.startswith("list"):
        return [3, {"a": 1}]
    if "mapping" in type_:
        return [3]
    return [[[1]], {"nonsense": 1}]


def out_of_range(type_: str) -> list[object]:
    values: list[object] = []
    if re.search(r">= \d", type_):
        values.append(-7)
    if "> 0" in type_ or "(0" in type_:
        values += [0, -1]
    if re.search(r"[\[(]0, 1[\])]", type_):
        values += [1.5, -0.5]
    if "> 1" in type_:
        values.append(1)
    if "integer" in type_ and "list" not in type_:
        values += [1.5, 10**30]
    if "number" in type_ and "list" not in type_:
        values += [".nan", "x1"]
    if "true or false" in type_:
        values += ["perhaps", 2]
    if re.search(r"\w+, \w+", type_) and "number" not in type_ and "list" not in type_:
        values.append("nosuchname")
    return values


def misspelled(key: str) -> str:
    name = key.rpartition(".")[2]
    return name[: len(name) // 2] + "z" + name[len(name) // 2 :]


@dataclass(frozen=True)
class Mistake:
    """A key that stands in the recipe under `name` (another one where it is misspelled) with `value`."""

    key: str
    name: str
    value: object

    @property
    def section(self) -> str:
        return self.key.rpartition(".")[0]

    def said(self, text: str) -> bool:
        """With line and column, and the nearest key where there is none of this name."""
        if self.name != self.key.rpartition(".")[2]:
            written = re.escape(f"{self.section}.{self.name}".lstrip("."))
            nearest = re.escape(self.key.rpartition(".")[2])
            return re.search(rf"recipe\.yaml:\d+:\d+: {written}: .*did you mean '{nearest}'", text) is not None
        return re.search(rf"recipe\.yaml:\d+:\d+: {re.escape(self.key)}[.:]", text) is not None

    def put_into(self, recipe: dict) -> None:
        place = recipe.setdefault(self.section, {}) if self.section else recipe
        place.pop(self.key.rpartition(".")[2], None)
        place[self.name] = self.value


def mistakes_of(key: str, type_: str) -> list[Mistake]:
    name = key.rpartition(".")[2]
    if key in ("data.train", "data.eval"):
        return [Mistake(key, name, value) for value in (3, {"format": "cvs"})]
    wrong = [Mistake(key, name, value) for value in wrong_types(key, type_) + out_of_range(type_)]
    return [*wrong, Mistake(key, misspelled(key), 1)]


def all_mistakes() -> list[list[Mistake]]:
    """Of every key."""
    return [mistakes_of(key, type_) for key, type_ in documented_keys().items()]


def refusal(folder: Path, mistakes: list[Mistake]) -> str:
    """What is said of a recipe with these mistakes and no others, before anything is written."""
    own = json.loads(json.dumps(recipe()))
    for mistake in mistakes:
        mistake.put_into(own)
    own.setdefault("output", str(folder / "run"))
    (folder / "recipe.yaml").write_text(json.dumps(own, indent=1))
    ended = run_alone("--config", folder / "recipe.yaml", cwd=folder)
    assert (ended.code, ended.out) == (2, ""), f"{mistakes}\n{ended.err}"
    assert {path.name for path in folder.iterdir()} == {"recipe.yaml"}, mistakes
    return ended.err


def test_there_are_enough() -> None:
    """Else the tables could not be read."""
    mistakes = all_mistakes()
    assert len(mistakes) >= 70 and sum(map(len, mistakes)) >= 200


@pytest.mark.parametrize("turn", range(max(map(len, all_mistakes()))))
def test_a_mistake_in_every_key(turn: int, tmp_path: Path) -> None:
    """In several recipes, since of more than a hundred not all are said."""
    mistakes = [of_key[turn] for of_key in all_mistakes() if turn < len(of_key)]
    for number, part in enumerate((mistakes[::2], mistakes[1::2])):
        folder = tmp_path / str(number)
        folder.mkdir()
        said = refusal(folder, part)
        unsaid = [mistake for mistake in part if not mistake.said(said)]
        assert not unsaid, f"{unsaid} of {len(part)} in\n{said}"


def one_of_each_section() -> list[Mistake]:
    """By turns a wrong type, out of range and misspelled."""
    sections = {of_key[0].section: of_key for of_key in all_mistakes()}
    return [of_key[-1 - i % min(3, len(of_key))] for i, of_key in enumerate(sections.values())]


@pytest.mark.parametrize("mistake", one_of_each_section(), ids=lambda mistake: mistake.key)
def test_a_single_mistake(mistake: Mistake, tmp_path: Path) -> None:
    said = refusal(tmp_path, [mistake])
    assert mistake.said(said) and 1 <= len(said.splitlines()) <= 5, said
