"""python -m decent_train.tracking"""

import sys

from .command import main

sys.exit(main())
