"""Hashes of passwords that Pravega's controller and Sluice read alike."""

import pytest

from sluice.security.passwords import MalformedHashError, derive, hash_password, parse_hash, verify

SALT = bytes(range(32))
KEY = (
    "713a31920a8227c6012ebcd4ba4cc35329ba01ca71f6d78dd0d30db6105cdee9"
    "3f730b51dcb93f70e95165edc282183d83c195c57af517e9affcdc26ee4d17f9"
)


def test_a_password_leads_to_the_key_that_pravega_derives() -> None:
    assert derive("1111_aaaa", 5000, SALT).hex() == KEY


def test_the_stored_form_is_pravegas() -> None:
    stored = hash_password("1111_aaaa", SALT)
    assert len(stored) == 396 and stored.startswith("353030303a3030303130323033")
    assert bytes.fromhex(stored).decode() == f"5000:{SALT.hex()}:{KEY}"


def test_only_the_password_verifies_in_either_case_of_hex() -> None:
    stored = hash_password("pä:ß")
    assert verify("pä:ß", stored) and verify("pä:ß", stored.upper()) and verify("pä:ß", stored + " ")
    assert not verify("pa:ß", stored) and not verify("", stored)


def test_two_hashes_of_a_password_differ() -> None:
    assert hash_password("x") != hash_password("x")


def test_the_stored_number_of_iterations_counts() -> None:
    stored = f"7:00ff:{derive('x', 7, bytes.fromhex('00ff')).hex()}".encode().hex()
    assert verify("x", stored) and parse_hash(stored).iterations == 7


@pytest.mark.parametrize(
    "inner",
    [
        "",
        "5000",
        f"5000:{SALT.hex()}",
        f"0:{SALT.hex()}:{KEY}",
        f"-1:{SALT.hex()}:{KEY}",
        f"1000001:{SALT.hex()}:{KEY}",
        f"5000::{KEY}",
        f"5000:{SALT.hex()}:{KEY[:-2]}",
        f"5000:{SALT.hex()}:{KEY}:",
        f"5000:{SALT.hex()}:{KEY[:-1]}",
        f"5000:{SALT.hex()}:{KEY}\n",
    ],
)
def test_another_text_is_no_hash(inner: str) -> None:
    with pytest.raises(MalformedHashError):
        verify("1111_aaaa", inner.encode().hex())


@pytest.mark.parametrize("stored", ["", "zz", "123", "35 3", "35\U0001d7d8", "ff"])
def test_what_is_not_hex_is_no_hash(stored: str) -> None:
    with pytest.raises(MalformedHashError):
        verify("x", stored)
