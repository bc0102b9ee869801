"""How tracking fails."""

from __future__ import annotations


class TrackingError(RuntimeError):
    """An error that the user can do something about. `code` is the exit code of decent-track: 2 for a wrong option,
    folder or installation, 3 for a tracker that does not answer, 6 for a place that cannot be written to.
    """

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


class Unreachable(TrackingError):
    """The tracker does not answer, or cannot store anything now; the same call may succeed later."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 3)
