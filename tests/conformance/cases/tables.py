"""Key-value tables (controller-grpc-api 5.9, background-and-other-workflows 5)."""

from typing import Any

from conformance.answers import MALFORMED, NOT_FOUND
from conformance.calls import STREAM, create_scope, create_stream, missing, uri
from conformance.case import Subject
from conformance.cases.streams_created import equal_ranges
from conformance.listings import streams, tables
from conformance.table_calls import (
    create_table,
    delete_table,
    owners_of_table_segments,
    table_configuration,
    table_segments,
)
from conformance.txn_calls import twice_at_once

TABLES = Subject("table")
case = TABLES.case

case(
    "create",
    create_scope(),
    create_table(partitions=3, primary=4, secondary=5),
    table_segments().gives(equal_ranges(3)),
    owners_of_table_segments().gives({"sc/kv"}),
    uri(0, "kv_kvtable"),
    create_table(partitions=5, primary=1).gives("TABLE_EXISTS"),
    table_configuration().gives(("SUCCESS", ("sc/kv", 3, 4, 5))),
)
case(
    "create_49_partitions",
    create_scope(),
    create_table(partitions=49),
    table_segments().differs(
        peer=equal_ranges(49),
        sluice=[*equal_ranges(49)[:-1], (48, 48 * (1.0 / 49), 1.0)],
        why="n times 1/n is less than 1 for this n: the last bound is pinned, as for streams",
    ),
)
case(
    "create_in_missing_scope",
    create_table("kv", "").gives(MALFORMED),
    create_table().gives("SCOPE_NOT_FOUND"),
    create_table("k_v").gives("INVALID_TABLE_NAME"),
)
case(
    "create_with_impossible_name",
    create_scope(),
    *(create_table(name).gives("INVALID_TABLE_NAME") for name in ("", "k_v", "_kv", "x" * 251)),
    create_table("k_v", partitions=0).gives(MALFORMED),
)
case("create_of_250_characters", create_scope(), create_table("x" * 250))
_WRONG: tuple[dict[str, Any], ...] = (
    *({"partitions": number} for number in (0, -1)),
    *({"primary": length} for length in (0, -1)),
    {"secondary": -1},
    {"rollover": -1},
)
case("create_malformed", create_scope(), *(create_table(**wrong).gives(MALFORMED) for wrong in _WRONG))
case("create_with_the_longest_key", create_scope(), create_table(primary=200, secondary=56))
case(
    "create_with_too_long_a_key",
    create_scope(),
    *(
        create_table(primary=primary, secondary=secondary).gives("FAILURE")
        for primary, secondary in ((257, 0), (200, 57), (8193, 0), (2**31 - 1, 2**31 - 1))
    ),
    create_table(),
    peer_not_called="its segment store makes no segment for it, and the call hangs",
)
case("create_with_rollover", create_scope(), create_table(rollover=1 << 20))
case(
    "beside_a_stream_of_its_name",
    create_scope(),
    create_stream("x"),
    create_table("x"),
    streams().gives(["_MARKx", "x"]),
    tables().gives(["x"]),
)

case("configuration_missing", *missing(table_configuration, ("TABLE_NOT_FOUND", None)))
case("segments_missing", *missing(table_segments, NOT_FOUND))
case(
    "list",
    tables("").gives(MALFORMED),
    tables().gives("SCOPE_NOT_FOUND"),
    *STREAM,
    tables().gives([]),
    create_table("b"),
    create_table("a"),
    tables().gives(["a", "b"]),
)

case(
    "delete",
    create_scope(),
    create_table(),
    delete_table(),
    table_configuration().gives(("TABLE_NOT_FOUND", None)),
    table_segments().gives(NOT_FOUND),
    tables().gives([]),
    delete_table().gives("TABLE_NOT_FOUND"),
)
case("delete_twice_at_once", create_scope(), create_table(), twice_at_once(delete_table(), "TABLE_NOT_FOUND"))
case("delete_missing", *missing(delete_table, "TABLE_NOT_FOUND"))
case(
    "again_counts_on",
    create_scope(),
    create_table(partitions=2),
    delete_table(),
    create_table(partitions=3, primary=1),
    table_segments().gives(equal_ranges(3, first=2)),
    table_configuration().gives(("SUCCESS", ("sc/kv", 3, 1, 0))),
)
