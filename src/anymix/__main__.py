"""`python -m anymix` is the command `anymix`."""

import sys
from importlib import import_module

if __name__ == "__main__":
    sys.exit(import_module("anymix.cli").main())
