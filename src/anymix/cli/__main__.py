"""`python -m anymix.cli` is the command `anymix`."""

import sys

from anymix.cli import main

if __name__ == "__main__":
    sys.exit(main())
