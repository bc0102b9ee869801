"""The GPU that tests run on: the machine's, or where there is none, one made of host memory (tests/fake_gpu)."""

from __future__ import annotations

import os
import shutil
import subprocess

from program import PROGRAM

_FAKE = PROGRAM.parents[1] / "fake_gpu"


def _has_gpu() -> bool:
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return False
    listed = subprocess.run([smi, "-L"], capture_output=True, text=True)
    return listed.returncode == 0 and "GPU " in listed.stdout


def fake_gpus(number: int = 1, **variables: object) -> dict[str, str]:
    """The environment of a process that sees so many fake GPUs. DECENT_FAKE_GPU_MB limits the memory of each, and
    DECENT_FAKE_NCCL makes a rank fail or hang where NCCL connects ("fails:1", "hangs:0").
    """
    own = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(number))), "LD_LIBRARY_PATH": str(_FAKE),
           "DECENT_CUDA_LIBRARY": str(_FAKE / "libdecent_cuda.so")}
    return {**own, **{name: str(value) for name, value in variables.items()}}


FAKE_WHY_NOT = None if _FAKE.exists() else "the program is built without CUDA"
IS_FAKE = not _has_gpu()
WHY_NOT = FAKE_WHY_NOT if IS_FAKE else None
# One GPU. CUBLAS_WORKSPACE_CONFIG gives cuBLAS a workspace that does not depend on what ran before.
ONE_GPU = fake_gpus() if IS_FAKE else {
    "CUDA_VISIBLE_DEVICES": (os.environ.get("CUDA_VISIBLE_DEVICES") or "0").split(",")[0],
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
