"""`python -m sluice_local`."""

import sys

from sluice_local.cli import main

sys.exit(main())
