"""Import this first to import what the benchmarks share with the tests: the modules of tests/support."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "support"))
