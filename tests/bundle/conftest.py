from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("DECENT_SANITIZE"):
        for item in items:
            item.add_marker(pytest.mark.skip(reason="a build with sanitizers is for no other machine"))
