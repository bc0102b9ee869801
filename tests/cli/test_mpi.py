"""docs/slurm.md under Open MPI and under Hydra, the mpiexec of MPICH: no wrapper, exit codes, and what is left without them."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from program import PROGRAM, Ended, environment, run_commands
from runs import Run, assert_same_run, assert_says, merged, write_recipe
from supervised import ENDLESS, SETTINGS, Supervised, assert_stopped, assert_whole, run_supervised, train_supervised
