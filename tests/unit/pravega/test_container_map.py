"""The bytes in ZooKeeper: segment-store-cluster A3 to A5."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.domain.host import Host
from sluice.pravega.container_map import decode_container_map, decode_host, encode_container_map, encode_host
from sluice.pravega.envelope import MalformedPayload

HOST = Host("127.0.0.1", 12345)
HOST_BYTES = bytes.fromhex("00000100 00000011 0009 3132372e302e302e31 00003039 0000")
SET_BYTES = bytes.fromhex("00000100 00000011 04 00000000 00000001 00000002 00000003")
MAP_BYTES = bytes.fromhex("00000100 00000033 01") + HOST_BYTES + SET_BYTES

hosts = st.builds(Host, st.text(max_size=20), st.integers(0, 65535))
maps = st.dictionaries(hosts, st.frozensets(st.integers(0, 2**31 - 1), max_size=200), max_size=4)


def test_examples_of_the_reference() -> None:
    assert encode_host(HOST) == HOST_BYTES
    assert decode_host(HOST_BYTES) == HOST
    assert encode_container_map({}) == bytes.fromhex("00000100 00000001 00")
    assert decode_container_map(bytes.fromhex("00000100 00000001 00")) == {}
    assert encode_container_map({HOST: [3, 1, 0, 2]}) == MAP_BYTES
    assert len(MAP_BYTES) == 59
    assert decode_container_map(MAP_BYTES) == {HOST: {0, 1, 2, 3}}


@given(maps)
def test_a_map_reads_back(containers: dict[Host, frozenset[int]]) -> None:
    assert decode_container_map(encode_container_map(containers)) == containers


def test_newer_revisions_and_longer_ones_are_skipped() -> None:
    newer = bytes.fromhex("00000200 00000013 0009 3132372e302e302e31 00003039 0000 ffff 01 00000002 abcd")
    assert decode_host(newer) == HOST


@pytest.mark.parametrize("cut", range(len(MAP_BYTES)))
def test_a_map_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(MalformedPayload):
        decode_container_map(MAP_BYTES[:cut])


@pytest.mark.parametrize("head", ["01000100", "00010100", "00000101", "000000"])
def test_another_envelope_is_refused(head: str) -> None:
    with pytest.raises(MalformedPayload):
        decode_host(bytes.fromhex(head) + HOST_BYTES[4:])


@given(st.binary(max_size=80))
def test_any_bytes_are_a_map_or_refused(data: bytes) -> None:
    try:
        decode_container_map(data)
    except MalformedPayload:
        return
