"""append_launcher.py PROGRAM MAIN: appends a zip archive that holds MAIN as __main__.py to PROGRAM."""

import os
import shutil
import sys
import zipfile

program, main = sys.argv[1:]
# A copy takes the program's place at once, so that nobody runs one without the archive.
copy = program + ".tmp"
shutil.copy2(program, copy)
# A fixed date: the same sources give the same program.
entry = zipfile.ZipInfo("__main__.py", date_time=(2000, 1, 1, 0, 0, 0))
with open(main, encoding="utf-8") as file, zipfile.ZipFile(copy, "a") as archive:
    archive.writestr(entry, file.read())
os.replace(copy, program)
