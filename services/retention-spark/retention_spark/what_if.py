"""`python -m retention_spark.what_if SCOPE/STREAM POLICY [HOURS]`: what another policy would have done.

A batch job over everything that the topics of reports hold, or held if there is an archive, with the rules of the
streaming queries; printed beside what happened, as the history shows it. A scaling policy with another target rate
cannot be replayed (`policy_parser.NO_TARGET`).
"""

import sys
import time
from collections.abc import Iterator
from itertools import zip_longest
from textwrap import fill

from confluent_kafka import KafkaException

from retention_spark.history import decisions_since, line_of
from retention_spark.settings import SparkSettings
from retention_spark.what_if_job import would_have
from sluice.domain.config import RetentionPolicy
from sluice.domain.stream.commands import DecisionKind
from sluice.kafka_config.conf import KafkaConfError
from sluice.policies.policy_parser import NO_TARGET, UnreadableError, policy_of
from sluice.policies.reported import HistoryRow
from sluice.settings import settings_of

HOUR_MS = 3600 * 1000
HOURS = 24
_WIDTH = 78
USAGE = f"""\
usage: what_if SCOPE/STREAM POLICY [HOURS]
  POLICY  size=100MiB..1GiB | time=1h..2d | min=2,factor=4,cooldown=5m, or a part of the last
  HOURS   how far back, {HOURS} unless given
Of a scaling policy there is no target to be given:
{fill(NO_TARGET, 100)}."""


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or "/" not in arguments[0]:
        print(USAGE, file=sys.stderr)
        return 2
    scope, _, stream = arguments[0].partition("/")
    try:
        policy = policy_of(arguments[1])
    except UnreadableError as error:
        print(error, file=sys.stderr)
        return 2
    settings = settings_of(SparkSettings)
    now = time.time_ns() // 1_000_000
    since = now - int(arguments[2] if len(arguments) > 2 else HOURS) * HOUR_MS
    try:
        would = [row for row in would_have(settings, scope, stream, policy, now) if row.at >= since]
    except (KafkaConfError, KafkaException) as error:
        print(error, file=sys.stderr)
        return 2
    kind = DecisionKind.RETENTION if isinstance(policy, RetentionPolicy) else DecisionKind.SCALE
    happened = decisions_since(settings.spark_history, scope, stream, kind, since)
    for line in beside(happened, would, arguments[1]):
        print(line)
    return 0


def beside(happened: list[HistoryRow], would: list[HistoryRow], policy: str) -> Iterator[str]:
    """Lines for operators: on the left what happened, on the right what the policy would have done."""
    yield f"{'what happened':{_WIDTH}} | with {policy}"
    yield f"{_summary(happened):{_WIDTH}} | {_summary(would)}"
    yield "-" * _WIDTH + "-+-" + "-" * _WIDTH
    times = sorted({row.at // 1000 for row in (*happened, *would)})
    for second in times:
        left = [line_of(row) for row in happened if row.at // 1000 == second]
        right = [line_of(row) for row in would if row.at // 1000 == second]
        for here, there in zip_longest(left, right, fillvalue=""):
            yield f"{here[:_WIDTH]:{_WIDTH}} | {there}".rstrip()


def _summary(rows: list[HistoryRow]) -> str:
    acted = sum(bool(row.request) for row in rows)
    return f"{len(rows)} decisions, {acted} of them to act"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
