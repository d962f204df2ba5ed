"""All jobs there are, by name; see `sluice.lookback.jobs`."""

from typing import Any

from sluice.lookback import (
    deciding,
    describing,
    history,
    rate_history,
    replies,
    reported,
    searching,
    tracing_job,
    what_if,
)
from sluice.lookback.jobs import Job

JOBS: dict[str, Job[Any, Any]] = {
    job.name: job
    for job in (
        describing.STREAM,
        describing.SCOPE,
        describing.GROUP,
        describing.TABLE,
        describing.CLUSTER_AT,
        history.CONTAINERS,
        history.MEMBERS,
        rate_history.RATE_HISTORY,
        rate_history.UNREAD,
        searching.JOURNAL_SEARCH,
        tracing_job.TRACE,
        replies.REPLIES,
        deciding.DECISIONS,
        reported.REPORTED,
        what_if.WHAT_IF,
    )
}
