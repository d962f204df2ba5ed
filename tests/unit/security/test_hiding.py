"""Addresses as people see them: nothing of a secret, and all of the rest."""

import pytest

from sluice.security.hiding import shown


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        ("http://me:secret@host:80/a?b=c", "http://***@host:80/a?b=c"),
        ("https://key@host/a", "https://***@host/a"),
        ("redis://:p@ss@[::1]:6379/0", "redis://***@[::1]:6379/0"),
        ("redis://me:pa/ss@host", "redis://***@host"),
        ("http://me:pa?s#s@host:80/a", "http://***@host:80/a"),
        ("me:secret@host:9090", "***@host:9090"),
        ("http://host/a?user=me&access_token=abc&X-Amz-Signature=def", "http://host/a?user=me&access_token=***&X-Amz-Signature=***"),
        ("http://host/?key=abc&sort_key=1&monkey=2#x", "http://host/?key=***&sort_key=***&monkey=2#x"),
    ],
)  # fmt: skip
def test_what_is_secret_in_an_address_is_hidden(address: str, seen: str) -> None:
    assert shown(address) == seen


@pytest.mark.parametrize(
    "address",
    [
        "http://host:80/@me/feed?to=a@b",
        "http://[::1]:80/@me",
        "http://host?to=a@b",
        "file:/data/a@b.json",
        "/data/a@b",
        "tcp://127.0.0.1:9090",
        "one:9092,two:9092",
        "memory:",
        "s3a://bucket/a@b",
    ],
)
def test_an_address_without_a_secret_is_shown_as_it_is(address: str) -> None:
    assert shown(address) == address
