"""Recursive deletion of scopes (controller-grpc-api 5.1, background-and-other-workflows 7)."""

from conformance.answers import MALFORMED, NOT_FOUND
from conformance.calls import (
    STREAM,
    create_scope,
    create_stream,
    current_segments,
    delete_scope,
    delete_scope_recursive,
    scope_exists,
    seal,
    stream_exists,
)
from conformance.case import Subject
from conformance.data import fate
from conformance.group_calls import MANUAL, create_group, group_configuration, subscribers
from conformance.listings import streams, tables
from conformance.table_calls import create_table, table_segments

# The original waits for the parts of a deletion on the threads that are to do them: two at a time may stop it for good.
RECURSIVE = Subject("delete_scope_recursive", alone=True)
case = RECURSIVE.case

case(
    "missing",
    delete_scope_recursive("").gives(MALFORMED),
    delete_scope_recursive("a_b"),
    delete_scope_recursive(),
)
case(
    "empty",
    create_scope(),
    delete_scope_recursive(),
    scope_exists().gives(False),
    delete_scope_recursive(),
    delete_scope().gives("SCOPE_NOT_FOUND"),
)
case(
    "with_streams",
    *STREAM,
    create_stream("b", segments=2, tags=["red"]),
    create_stream("sealed"),
    seal("sealed"),
    delete_scope_recursive(),
    scope_exists().gives(False),
    stream_exists().gives(False),
    streams().gives("SCOPE_NOT_FOUND"),
    current_segments("b").gives(NOT_FOUND),
    fate(0).gives("gone"),
)
case(
    "with_table",
    create_scope(),
    create_table(partitions=2),
    delete_scope_recursive(),
    scope_exists().gives(False),
    tables().gives("SCOPE_NOT_FOUND"),
    table_segments().gives(NOT_FOUND),
)
case(
    "with_reader_group",
    *STREAM,
    create_group(),
    delete_scope_recursive(),
    scope_exists().gives(False),
    group_configuration().gives(NOT_FOUND),
)
case(
    "with_everything_and_again",
    *STREAM,
    create_stream("other"),
    create_table(),
    create_group(),
    delete_scope_recursive(),
    create_scope(),
    streams().gives([]),
    tables().gives([]),
    create_stream(),
    # Numbers go on in a scope that was deleted with everything in it.
    current_segments().gives([(1, 0.0, 1.0)]),
)
case(
    "with_subscribed_reader_group",
    *STREAM,
    create_group(retention=MANUAL),
    delete_scope_recursive(),
    scope_exists().gives(False),
    *STREAM,
    subscribers().gives(("SUCCESS", [])),
    peer_not_called="it deletes the stream before the subscription to it, fails half way, answers after two minutes",
)
