"""One way of writing and reading `host:port`."""

import pytest

from sluice.addresses import address_of, host_and_port
from sluice.domain.host import Host


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "127.0.0.1:90"), ("store-1.example", "store-1.example:90"), ("::1", "[::1]:90"), ("", ":90")],
)
def test_an_address_is_read_as_it_is_written(host: str, address: str) -> None:
    assert address_of(host, 90) == str(Host(host, 90)) == address
    assert host_and_port(address) == (host, 90)


def test_a_host_that_has_its_brackets_gets_no_others() -> None:
    assert address_of("[fd00::5]", 90) == "[fd00::5]:90"


@pytest.mark.parametrize("text", ["host", "90", "::1:90", "[::1]", "host:", "host:x", "host:-", "host:1.5"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT, an IPv6 address in brackets"):
        host_and_port(text)
