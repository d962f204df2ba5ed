"""`python -m retention_spark.questions [COUNT]`: what the whole archive says, as far back as it goes.

The streams that were scaled most often, transactions by outcome and day, the workflows that took longest.
"""

import sys
from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession

from retention_spark.archive_frames import repeated
from retention_spark.archive_questions import facts, gaps, longest_workflows, most_scaled, transactions
from retention_spark.session import open_session
from retention_spark.settings import SparkSettings
from sluice.security.hiding import shown
from sluice.settings import settings_of

COUNT = 10


def main(arguments: list[str]) -> int:
    settings = settings_of(SparkSettings)
    if not settings.archive:
        print("there is no archive: SLUICE_ARCHIVE says where it is", file=sys.stderr)
        return 2
    session = open_session("questions", settings)
    try:
        count = int(arguments[0]) if arguments else COUNT
        for line in repeated(lambda: _lines(session, settings.archive, count)):
            print(line)
    finally:
        session.stop()
    return 0


def _lines(session: SparkSession, target: str, count: int) -> list[str]:
    found = facts(session, target)
    if found is None:
        return [f"nothing is archived in {shown(target)} yet"]
    found.cache()
    try:
        return list(answers(found, count))
    finally:
        found.unpersist()


def answers(found: DataFrame, count: int) -> Iterator[str]:
    """Lines for operators."""
    yield f"streams that were scaled most often, {count} at most"
    yield from (f"  {times:8}  {name}" for name, times in most_scaled(found, count))
    yield "transactions that ended, by day (UTC)"
    yield from (f"  {number:8}  {day}  {outcome}" for day, outcome, number in transactions(found))
    yield f"workflows that took longest, in seconds, {count} at most"
    yield from (
        f"  {one.took_ms / 1000:8.3f}  {one.day}  {one.what}  {one.name}" for one in longest_workflows(found, count)
    )
    for partition, offset in gaps(found):
        yield f"left out: partition {partition} behind a gap, for its records before offset {offset} are missing"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
