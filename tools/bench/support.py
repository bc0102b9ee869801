"""Import this first to make the modules of tests/support importable, which the benchmarks share with the tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "support"))
