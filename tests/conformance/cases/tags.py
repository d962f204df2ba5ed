"""Tags and the listing by tag (controller-grpc-api 4, 5.2; background-and-other-workflows 4)."""

from conformance.answers import MALFORMED
from conformance.calls import create_scope, create_stream, delete_stream, seal, stream_configuration, update_stream
from conformance.case import Subject
from conformance.cases.streams_created import configuration
from conformance.listings import streams_with

TAGS = Subject("tags")
case = TAGS.case

_MOST, _LONGEST = [f"t{number}" for number in range(127)], "t" * 255
_REFUSED = ([*_MOST, "u"], [*_MOST, "t1"], [f"{_LONGEST}t"])


case("most", create_scope(), create_stream(tags=_MOST), stream_configuration().gives(configuration(tags=sorted(_MOST))))
case(
    "too_many_or_too_long",
    create_scope(),
    *(create_stream(tags=tags).gives(MALFORMED) for tags in _REFUSED),
    create_stream(),
    *(update_stream(tags=tags).gives(MALFORMED) for tags in _REFUSED),
)
case(
    "duplicates_collapse",
    create_scope(),
    create_stream(tags=["a", "b", "a"]),
    stream_configuration().gives(configuration(tags=["a", "b"])),
)
case("longest", create_scope(), create_stream(tags=[_LONGEST]), streams_with(_LONGEST).gives(["st"]))
case(
    "empty",
    create_scope(),
    create_stream(tags=[""]),
    stream_configuration().gives(configuration(tags=[""])),
    peer_not_called="its tags are in a table; the entry with an empty key stops the container of its segment",
)
case("of_any_characters", create_scope(), create_stream(tags=["ä b/_✓"]), streams_with("ä b/_✓").gives(["st"]))

case(
    "found",
    create_scope(),
    create_stream("a", tags=["red", "blue"]),
    create_stream("b", tags=["red"]),
    create_stream("c"),
    streams_with("red").gives(["a", "b"]),
    streams_with("blue").gives(["a"]),
    streams_with("green").gives([]),
    streams_with("Red").gives([]),
)
case(
    "listing_missing",
    streams_with("red", "").gives(MALFORMED),
    streams_with("red").gives("SCOPE_NOT_FOUND"),
    create_scope(),
    streams_with("").gives(MALFORMED),
)
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
    stream_configuration().gives(configuration(tags=["blue", "green"])),
    update_stream(),
    streams_with("blue").gives([]),
    stream_configuration().gives(configuration()),
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
