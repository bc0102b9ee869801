"""The steps for a machine with a GPU (tests/gpu), packed and rehearsed on the fake one: some steps and networks, all of them with
DECENT_REHEARSE=1.
"""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from gpus import FAKE_WHY_NOT
from program import PROGRAM, ROOT

pytestmark = pytest.mark.skipif(FAKE_WHY_NOT is not None, reason=str(FAKE_WHY_NOT))
STEPS = [] if os.environ.get("DECENT_REHEARSE") else ["2", "5", "7", "9"]
NETWORKS = {"DECENT_SWEEP": "batch_norm_mlp gru"} if STEPS else {}


def test_steps_do_what_they_say() -> None:
    build = str(PROGRAM.parents[1].relative_to(ROOT))
    packed = subprocess.run([ROOT / "tests/gpu/pack", build], capture_output=True, text=True, env={**os.environ, **NETWORKS})
    assert packed.returncode == 0, packed.stderr
    ended = subprocess.run([ROOT / "tests/gpu/rehearse", *STEPS], capture_output=True, text=True,
                           env={**os.environ, "REHEARSAL": build, "OMP_NUM_THREADS": "1"})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "not found" not in ended.stdout + ended.stderr
    ends = [line for line in ended.stdout.splitlines() if line.startswith("== ") and ": exit " in line]
    assert len(ends) >= 14
    if not STEPS:
        return
    assert "[  PASSED  ]" in ended.stdout
    assert [line for line in ends if ": exit 0" not in line] == []


def test_a_step_that_is_not_there() -> None:
    ended = subprocess.run([ROOT / "tests/gpu/step", "11"], capture_output=True, text=True, env={**os.environ, "REHEARSAL": "build"})
    assert ended.returncode == 2 and re.search(r"steps? 1( to |\.\.)10", ended.stderr), ended.stderr
