"""Writes what is made from the code into the documentation, or freezes the present form of the messages.

`python -m sluice.catalog docs` writes docs/asyncapi.yaml, docs/schemas and the blocks of docs/topics.md and
docs/kafka-access.md;
`python -m sluice.catalog --freeze tests/contract/frozen` makes the present messages what later ones are held against.
"""

import argparse
import sys
from pathlib import Path

from sluice.catalog.writing import IncompatibleError, freeze, write


def main() -> None:
    """Status 1, and why on standard error, if the messages may not be frozen as they are."""
    parser = argparse.ArgumentParser(prog="python -m sluice.catalog", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the documentation, or of the frozen messages")
    parser.add_argument("--freeze", action="store_true", help="freeze the messages instead")
    wanted = parser.parse_args()
    try:
        changed = freeze(wanted.folder) if wanted.freeze else write(wanted.folder)
    except IncompatibleError as error:
        sys.exit(str(error))
    for path in changed:
        print(path)


if __name__ == "__main__":
    main()
