"""YAML files as the program reads them: numbers are those of YAML 1.2, where `1e-3` is a number and `off` a text.

Needs PyYAML, whose own rules are those of YAML 1.1.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .program import TrainingError

KeyPath = tuple[str | int, ...]

# Tag -> the plain texts that have it, and their first characters: the core schema of YAML 1.2.
_CORE = {
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
              "-+.0123456789"),
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
}


_TAGS = {f"tag:yaml.org,2002:{name}" for name in (*_CORE, "str", "seq", "map")}


def _add_core(cls: Any) -> None:
    for name, (pattern, first) in _CORE.items():
        cls.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(rf"(?:{pattern})\Z"), list(first))


class _Loader(yaml.SafeLoader):
    """Resolves plain texts by YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # without those of YAML 1.1

    def construct_integer(self, node: yaml.ScalarNode) -> int:
        text = self.construct_scalar(node)
        bases = {"0o": 8, "0x": 16}
        return int(text[2:], bases[text[:2]]) if text[:2] in bases else int(text)


class _Dumper(yaml.SafeDumper):
    """Quotes the texts that are no texts to a reader of YAML 1.1 or 1.2. Writes no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_add_core(_Loader)
_add_core(_Dumper)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_integer)


@dataclass(frozen=True)
class Document:
    """A value, and where its parts stand. A value from Python has no places."""

    value: Any
    name: str  # of the file, or of what the value is
    places: dict[KeyPath, tuple[int, int]] = field(default_factory=dict)  # path of keys -> line and column, from 1

    def place(self, path: KeyPath) -> str:
        """file:line:column of the part, or of the nearest part around it that has a place."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                line, column = self.places[path[:length]]
                return f"{self.name}:{line}:{column}"
        return self.name


def read(path: str | Path) -> Document:
    """Raises TrainingError (code 2) if there is no such file, or if it is not one YAML document without doubled keys.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise TrainingError(f"cannot read '{path}': {error.strerror}", 2) from None
    except UnicodeDecodeError:
        raise TrainingError(f"'{path}' is not a text file in UTF-8", 2) from None
    return _parse(text, str(path))


def parse(text: str, name: str = "the text") -> Any:
    """The value of a YAML text. Raises TrainingError (code 2) if it is none; `name` stands in the message."""
    return _parse(text, name).value


def write(path: str | Path, value: object, comment: str = "") -> None:
    """The value as a YAML file, in block style, below the lines of `comment`. The file appears whole or not at all."""
    lines = "".join(f"# {line}\n" for line in comment.splitlines())
    body = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    temporary = Path(f"{path}.{os.getpid()}.tmp")
    try:
        temporary.write_text(lines + body, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _parse(text: str, name: str) -> Document:
    document = Document(None, name)
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        value = None if node is None else _value(loader, node, (), document, [])
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise TrainingError(f"{where}: {error.problem or error.context}", 2) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise TrainingError(f"{name}: this is not YAML: {str(error).splitlines()[0]}", 2) from None
    return Document(value, name, document.places)


def _value(loader: _Loader, node: yaml.Node, path: KeyPath, document: Document, around: list[yaml.Node]) -> Any:
    """The node's value. Notes the places of its parts in `document`."""
    document.places.setdefault(path, (node.start_mark.line + 1, node.start_mark.column + 1))
    if node in around:
        raise yaml.MarkedYAMLError(problem="this alias is a part of itself", problem_mark=node.start_mark)
    if node.tag not in _TAGS:
        raise yaml.MarkedYAMLError(problem=f"the tag {node.tag} has no meaning here", problem_mark=node.start_mark)
    inside = [*around, node]
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, path, document, inside)
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, each, (*path, i), document, inside) for i, each in enumerate(node.value)]
    return loader.construct_object(node)


def _mapping(loader: _Loader, node: yaml.MappingNode, path: KeyPath, document: Document,
             around: list[yaml.Node]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key must be a text", problem_mark=key.start_mark)
        if key.value in result:
            raise yaml.MarkedYAMLError(problem=f"the key '{key.value}' stands here twice", problem_mark=key.start_mark)
        document.places[(*path, key.value)] = (key.start_mark.line + 1, key.start_mark.column + 1)
        result[key.value] = _value(loader, value, (*path, key.value), document, around)
    return result
