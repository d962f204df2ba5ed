"""createReaderGroup, refused (controller-grpc-api 5.8)."""

from typing import Any

from conformance.answers import MALFORMED
from conformance.calls import Cut, at, create_scope, create_stream
from conformance.case import Subject
from conformance.group_calls import create_group, group_configuration

REFUSED = Subject("group_refused")
case = REFUSED.case


def refuse(name: str, **options: Any) -> None:
    """A group that can not be made, and is not."""
    case(
        name,
        create_scope(),
        create_stream(segments=2),
        create_group(**options).gives(MALFORMED),
        group_configuration().gives(("RG_NOT_FOUND", {})),
    )


def refuse_cuts(name: str, start: Cut, end: Cut) -> None:
    refuse(name, start={"st": start}, end={"st": end})


case("name_with_underscore", create_scope(), create_stream(), create_group("r_g").gives("INVALID_RG_NAME"))
case("name_with_leading_underscore", create_scope(), create_stream(), create_group("_rg").gives("INVALID_RG_NAME"))
case("name_of_251_characters", create_scope(), create_stream(), create_group("x" * 251).gives("INVALID_RG_NAME"))
case("without_name", create_scope(), create_stream(), create_group("").gives("INVALID_RG_NAME"))
case("missing_scope", create_group().gives("SCOPE_NOT_FOUND"))
case("bad_name_in_missing_scope", create_group("r_g").gives("INVALID_RG_NAME"))
case("without_scope", create_group("rg", "").gives(MALFORMED))
case("bad_name_and_bad_configuration", create_scope(), create_group("r_g", outstanding=0).gives(MALFORMED))

refuse("without_id", id="")
refuse("text_for_id", id="me")
refuse("without_streams", start={}, end={})
refuse("stream_twice", start=["st", "st"])
refuse("stream_of_impossible_name", start={"a_b": {}})
refuse("stream_without_name", start={"": {}})
refuse("unknown_retention", retention=3)
refuse("negative_retention", retention=-1)
refuse("no_outstanding_checkpoint", outstanding=0)
refuse("negative_outstanding_checkpoints", outstanding=-1)
refuse("end_of_other_stream", start={"st": {}}, end={"other": {0: 1}})
refuse_cuts("end_before_start", {0: 9, 1: 0}, {0: 5, 1: 0})
refuse_cuts("end_in_earlier_segments", {at(2, 1): 0}, {0: 0, 1: 0})
refuse_cuts("start_not_begun_but_ended", {0: -1, 1: 0}, {0: 5, 1: 0})
refuse_cuts("end_with_earlier_segment", {1: 0}, {0: 0, 1: 0})
case(
    "start_not_begun_nor_ended",
    create_scope(),
    create_stream(),
    create_group(start={"st": {0: -1}}, end={"st": {0: -1}}),
)
case(
    "start_begun_end_of_segment",
    create_scope(),
    create_stream(),
    create_group(start={"st": {0: 3}}, end={"st": {0: -1}}),
)
