"""What an unmodified Pravega client does, on the whole system: the package `pravega` from PyPI."""

from uuid import uuid4

import pravega_client
import pytest
from support.pravega import manager

from harness import System

pytestmark = pytest.mark.integration


def name(prefix: str) -> str:
    return f"{prefix}{uuid4().hex[:8]}"


def test_byte_stream_writes_seeks_and_truncates(system: System) -> None:
    scope, streams = name("sc"), manager(system.grpc_address)
    streams.create_scope(scope)
    streams.create_stream(scope, "bytes", 1)
    stream = streams.create_byte_stream(scope, "bytes")
    assert stream.write(b"0123456789") == 10
    stream.flush()
    assert stream.current_tail_offset() == 10
    stream.seek(4, 0)
    buffer = bytearray(6)
    assert stream.readinto(buffer) == 6 and bytes(buffer) == b"456789"
    stream.truncate(3)
    assert stream.current_head_offset() == 3


def test_tags_are_set_changed_and_dropped(system: System) -> None:
    scope, streams = name("sc"), manager(system.grpc_address)
    streams.create_scope(scope)
    scaling = pravega_client.StreamScalingPolicy.fixed_scaling_policy(2)
    retention = pravega_client.StreamRetentionPolicy.none()
    assert streams.create_stream_with_policy(scope, "st", scaling, retention, ["a", "b"])
    assert sorted(streams.get_stream_tags(scope, "st")) == ["a", "b"]
    assert streams.update_stream_with_policy(scope, "st", scaling, retention, ["c"])
    assert streams.get_stream_tags(scope, "st") == ["c"]
    assert streams.update_stream_with_policy(scope, "st", scaling, retention, None)
    assert streams.get_stream_tags(scope, "st") in (None, [])


def test_seal_and_delete_end_with_an_empty_scope(system: System) -> None:
    scope, streams = name("sc"), manager(system.grpc_address)
    assert streams.create_scope(scope) and not streams.create_scope(scope)
    assert streams.create_stream(scope, "st", 2) and not streams.create_stream(scope, "st", 2)
    assert scope in streams.list_scope() and "_system" in streams.list_scope()
    assert sorted(streams.list_stream(scope)) == ["_MARKst", "st"]
    with pytest.raises(ValueError, match=r"(?i)seal"):
        streams.delete_stream(scope, "st")
    with pytest.raises(ValueError, match=r"(?i)empty"):
        streams.delete_scope(scope)
    assert streams.seal_stream(scope, "st")
    assert streams.delete_stream(scope, "st") and not streams.delete_stream(scope, "st")
    assert streams.list_stream(scope) == []
    assert streams.delete_scope(scope) and not streams.delete_scope(scope)
    assert scope not in streams.list_scope()
