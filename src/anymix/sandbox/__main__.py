"""`python __main__.py`: the limited process; `process.py` starts it."""

import sys
from pathlib import Path

# The anymix that asks, wherever it lies.
sys.path.insert(0, str(Path(__file__).parents[2]))

from anymix.sandbox.worker import main

if __name__ == "__main__":
    main()
