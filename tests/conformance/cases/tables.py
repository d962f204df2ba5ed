"""Key-value tables (controller-grpc-api 5.9, background-and-other-workflows 5)."""

from conformance.answers import MALFORMED, NOT_FOUND
from conformance.calls import create_scope, create_stream, uri
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

TABLES = Subject("table")
case = TABLES.case

case("create", create_scope(), create_table(partitions=3), table_segments().gives(equal_ranges(3)))
case(
    "names_itself_in_segments",
    create_scope(),
    create_table(),
    owners_of_table_segments().gives({"sc/kv"}),
    uri(0, "kv_kvtable"),
)
case(
    "configuration",
    create_scope(),
    create_table(partitions=2, primary=4, secondary=5),
    table_configuration().gives(("SUCCESS", ("sc/kv", 2, 4, 5))),
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
case("create_twice", create_scope(), create_table(), create_table().gives("TABLE_EXISTS"))
case(
    "create_twice_otherwise",
    create_scope(),
    create_table(),
    create_table(partitions=5, primary=1).gives("TABLE_EXISTS"),
    table_configuration().gives(("SUCCESS", ("sc/kv", 1, 8, 0))),
)
case("create_in_missing_scope", create_table().gives("SCOPE_NOT_FOUND"))
case("create_without_scope", create_table("kv", "").gives(MALFORMED))
case("create_without_name", create_scope(), create_table("").gives("INVALID_TABLE_NAME"))
case("create_with_underscore", create_scope(), create_table("k_v").gives("INVALID_TABLE_NAME"))
case("create_with_leading_underscore", create_scope(), create_table("_kv").gives("INVALID_TABLE_NAME"))
case("create_of_250_characters", create_scope(), create_table("x" * 250))
case("create_of_251_characters", create_scope(), create_table("x" * 251).gives("INVALID_TABLE_NAME"))
case("create_with_bad_name_in_missing_scope", create_table("k_v").gives("INVALID_TABLE_NAME"))
case("create_without_partitions", create_scope(), create_table(partitions=0).gives(MALFORMED))
case("create_with_negative_partitions", create_scope(), create_table(partitions=-1).gives(MALFORMED))
case("create_without_primary_key", create_scope(), create_table(primary=0).gives(MALFORMED))
case("create_with_negative_primary_key", create_scope(), create_table(primary=-1).gives(MALFORMED))
case("create_with_negative_secondary_key", create_scope(), create_table(secondary=-1).gives(MALFORMED))
case("create_with_negative_rollover", create_scope(), create_table(rollover=-1).gives(MALFORMED))
case("create_with_rollover", create_scope(), create_table(rollover=1 << 20))
case("create_with_bad_name_and_partitions", create_scope(), create_table("k_v", partitions=0).gives(MALFORMED))
case(
    "beside_a_stream_of_its_name",
    create_scope(),
    create_stream("x"),
    create_table("x"),
    streams().gives(["_MARKx", "x"]),
    tables().gives(["x"]),
)

case("configuration_of_missing", create_scope(), table_configuration().gives(("TABLE_NOT_FOUND", None)))
case("configuration_in_missing_scope", table_configuration().gives(("TABLE_NOT_FOUND", None)))
case("configuration_without_name", create_scope(), table_configuration("").gives(MALFORMED))
case("configuration_without_scope", table_configuration("kv", "").gives(MALFORMED))
case("segments_of_missing", create_scope(), table_segments().gives(NOT_FOUND))
case("segments_in_missing_scope", table_segments().gives(NOT_FOUND))
case("segments_without_name", create_scope(), table_segments("").gives(MALFORMED))

case("list", create_scope(), create_table("b"), create_table("a"), tables().gives(["a", "b"]))
case("list_none", create_scope(), create_stream(), tables().gives([]))
case("list_in_missing_scope", tables().gives("SCOPE_NOT_FOUND"))
case("list_without_scope", tables("").gives(MALFORMED))

case(
    "delete",
    create_scope(),
    create_table(),
    delete_table(),
    table_configuration().gives(("TABLE_NOT_FOUND", None)),
    table_segments().gives(NOT_FOUND),
    tables().gives([]),
)
case("delete_twice", create_scope(), create_table(), delete_table(), delete_table().gives("TABLE_NOT_FOUND"))
case("delete_missing", create_scope(), delete_table().gives("TABLE_NOT_FOUND"))
case("delete_in_missing_scope", delete_table().gives("TABLE_NOT_FOUND"))
case("delete_without_name", create_scope(), delete_table("").gives(MALFORMED))
case("delete_without_scope", delete_table("kv", "").gives(MALFORMED))
case(
    "again_counts_on",
    create_scope(),
    create_table(partitions=2),
    delete_table(),
    create_table(partitions=3, primary=1),
    table_segments().gives(equal_ranges(3, first=2)),
    table_configuration().gives(("SUCCESS", ("sc/kv", 3, 1, 0))),
)
