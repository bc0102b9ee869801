"""Becomes the native program to which this archive is appended.

torchrun starts `python decent-train ..`; Python finds this file in the zip archive at the program's end.
"""

import os
import sys

program = os.path.abspath(sys.argv[0])
try:
    os.execv(program, [program, *sys.argv[1:]])
except OSError as error:
    sys.exit(f"decent-train: error: cannot start '{program}': {error.strerror}")
