"""`python -m retention_spark.decisions SCOPE/STREAM [COUNT]`: the last decisions on a stream, with their reasons."""

import sys

from retention_spark.history import last_decisions, line_of
from retention_spark.settings import SparkSettings
from sluice.settings import settings_of

COUNT = 20


def main(arguments: list[str]) -> int:
    """Print them, the newest one last."""
    scope, slash, stream = arguments[0].partition("/") if arguments else ("", "", "")
    if not slash:
        print("which stream? decisions SCOPE/STREAM", file=sys.stderr)
        return 2
    folder = settings_of(SparkSettings).spark_history
    rows = last_decisions(folder, scope, stream, int(arguments[1]) if len(arguments) > 1 else COUNT)
    for row in rows:
        print(line_of(row))
    if not rows:
        print(f"nothing was decided on {scope}/{stream} yet, as far as {folder} shows")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
