"""The client against a store of a few lines that wants TLS."""

import ssl
from pathlib import Path

import pytest
from support.certificates import Authority
from unit.pravega.fake_store import created, fake_store
from unit.pravega.test_client import client_of

from sluice.pravega.connection import ConnectionLimits
from sluice.pravega.errors import SegmentStoreError
from sluice.security.contexts import ClientTls
from sluice.security.tls import PROTOCOLS, serving_context, watched_client, watched_identity
from sluice.security.watched import Watched

NAME = "s/t/0.#epoch.0"
QUICK = ConnectionLimits(connect_timeout_s=5.0)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def serving(authority: Authority, names: str = "IP:127.0.0.1") -> ssl.SSLContext:
    pair = authority.issue("store", names)
    identity = watched_identity(str(pair.certificate), str(pair.key), PROTOCOLS[0])
    assert identity is not None
    return serving_context(identity)


def trusting(authority: Authority, check_host: bool = True) -> Watched[ssl.SSLContext]:
    watched = watched_client("stores", True, ClientTls("SLUICE_STORE_TLS", str(authority.file), check_host))
    assert watched is not None
    return watched


async def test_a_store_is_commanded_with_tls(authority: Authority) -> None:
    async with (
        fake_store(created, tls=serving(authority)) as store,
        client_of(store, tls=trusting(authority)) as client,
    ):
        await client.create_segment(NAME, 0, 0)
        assert store.connections == 1


async def test_a_store_with_the_certificate_of_another_host_is_refused(authority: Authority) -> None:
    async with fake_store(created, tls=serving(authority, "DNS:elsewhere")) as store:
        async with client_of(store, tls=trusting(authority), limits=QUICK) as client:
            with pytest.raises(SegmentStoreError, match="IP address mismatch"):
                await client.create_segment(NAME, 0, 0)
        async with client_of(store, tls=trusting(authority, check_host=False)) as unchecked:
            await unchecked.create_segment(NAME, 0, 0)


async def test_new_connections_take_new_authorities_and_open_ones_go_on(authority: Authority, tmp_path: Path) -> None:
    replacement = Authority(tmp_path, "replacement")
    async with (
        fake_store(created, tls=serving(authority)) as old,
        fake_store(created, tls=serving(replacement)) as new,
    ):
        tls = trusting(authority)
        async with client_of(old, tls=tls) as client:
            await client.create_segment(NAME, 0, 0)
            authority.file.write_bytes(replacement.file.read_bytes())
            tls.look()
            await client.create_segment(NAME, 0, 0)
            assert old.connections == 1
        async with client_of(new, tls=tls) as client:
            await client.create_segment(NAME, 0, 0)
        async with client_of(old, tls=tls, limits=QUICK) as client:
            with pytest.raises(SegmentStoreError, match="certificate verify failed"):
                await client.create_segment(NAME, 0, 0)
