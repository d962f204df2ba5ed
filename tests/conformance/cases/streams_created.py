"""createStream, checkStreamExists, getStreamConfiguration (controller-grpc-api 5.3; semantics 1.4)."""

from conformance.answers import MALFORMED, NOT_FOUND
from conformance.calls import (
    BY_EVENTS,
    BY_KBYTES,
    BY_SIZE,
    BY_TIME,
    FIXED,
    NO_RETENTION,
    UNBOUNDED,
    create_scope,
    create_stream,
    create_stream_without_policy,
    current_segments,
    epoch_segments,
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

case("fixed", create_scope(), create_stream(segments=3), current_segments().gives(equal_ranges(3)))
case("names_itself_in_segments", create_scope(), create_stream(), owners_of_segments().gives({"sc/st"}))
case("seven_segments", create_scope(), create_stream(segments=7), current_segments().gives(equal_ranges(7)))
for _count in (49, 98):
    case(
        f"{_count}_segments",
        create_scope(),
        create_stream(segments=_count),
        current_segments().differs(peer=equal_ranges(_count), sluice=_pinned(_count), why=_PINNED),
    )
case("twice", create_scope(), create_stream(), create_stream().gives("STREAM_EXISTS"))
case(
    "twice_keeps_the_first_configuration",
    create_scope(),
    create_stream(segments=2),
    create_stream(segments=5).gives("STREAM_EXISTS"),
    stream_configuration().gives(configuration(scaling=(0, 0, 0, 2))),
    current_segments().gives(equal_ranges(2)),
)
case("existing_and_sealed", create_scope(), create_stream(), seal(), create_stream().gives("STREAM_EXISTS"))
case("in_missing_scope", create_stream().gives("SCOPE_NOT_FOUND"), stream_exists().gives(False))
case("in_scope_without_name", create_stream("st", "").gives(MALFORMED))
case("of_250_characters", create_scope(), create_stream("x" * 250), stream_exists("x" * 250))
case("of_256_characters", create_scope(), create_stream("x" * 256).gives("INVALID_STREAM_NAME"))
case("with_dot_and_hyphen", create_scope(), create_stream("a.b-c"))
case("with_leading_underscore", create_scope(), create_stream("_st"), current_segments("_st").gives(equal_ranges(1)))
case("with_underscore_inside", create_scope(), create_stream("a_b").gives("INVALID_STREAM_NAME"))
case("with_underscore_alone", create_scope(), create_stream("_").gives("INVALID_STREAM_NAME"))
case("with_slash", create_scope(), create_stream("a/b").gives("INVALID_STREAM_NAME"))
case("with_letter_beyond_ascii", create_scope(), create_stream("ä").gives("INVALID_STREAM_NAME"))
case("without_name", create_scope(), create_stream("").gives("INVALID_STREAM_NAME"))
case("impossible_name_in_missing_scope", create_stream("a_b").gives("INVALID_STREAM_NAME"))
case("with_bad_tags_and_bad_name", create_scope(), create_stream("a_b", tags=["t" * 256]).gives(MALFORMED))
case(
    "named_like_a_segment", create_scope(), create_stream("0.epoch.0"), current_segments("0.epoch.0").gives([(0, 0, 1)])
)

case(
    "by_events",
    create_scope(),
    create_stream(scaling=(BY_EVENTS, 100, 2), segments=2),
    stream_configuration().gives(configuration(scaling=(2, 100, 2, 2))),
)
case(
    "by_kbytes",
    create_scope(),
    create_stream(scaling=(BY_KBYTES, 10, 3)),
    stream_configuration().gives(configuration(scaling=(1, 10, 3, 1))),
)
case("with_unknown_scaling", create_scope(), create_stream(scaling=(7, 0, 0)).gives(MALFORMED))
case("with_unknown_retention", create_scope(), create_stream(retention=(7, 0, 0)).gives(MALFORMED))
case(
    "kept_by_time",
    create_scope(),
    create_stream(retention=(BY_TIME, 60_000, UNBOUNDED)),
    stream_configuration().gives(configuration(retention=(1, 60_000, UNBOUNDED))),
)
case(
    "kept_by_size",
    create_scope(),
    create_stream(retention=(BY_SIZE, 1000, 2000)),
    stream_configuration().gives(configuration(retention=(2, 1000, 2000))),
)
case(
    "with_retention_of_no_type",
    create_scope(),
    create_stream(retention=(NO_RETENTION, 5, 6)),
    stream_configuration().gives(configuration(retention=None)),
)
case(
    "with_most_below_least",
    create_scope(),
    create_stream(retention=(BY_SIZE, 2000, 1000)),
    stream_configuration().gives(configuration(retention=(2, 2000, 1000))),
)
case(
    "with_timeout_and_rollover",
    create_scope(),
    create_stream(timeout=5000, rollover=1 << 20),
    stream_configuration().gives(configuration(timeout=5000, rollover=1 << 20)),
)
case("with_negative_rollover", create_scope(), create_stream(rollover=-1).gives(MALFORMED))
case(
    "with_rate_for_fixed_scaling",
    create_scope(),
    create_stream(scaling=(FIXED, 9, 9)),
    stream_configuration().gives(configuration(scaling=(0, 9, 9, 1))),
)
case("without_policy", create_scope(), create_stream_without_policy().gives("FAILURE"))
case("of_no_segments", create_scope(), create_stream(segments=0).gives("FAILURE"))
case(
    "of_no_segments_leaves_nothing",
    create_scope(),
    create_stream(segments=0).gives("FAILURE"),
    stream_exists().differs(peer=True, sluice=False, why=_HALF),
    create_stream().differs(peer="FAILURE", sluice="SUCCESS", why=_HALF),
)
case("of_negative_segments", create_scope(), create_stream(segments=-1).gives("FAILURE"))
case("many_segments_in_epoch_0", create_scope(), create_stream(segments=16), epoch_segments(0).gives(equal_ranges(16)))

case("exists", create_scope(), create_stream(), stream_exists())
case("exists_not", create_scope(), stream_exists().gives(False))
case("exists_in_missing_scope", stream_exists().gives(False))
case("exists_without_name", create_scope(), stream_exists("").gives(MALFORMED))
case("exists_without_scope", stream_exists("st", "").gives(MALFORMED))
case("exists_sealed", create_scope(), create_stream(), seal(), stream_exists())
case(
    "mark_stream",
    create_scope(),
    create_stream(segments=2),
    stream_exists("_MARKst"),
    stream_configuration("_MARKst").gives(configuration(stream="sc/_MARKst")),
    current_segments("_MARKst").gives(equal_ranges(1)),
)

case("configuration_of_missing_stream", create_scope(), stream_configuration().gives(NOT_FOUND))
case("configuration_in_missing_scope", stream_configuration().gives(NOT_FOUND))
case("configuration_without_name", create_scope(), stream_configuration("").gives(MALFORMED))
case("configuration_of_sealed", create_scope(), create_stream(), seal(), stream_configuration().gives(configuration()))
