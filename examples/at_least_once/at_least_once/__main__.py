"""`python -m at_least_once COMMAND`."""

import sys

from at_least_once.main import main

if __name__ == "__main__":
    sys.exit(main())
