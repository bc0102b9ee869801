"""The error of an export that is refused."""

from __future__ import annotations


class ExportError(RuntimeError):
    """No file was written, because it would not train as the module does. The message names the part of the module that
    the file cannot hold, and what to write in its place.
    """
