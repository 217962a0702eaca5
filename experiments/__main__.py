"""Command line of the experiments: ``python -m experiments PAPER STAGE … [options]``."""

import sys

from experiments.shared.command_line import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
