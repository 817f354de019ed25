"""Write every table anew: ``python -m tests.golden [SET ...]``."""

import sys

from tests.golden import SETS, write

for name in sys.argv[1:] or SETS:
    write(name)
