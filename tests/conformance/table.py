"""All cases, by subject."""

from conformance.cases import (
    cluster,
    cuts,
    cuts_across_epochs,
    group_updates,
    groups,
    groups_refused,
    listings,
    scaling,
    scaling_refused,
    scopes,
    scopes_recursive,
    segments,
    streams_created,
    streams_ended,
    streams_updated,
    subscribers,
    tables,
    tags,
    writers,
)

_SUBJECTS = (
    scopes.SCOPES,
    scopes_recursive.RECURSIVE,
    listings.LISTINGS,
    tags.TAGS,
    streams_created.CREATE,
    streams_updated.UPDATE,
    streams_ended.END,
    segments.SEGMENTS,
    cuts.CUTS,
    cuts_across_epochs.EPOCHS,
    scaling.SCALING,
    scaling_refused.REFUSED,
    groups.GROUPS,
    groups_refused.REFUSED,
    group_updates.UPDATES,
    subscribers.SUBSCRIBERS,
    tables.TABLES,
    writers.WRITERS,
    cluster.CLUSTER,
)

CASES = tuple(case for subject in _SUBJECTS for case in subject.cases)
