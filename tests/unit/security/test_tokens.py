"""Delegation tokens, by the vectors and the rules of security 4.1 and 4.6."""

import base64
from pathlib import Path

import pytest
from pydantic import ValidationError
from support.tokens import claims_in, is_permitted, resources_in

from sluice.domain.segment import segment_name
from sluice.security.resources import Permission, reader_group_resource, stream_resource
from sluice.security.tokens import NO_EXPIRY, NO_SIGNER, OWN_TTL_S, TokenSigner, signed, signer_of
from sluice.security.watched import SecurityConfigError
from sluice.settings import ServiceSettings

NOW_S = 1_700_000_000
STREAM = stream_resource("s", "a")
SEGMENT = segment_name("s", "a", 0)
PREFIX = (
    "eyJhbGciOiJIUzUxMiJ9.eyJzdWIiOiJzZWdtZW50c3RvcmVyZXNvdXJjZSIsImF1ZCI6InNlZ21lbnRzdG9yZSIsImlhdCI6MTcwMDAwMDAwMCwi"
)
"""What the tokens of that moment begin with."""


def now_ms() -> int:
    return NOW_S * 1000 + 999


def signer(key: bytes = b"secret", ttl_s: int = 600) -> TokenSigner:
    return TokenSigner(key, ttl_s, now_ms)


def test_a_clients_token_is_the_originals_to_the_byte() -> None:
    assert signer().of(Permission.READ_UPDATE, STREAM) == (
        f"{PREFIX}cHJuOjovc2NvcGU6cy9zdHJlYW06YSI6IlJFQURfVVBEQVRFIiwiZXhwIjoxNzAwMDAwNjAwfQ"
        ".mOENl-eIOzsN_kNcokc4C9YiNMkIvmU1IhwgTYuqvr9oFu8bxUl9SfQQrk8ekimyTq-yc5ajWfywgJ1BsaXCeQ"
    )


def test_a_token_for_everything_without_end_is_the_originals_to_the_byte() -> None:
    claims: dict[str, str | int] = {
        "sub": "segmentstoreresource",
        "aud": "segmentstore",
        "iat": NOW_S,
        "*": "READ_UPDATE",
    }
    assert signed(b"secret", claims) == (
        f"{PREFIX}KiI6IlJFQURfVVBEQVRFIn0"
        ".ws91yJVQwX9uWJR2eH9KRliRs6Cap3bQK40QizGdGnxYI6-DqPzXw4cW4fz7Ya-e6mZ2wJIqBqyGEYNkmeqi5w"
    )


@pytest.mark.parametrize(("ttl_s", "expires"), [(NO_EXPIRY, None), (0, NOW_S), (5, NOW_S + 5)])
def test_a_clients_token_ends_when_its_time_is_over(ttl_s: int, expires: int | None) -> None:
    assert claims_in(signer(ttl_s=ttl_s).of(Permission.READ, STREAM), "secret").get("exp") == expires


@pytest.mark.parametrize("odd", [">", "?", "~", "\x7f", "é", "\U0001f600", '"exp":1', "\\"])
def test_clients_can_decode_the_body_whatever_the_names_are(odd: str) -> None:
    for shift in range(3):
        resource = stream_resource("s" * shift, odd * 3)
        token = signer().of(Permission.READ, resource)
        body = token.split(".")[1]
        text = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
        assert text.isascii() and text.count(b'"exp":') == 1
        assert resources_in(token, "secret") == {resource: "READ"}


def test_a_token_may_name_several_resources() -> None:
    token = signer().of(Permission.READ_UPDATE, STREAM, stream_resource("s", "b"))
    assert is_permitted(token, "secret", SEGMENT, Permission.READ_UPDATE)
    assert is_permitted(token, "secret", segment_name("s", "b", 7), Permission.READ_UPDATE)
    assert not is_permitted(token, "secret", segment_name("s", "ab", 0), Permission.READ)


def test_no_segment_is_a_reader_groups() -> None:
    token = signer().of(Permission.READ_UPDATE, reader_group_resource("s", "a"))
    assert not is_permitted(token, "secret", SEGMENT, Permission.READ)


def test_a_services_own_token_opens_everything_and_counts_for_minutes() -> None:
    token = signer(ttl_s=0).master()
    assert is_permitted(token, "secret", SEGMENT, Permission.READ_UPDATE)
    assert claims_in(token, "secret")["exp"] == NOW_S + OWN_TTL_S


def test_a_services_own_token_for_appends_has_no_end_and_opens_one_segment() -> None:
    token = signer().appending_to(SEGMENT)
    assert "exp" not in claims_in(token, "secret")
    assert is_permitted(token, "secret", SEGMENT, Permission.READ_UPDATE)
    assert not is_permitted(token, "secret", segment_name("s", "a", 1), Permission.READ)


def test_without_a_key_every_token_is_empty() -> None:
    assert not NO_SIGNER.is_on
    assert {NO_SIGNER.of(Permission.READ, STREAM), NO_SIGNER.master(), NO_SIGNER.appending_to(SEGMENT)} == {""}


def test_a_key_in_a_file_is_its_line_and_a_new_one_counts_for_new_tokens(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("schlüssel\n")
    found = signer_of("", str(file), 600, now_ms)
    assert found.is_on and found.watched is not None
    assert resources_in(found.master(), "schlüssel") == {"*": "READ_UPDATE"}
    file.write_text("other")
    found.watched.look()
    assert resources_in(found.master(), "other") == {"*": "READ_UPDATE"}


@pytest.mark.parametrize(
    ("content", "why"), [(b"\n", "the file of the signing key of tokens is empty"), (b"\xff", "is not UTF-8")]
)
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(SecurityConfigError, match=why):
        signer_of("", str(file), 600, now_ms)


def test_a_key_and_a_file_with_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SecurityConfigError, match="set one of them"):
        signer_of("k", str(tmp_path / "key"), 600, now_ms)


def test_the_key_that_every_store_has_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    signer_of("own", "", 600, now_ms)
    assert not caplog.records
    signer_of("secret", "", 600, now_ms)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_the_settings_give_the_signer_and_do_not_show_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_TOKEN_KEY", "k-e-y")
    monkeypatch.setenv("SLUICE_TOKEN_TTL_S", "7")
    settings = ServiceSettings()
    token = settings.token_signer(now_ms).of(Permission.READ, STREAM)
    assert claims_in(token, "k-e-y")["exp"] == NOW_S + 7
    assert "k-e-y" not in repr(settings)
    monkeypatch.setenv("SLUICE_TOKEN_TTL_S", "-2")
    with pytest.raises(ValidationError):
        ServiceSettings()
