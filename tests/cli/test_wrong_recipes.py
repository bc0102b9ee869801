"""Every key of the recipe once with a wrong type, once out of range, once misspelled: exit 2, the key named, no training."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from program import ROOT, run_alone
from runs import recipe

DEFAULTS_NEEDED = {"model.path": "m.pt"}


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


def with_value(own: dict, key: str, name: str, value: object) -> dict:
    result = json.loads(json.dumps(own))
    section = key.rpartition(".")[0]
    place = result.setdefault(section, {}) if section else result
    place.pop(key.rpartition(".")[2], None)
    place[name] = value
    return result


def wrong_recipes() -> list[tuple[str, dict, str | None]]:
    """(key, recipe, what else the message names)."""
    own = recipe()
    wrong = []
    for key, type_ in documented_keys().items():
        if key in ("data.train", "data.eval"):
            wrong += [(key, with_value(own, key, key.rpartition(".")[2], value), None) for value in (3, {"format": "cvs"})]
            continue
        name = key.rpartition(".")[2]
        for value in wrong_types(key, type_) + out_of_range(type_):
            wrong.append((key, with_value(own, key, name, value), None))
        wrong.append((key, with_value(own, key, misspelled(key), 1), name))
    return wrong


def test_wrong_recipes(tmp_path: Path) -> None:
    wrong = wrong_recipes()
    keys = {key for key, _, _ in wrong}
    assert len(keys) >= 70 and len(wrong) >= 200, (len(keys), len(wrong))

    def run(number: int) -> list[str]:
        key, own, also = wrong[number]
        folder = tmp_path / str(number)
        folder.mkdir()
        own = {**own, "output": str(folder / "run")} if key != "output" else own
        (folder / "recipe.yaml").write_text(json.dumps(own, indent=1))
        ended = run_alone("--config", folder / "recipe.yaml", cwd=folder)
        section, _, name = key.rpartition(".")
        problems = []
        if ended.code != 2:
            problems.append(f"exit {ended.code}")
        if not 1 <= len(ended.err.splitlines()) <= 5:
            problems.append("length")
        if also is None and key not in ended.err:
            problems.append(f"{key} is not named")
        if also is not None and (misspelled(key) not in ended.err or f"did you mean '{also}'" not in ended.err):
            problems.append(f"the nearest key, {also}, is not named")
        if not re.search(r"recipe\.yaml:\d+:\d+: ", ended.err):
            problems.append("no line and column")
        if ended.out or {path.name for path in folder.iterdir()} != {"recipe.yaml"}:
            problems.append("it went on")
        return [f"{key} = {own.get(section, own) if section else own.get(name)}: {problem}\n{ended.err}" for problem in problems]

    with ThreadPoolExecutor(2) as pool:
        problems = [problem for found in pool.map(run, range(len(wrong))) for problem in found]
    assert not problems, f"{len(problems)} of {len(wrong)}:\n" + "\n".join(problems)
