"""`python -m sluice.catalog docs` writes docs/asyncapi.yaml, docs/schemas and the blocks of docs/topics.md and
docs/kafka-access.md, which are made from the code."""

import argparse
from pathlib import Path

from sluice.catalog.writing import write


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sluice.catalog", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the documentation")
    for path in write(parser.parse_args().folder):
        print(path)


if __name__ == "__main__":
    main()
