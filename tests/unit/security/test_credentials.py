"""The credentials that the environment has for a client."""

from base64 import b64decode
from pathlib import Path

import pytest

from sluice.security.credentials import Credentials, basic, credentials_of
from sluice.security.watched import SecurityConfigError

PRAVEGA = {
    "pravega_client_auth_method": "Basic",
    "pravega_client_auth_username": "p",
    "pravega_client_auth_password": "q",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.write_text("se:cret \n", encoding="utf-8-sig")
    return file


def test_without_any_there_are_none() -> None:
    assert credentials_of({"SLUICE_USER": "", "pravega_client_auth_token": "x"}) is None


def test_a_user_has_a_password_or_a_file_with_one(file: Path) -> None:
    for given in ({"SLUICE_PASSWORD": "se:cret "}, {"SLUICE_PASSWORD_FILE": str(file)}):
        found = credentials_of({"SLUICE_USER": "mé", **given, **PRAVEGA})
        assert found is not None and found.method == "Basic"
        assert b64decode(found.token).decode() == "mé:se:cret "


def test_the_variables_of_pravegas_clients_count_without_ours() -> None:
    assert credentials_of(PRAVEGA) == basic("p", "q")
    assert credentials_of({**PRAVEGA, "pravega_client_auth_token": "abc"}) == Credentials("Basic", "abc")
    bearer = {"pravega_client_auth_method": "Bearer", "pravega_client_auth_token": "a.b.c"}
    found = credentials_of(bearer)
    assert found is not None and found.header == "Bearer a.b.c"


@pytest.mark.parametrize(
    "given",
    [
        {"SLUICE_USER": "me"},
        {"SLUICE_PASSWORD": "x"},
        {"SLUICE_PASSWORD_FILE": "/x"},
        {"SLUICE_USER": "me", "SLUICE_PASSWORD": "x", "SLUICE_PASSWORD_FILE": "/x"},
        {"SLUICE_USER": "me", "SLUICE_PASSWORD_FILE": "/none"},
        {"SLUICE_USER": "me:you", "SLUICE_PASSWORD": "x"},
        {"pravega_client_auth_method": "Bearer"},
        {"pravega_client_auth_method": "Basic", "pravega_client_auth_username": "p"},
    ],
)
def test_half_of_them_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(SecurityConfigError):
        credentials_of(given)


def test_credentials_are_not_shown() -> None:
    assert basic("me", "secret").token not in repr(basic("me", "secret"))
