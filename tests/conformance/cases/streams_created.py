"""createStream, checkStreamExists, getStreamConfiguration (controller-grpc-api 5.3; semantics 1.4)."""

from typing import Any

from conformance.answers import MALFORMED, NOT_FOUND
from conformance.calls import (
    BY_EVENTS,
    BY_KBYTES,
    BY_SIZE,
    BY_TIME,
    FIXED,
    NO_RETENTION,
    STREAM,
    TWO_SEGMENTS,
    UNBOUNDED,
    create_scope,
    create_stream,
    create_stream_without_policy,
    current_segments,
    epoch_segments,
    missing,
    owners_of_segments,
    seal,
    stream_configuration,
    stream_exists,
)
from conformance.case import Subject
from conformance.views import Range

CREATE = Subject("create_stream")
case = CREATE.case


def equal_ranges(count: int, first: int = 0) -> list[Range]:
    """As the original computes them, and the clients with it."""
    return [(first + i, i * (1.0 / count), (i + 1) * (1.0 / count)) for i in range(count)]


def _pinned(count: int) -> list[Range]:
    *others, (id, low, _high) = equal_ranges(count)
    return [*others, (id, low, 1.0)]


def configuration(**changed: object) -> dict[str, object]:
    """Of `sc/st` with one segment and nothing else, but for what is given."""
    plain: dict[str, object] = {
        "stream": "sc/st",
        "scaling": (0, 0, 0, 1),
        "retention": None,
        "tags": [],
        "timeout": 0,
        "rollover": 0,
    }
    return plain | changed


_PINNED = (
    "n times 1/n is less than 1 for this n, and a list that does not end at 1.0 is no stream to the clients: "
    "the last bound is pinned"
)
_HALF = "a stream without segments is refused before anything of it is kept; the original keeps it half made for ever"

case(
    "fixed",
    create_scope(),
    create_stream(segments=7),
    current_segments().gives(equal_ranges(7)),
    owners_of_segments().gives({"sc/st"}),
    epoch_segments(0).gives(equal_ranges(7)),
)
for _count in (49, 98):
    case(
        f"{_count}_segments",
        create_scope(),
        create_stream(segments=_count),
        current_segments().differs(peer=equal_ranges(_count), sluice=_pinned(_count), why=_PINNED),
    )
case(
    "twice_keeps_the_first_configuration",
    *TWO_SEGMENTS,
    create_stream(segments=5).gives("STREAM_EXISTS"),
    stream_configuration().gives(configuration(scaling=(0, 0, 0, 2))),
    current_segments().gives(equal_ranges(2)),
    seal(),
    create_stream().gives("STREAM_EXISTS"),
)
case(
    "in_missing_scope",
    create_stream("st", "").gives(MALFORMED),
    create_stream().gives("SCOPE_NOT_FOUND"),
    create_stream("a_b").gives("INVALID_STREAM_NAME"),
    stream_exists().gives(False),
)
case("of_250_characters", create_scope(), create_stream("x" * 250), stream_exists("x" * 250))
case("with_dot_and_hyphen", create_scope(), create_stream("a.b-c"))
case("with_leading_underscore", create_scope(), create_stream("_st"), current_segments("_st").gives(equal_ranges(1)))
case(
    "impossible_name",
    create_scope(),
    *(create_stream(name).gives("INVALID_STREAM_NAME") for name in ("x" * 256, "a_b", "_", "a/b", "ä", "")),
    create_stream("a_b", tags=["t" * 256]).gives(MALFORMED),
)
case(
    "named_like_a_segment", create_scope(), create_stream("0.epoch.0"), current_segments("0.epoch.0").gives([(0, 0, 1)])
)

_STORED: dict[str, tuple[dict[str, Any], dict[str, object]]] = {
    "by_events": ({"scaling": (BY_EVENTS, 100, 2), "segments": 2}, {"scaling": (2, 100, 2, 2)}),
    "by_kbytes": ({"scaling": (BY_KBYTES, 10, 3)}, {"scaling": (1, 10, 3, 1)}),
    "with_rate_for_fixed_scaling": ({"scaling": (FIXED, 9, 9)}, {"scaling": (0, 9, 9, 1)}),
    "kept_by_time": ({"retention": (BY_TIME, 60_000, UNBOUNDED)}, {"retention": (1, 60_000, UNBOUNDED)}),
    "kept_by_size": ({"retention": (BY_SIZE, 1000, 2000)}, {"retention": (2, 1000, 2000)}),
    "with_retention_of_no_type": ({"retention": (NO_RETENTION, 5, 6)}, {"retention": None}),
    "with_most_below_least": ({"retention": (BY_SIZE, 2000, 1000)}, {"retention": (2, 2000, 1000)}),
    "with_timeout_and_rollover": ({"timeout": 5000, "rollover": 1 << 20}, {"timeout": 5000, "rollover": 1 << 20}),
}
"""What is sent, and what is stored of it."""
for _kind, (_sent, _stored) in _STORED.items():
    case(_kind, create_scope(), create_stream(**_sent), stream_configuration().gives(configuration(**_stored)))
case(
    "malformed",
    create_scope(),
    create_stream(scaling=(7, 0, 0)).gives(MALFORMED),
    create_stream(retention=(7, 0, 0)).gives(MALFORMED),
    create_stream(rollover=-1).gives(MALFORMED),
)
case("without_policy", create_scope(), create_stream_without_policy().gives("FAILURE"))
case(
    "of_no_segments_leaves_nothing",
    create_scope(),
    create_stream(segments=0).gives("FAILURE"),
    stream_exists().differs(peer=True, sluice=False, why=_HALF),
    create_stream().differs(peer="FAILURE", sluice="SUCCESS", why=_HALF),
)
case("of_negative_segments", create_scope(), create_stream(segments=-1).gives("FAILURE"))

case("exists_missing", *missing(stream_exists, answer=False))
case(
    "exists_sealed",
    *STREAM,
    stream_exists(),
    seal(),
    stream_exists(),
    stream_configuration().gives(configuration()),
)
case(
    "mark_stream",
    *TWO_SEGMENTS,
    stream_exists("_MARKst"),
    stream_configuration("_MARKst").gives(configuration(stream="sc/_MARKst")),
    current_segments("_MARKst").gives(equal_ranges(1)),
    create_stream("_MARKst").gives("STREAM_EXISTS"),
)

case("configuration_missing", *missing(stream_configuration, NOT_FOUND))
