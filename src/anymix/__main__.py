"""`python -m anymix` is the command `anymix`."""

import sys
from importlib import import_module

if __name__ == "__main__":
    # `python -m` looks for modules in the working folder first, which may be untrusted.
    if not sys.flags.safe_path:
        del sys.path[0]
    sys.exit(import_module("anymix.cli").main())
