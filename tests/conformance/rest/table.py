"""All cases of the REST API, by subject."""

from conformance.rest.cases import groups, health, scaling_events, scopes, streams, streams_changed

_SUBJECTS = (
    scopes.REST_SCOPES,
    streams.REST_STREAMS,
    streams_changed.REST_CHANGES,
    scaling_events.REST_EVENTS,
    groups.REST_GROUPS,
    health.REST_HEALTH,
)

CASES = tuple(case for subject in _SUBJECTS for case in subject.cases)
