"""python -m decent_train"""

from . import main

main()
