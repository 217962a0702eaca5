"""``python -m pertinent``."""

from __future__ import annotations

import sys

from pertinent.cli import main

if __name__ == "__main__":
    sys.exit(main())
