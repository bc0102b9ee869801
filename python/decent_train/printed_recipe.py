"""Reads recipes as the program prints them: `recipe.yaml` in a run's folder, and what --print-config shows.

The program prints every value on one line, texts in double quotes unless they are plain words. This is the part of YAML that is
read here, as the recipe's rules read it: PyYAML would take 1e-06 for a text, and knows nothing of `$${`.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r'\s*(?:([{}\[\],:])|"((?:[^"\\]|\\.)*)"|([^\s{}\[\],:"]+))')
_ESCAPE = re.compile(r'\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|(.))')
_LINE = re.compile(r"( *)([^\s:#]+):(?: (.*))?$")
_PLAIN = {"null": None, "true": True, "false": False}
_CONTROL = {"n": "\n", "t": "\t"}


def read_printed(text: str) -> dict[str, object]:
    """The recipe as nested dictionaries, lists, numbers, texts, booleans and None.

    Raises ValueError, naming the line, if the text was not printed by the program.
    """
    recipe: dict[str, object] = {}
    section = recipe
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        parts = _LINE.match(line)
        if parts is None:
            raise ValueError(f"line {number}: '{line}' is no line of a recipe as decent-train prints it")
        indent, key, value = parts.groups()
        section = section if indent else recipe
        if value is None:
            section = recipe[key] = {}
        else:
            section[key] = _value(value, number)
    return recipe


def _value(text: str, number: int) -> object:
    try:
        value, end = _read(text, 0)
        if text[end:].strip():
            raise ValueError(f"'{text[end:]}' after the value")
        return value
    except (ValueError, IndexError) as error:
        raise ValueError(f"line {number}: '{text}' is no value as decent-train prints it: {error}") from error


def _read(text: str, at: int) -> tuple[object, int]:
    """The value that begins at `at`, and where it ends."""
    mark, quoted, plain, at = _token(text, at)
    if quoted is not None:
        return _given(_unescaped(quoted)), at
    if plain is not None:
        return _plain(plain), at
    if mark == "[":
        return _read_list(text, at)
    if mark == "{":
        return _read_mapping(text, at)
    raise ValueError(f"unexpected '{mark}'")


def _read_list(text: str, at: int) -> tuple[list[object], int]:
    items: list[object] = []
    while not (end := _end(text, at, "]", first=not items)):
        item, at = _read(text, at if not items else _token(text, at)[3])
        items.append(item)
    return items, end


def _read_mapping(text: str, at: int) -> tuple[dict[str, object], int]:
    entries: dict[str, object] = {}
    while not (end := _end(text, at, "}", first=not entries)):
        _, quoted, plain, at = _token(text, at if not entries else _token(text, at)[3])
        key = _unescaped(quoted) if quoted is not None else plain
        mark, _, _, at = _token(text, at)
        if key is None or mark != ":":
            raise ValueError("expected 'key: value'")
        entries[key], at = _read(text, at)
    return entries, end


def _end(text: str, at: int, closing: str, first: bool) -> int:
    """Where the list or mapping ends, if it ends here; else 0. Before every value but the first there must be a comma."""
    mark, _, _, end = _token(text, at)
    if mark == closing:
        return end
    if not first and mark != ",":
        raise ValueError(f"expected ',' or '{closing}'")
    return 0


def _token(text: str, at: int) -> tuple[str | None, str | None, str | None, int]:
    found = _TOKEN.match(text, at)
    if found is None:
        raise ValueError("it ends too early")
    return found[1], found[2], found[3], found.end()


def _plain(text: str) -> object:
    if text in _PLAIN:
        return _PLAIN[text]
    if text[0] in "-0123456789":
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    return _given(text)


def _given(text: str) -> str:
    return text.replace("$${", "${")


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        return chr(int(code, 16)) if code else _CONTROL.get(found[3], found[3])

    return _ESCAPE.sub(character, text)
