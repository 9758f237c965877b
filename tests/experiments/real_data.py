"""Where the real data lies, if it is here."""

import os
from pathlib import Path

SHARED = Path(__file__).parents[3] / "shared"
DATA = Path(os.environ.get("ANYMIX_DATA", SHARED / "data"))
