"""python -m decent_train.searching"""

import sys

from . import main

sys.exit(main())
