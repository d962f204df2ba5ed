"""Tags and the listing by tag (controller-grpc-api 4, 5.2; background-and-other-workflows 4)."""

from conformance.answers import MALFORMED
from conformance.calls import create_scope, create_stream, delete_stream, seal, stream_configuration, update_stream
from conformance.case import Subject
from conformance.listings import streams_with

TAGS = Subject("tags")
case = TAGS.case

_MOST, _LONGEST = [f"t{number}" for number in range(127)], "t" * 255


def _configuration(tags: list[str]) -> dict[str, object]:
    return {
        "stream": "sc/st",
        "scaling": (0, 0, 0, 1),
        "retention": None,
        "tags": sorted(tags),
        "timeout": 0,
        "rollover": 0,
    }


case("most", create_scope(), create_stream(tags=_MOST), stream_configuration().gives(_configuration(_MOST)))
case("one_too_many", create_scope(), create_stream(tags=[*_MOST, "u"]).gives(MALFORMED))
case("one_too_many_by_a_duplicate", create_scope(), create_stream(tags=[*_MOST, "t1"]).gives(MALFORMED))
case(
    "duplicates_collapse",
    create_scope(),
    create_stream(tags=["a", "b", "a"]),
    stream_configuration().gives(_configuration(["a", "b"])),
)
case("longest", create_scope(), create_stream(tags=[_LONGEST]), streams_with(_LONGEST).gives(["st"]))
case("too_long", create_scope(), create_stream(tags=[f"{_LONGEST}t"]).gives(MALFORMED))
case(
    "empty",
    create_scope(),
    create_stream(tags=[""]),
    stream_configuration().gives(_configuration([""])),
    peer_not_asked="the original keeps tags in a table; the entry with an empty key stops the container of its segment",
)
case("of_any_characters", create_scope(), create_stream(tags=["ä b/_✓"]), streams_with("ä b/_✓").gives(["st"]))
case("too_many_in_an_update", create_scope(), create_stream(), update_stream(tags=[*_MOST, "u"]).gives(MALFORMED))

case(
    "found",
    create_scope(),
    create_stream("a", tags=["red", "blue"]),
    create_stream("b", tags=["red"]),
    create_stream("c"),
    streams_with("red").gives(["a", "b"]),
    streams_with("blue").gives(["a"]),
)
case("found_by_nobody", create_scope(), create_stream(tags=["red"]), streams_with("green").gives([]))
case("found_in_other_case_not", create_scope(), create_stream(tags=["red"]), streams_with("Red").gives([]))
case("listing_of_missing_scope", streams_with("red").gives("SCOPE_NOT_FOUND"))
case("listing_without_scope", streams_with("red", "").gives(MALFORMED))
case("listing_without_tag", create_scope(), streams_with("").gives(MALFORMED))
case("of_internal_stream_not_found", create_scope(), create_stream("_st", tags=["red"]), streams_with("red").gives([]))
case(
    "many_streams",
    create_scope(),
    *(create_stream(f"st{number}", tags=["red"]) for number in range(12)),
    streams_with("red").gives(sorted(f"st{number}" for number in range(12))),
)
case(
    "replaced",
    create_scope(),
    create_stream(tags=["red", "blue"]),
    update_stream(tags=["blue", "green"]),
    streams_with("red").gives([]),
    streams_with("blue").gives(["st"]),
    streams_with("green").gives(["st"]),
    stream_configuration().gives(_configuration(["blue", "green"])),
)
case(
    "omitted_are_removed",
    create_scope(),
    create_stream(tags=["red"]),
    update_stream(),
    streams_with("red").gives([]),
    stream_configuration().gives(_configuration([])),
)
case(
    "of_deleted_stream",
    create_scope(),
    create_stream(tags=["red"]),
    seal(),
    streams_with("red").gives(["st"]),
    delete_stream(),
    streams_with("red").gives([]),
)
