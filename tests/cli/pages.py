"""Blocks of a page of docs/, as a reader would copy them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from program import ROOT

BLOCK = re.compile(r"<!-- (file|run|shows|not run): *([^>]*?) *-->\n```\w*\n(.*?)^```$", re.S | re.M)


@dataclass(frozen=True)
class Block:
    """A fenced block with a comment before it: what the block is, and for a file its name."""

    kind: str
    name: str
    text: str


def blocks_of(page: str) -> list[Block]:
    text = (ROOT / "docs" / page).read_text()
    found = [Block(*groups) for groups in BLOCK.findall(text)]
    fences = len(re.findall(r"^```", text, re.M)) // 2
    assert found and len(found) == fences, f"{page}: {fences} fenced blocks, of which {len(found)} say what they are"
    return found


def block(page: str, name: str) -> str:
    (text,) = [block.text for block in blocks_of(page) if block.name == name]
    return text
