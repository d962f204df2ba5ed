"""createReaderGroup, getReaderGroupConfig, deleteReaderGroup (controller-grpc-api 5.8)."""

from conformance.answers import MALFORMED, NOT_FOUND, UNKNOWN, Such
from conformance.calls import (
    STREAM,
    create_scope,
    create_stream,
    current_segments,
    delete_stream,
    seal,
    stream_configuration,
    stream_exists,
)
from conformance.case import Subject
from conformance.cases.streams_created import configuration
from conformance.data import fate
from conformance.group_calls import (
    AUTOMATIC,
    ID,
    MANUAL,
    OTHER_ID,
    ZERO_ID,
    answered_id,
    configuration_of,
    create_group,
    created_group,
    delete_group,
    group_configuration,
    subscribers,
)
from conformance.listings import streams
from conformance.txn_calls import twice_at_once

GROUPS = Subject("group")
case = GROUPS.case

_ROLLOVER = 4 << 20

case("create", *STREAM, created_group().gives(("SUCCESS", configuration_of())))
case(
    "create_and_ask",
    *STREAM,
    create_group(refresh=7, checkpoint=-1, outstanding=2),
    group_configuration().gives(("SUCCESS", configuration_of(refresh=7, checkpoint=-1, outstanding=2))),
)
case(
    "create_with_cuts",
    *STREAM,
    created_group(start={"st": {0: 5}}, end={"st": {0: 9}}).gives(
        ("SUCCESS", configuration_of(start={"st": {0: 5}}, end={"st": {0: 9}}))
    ),
)
case(
    "create_on_two_streams",
    create_scope(),
    create_stream("a"),
    create_stream("b"),
    created_group(start={"a": {}, "b": {0: 1}}, end={"a": {}, "b": {}}).gives(
        ("SUCCESS", configuration_of(start={"a": {}, "b": {0: 1}}, end={"a": {}, "b": {}}))
    ),
)
case("create_without_ends", *STREAM, created_group(end={}).gives(("SUCCESS", configuration_of(end={}))))
case(
    "create_on_missing_stream",
    create_scope(),
    create_group(),
    group_configuration().gives(("SUCCESS", configuration_of())),
)
case("create_on_missing_segments", *STREAM, create_group(start={"st": {7: 0}}))
case(
    "create_makes_a_stream",
    *STREAM,
    create_group(),
    stream_exists("_RGrg"),
    stream_exists("_MARK_RGrg"),
    current_segments("_RGrg").gives([(0, 0.0, 1.0)]),
    fate(0, "_RGrg").gives("open"),
    stream_configuration("_RGrg").gives(configuration(stream="sc/_RGrg", rollover=_ROLLOVER)),
)
case(
    "create_twice",
    *STREAM,
    create_group(),
    created_group(refresh=1, id=OTHER_ID, retention=MANUAL).gives(("SUCCESS", configuration_of())),
    subscribers().gives(("SUCCESS", [])),
)
case(
    "create_without_id_of_its_own",
    *STREAM,
    created_group(id=ZERO_ID).gives(
        Such("has a new id", lambda answer: answer[0] == "SUCCESS" and answer[1]["id"] not in ("", ZERO_ID))
    ),
    delete_group().gives("RG_NOT_FOUND"),
    delete_group(id=answered_id),
)
case(
    "create_that_subscribes_to_missing_stream",
    *STREAM,
    create_group(start={"st": {}, "none": {}}, end={}, retention=MANUAL).gives("FAILURE"),
    group_configuration().until(("RG_NOT_FOUND", {})),
    subscribers().gives(("SUCCESS", [])),
    streams().gives(["_MARKst", "st"]),
    create_group(retention=MANUAL),
    peer_not_called="it answers nothing for two minutes, and then DEADLINE_EXCEEDED",
)
case(
    "delete_when_the_stream_is_gone",
    *STREAM,
    create_group(retention=MANUAL),
    seal(),
    delete_stream(),
    delete_group(),
    peer_not_called="it stumbles over the missing subscription and answers DEADLINE_EXCEEDED after two minutes",
)
case(
    "create_with_generation",
    *STREAM,
    created_group(generation=5).gives(("SUCCESS", configuration_of(generation=0))),
)
case("create_of_250_characters", *STREAM, create_group("x" * 250))
case(
    "create_that_subscribes_automatically",
    *STREAM,
    created_group(retention=AUTOMATIC).gives(("SUCCESS", configuration_of(retention=AUTOMATIC))),
    subscribers().gives(("SUCCESS", ["sc/rg"])),
)
case("id_in_capitals", *STREAM, created_group(id=ID.upper()).gives(("SUCCESS", configuration_of())))

case(
    "ask_for_missing",
    group_configuration("rg", "").gives(MALFORMED),
    group_configuration().gives(NOT_FOUND),
    create_scope(),
    group_configuration().gives(("RG_NOT_FOUND", {})),
)
case(
    "ask_without_name",
    create_scope(),
    group_configuration("").differs(
        peer=UNKNOWN,
        sluice=("RG_NOT_FOUND", {}),
        why="the original stumbles over the empty name; there is no such group",
    ),
)

case(
    "delete",
    *STREAM,
    create_group(retention=MANUAL),
    subscribers().gives(("SUCCESS", ["sc/rg"])),
    delete_group(),
    group_configuration().gives(("RG_NOT_FOUND", {})),
    stream_exists("_RGrg").gives(False),
    stream_exists("_MARK_RGrg").gives(False),
    fate(0, "_RGrg").gives("gone"),
    subscribers().gives(("SUCCESS", [])),
    delete_group().gives("RG_NOT_FOUND"),
)
case("delete_twice_at_once", *STREAM, create_group(), twice_at_once(delete_group(), "RG_NOT_FOUND"))
case(
    "delete_missing",
    delete_group("rg", "").gives(MALFORMED),
    delete_group().gives(NOT_FOUND),
    create_scope(),
    delete_group().gives("RG_NOT_FOUND"),
    delete_group(id="").gives("RG_NOT_FOUND"),
)
case(
    "delete_with_other_id",
    *STREAM,
    create_group(),
    delete_group(id=OTHER_ID).gives("RG_NOT_FOUND"),
    delete_group(id="").is_invalid(),
    delete_group(id="me").is_invalid(),
    group_configuration().gives(("SUCCESS", configuration_of())),
)
case("delete_with_other_generation", *STREAM, create_group(), delete_group(generation=9))
case(
    "delete_and_create_again",
    *STREAM,
    create_group(),
    delete_group(),
    created_group(id=OTHER_ID, refresh=1).gives(("SUCCESS", configuration_of(id=OTHER_ID, refresh=1))),
    current_segments("_RGrg").gives([(1, 0.0, 1.0)]),
)
