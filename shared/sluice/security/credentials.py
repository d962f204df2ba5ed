"""How a client says who it is: from Sluice's own variables, else from those that Pravega's clients read (security 1.5).

Pure, but for the file of a password.
"""

import os
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import msgspec

from sluice.security.watched import SecurityConfigError

CA_VARIABLE = "SLUICE_CA"
"""The file of the authorities that certificates of servers may be of, in PEM."""

_METHOD, _TOKEN = "pravega_client_auth_method", "pravega_client_auth_token"
_USERNAME, _PASSWORD = "pravega_client_auth_username", "pravega_client_auth_password"


class Credentials(msgspec.Struct, frozen=True):
    """The two words of the header `authorization`."""

    method: str
    token: str

    def __repr__(self) -> str:
        return f"Credentials({self.method})"

    @property
    def header(self) -> str:
        """The value of the header `authorization`."""
        return f"{self.method} {self.token}"


def basic(user: str, password: str) -> Credentials:
    """Those of a user with a password. Raises SecurityConfigError for a name with a colon."""
    if ":" in user:
        raise SecurityConfigError(f"the user {user!r} has a colon, which ends the name where it is read")
    return Credentials("Basic", b64encode(f"{user}:{password}".encode(errors="surrogateescape")).decode())


def credentials_of(environment: Mapping[str, str] = os.environ) -> Credentials | None:
    """The credentials in the environment, None if there are none. Raises SecurityConfigError for half of them."""
    given = {name: value for name, value in environment.items() if value}
    user, password, file = (given.get(f"SLUICE_{name}") for name in ("USER", "PASSWORD", "PASSWORD_FILE"))
    if user or password or file:
        return _of_sluice(user, password, file)
    method, token = given.get(_METHOD), given.get(_TOKEN)
    if method is None:
        return None
    if token is None and method == "Basic" and _USERNAME in given and _PASSWORD in given:
        return basic(given[_USERNAME], given[_PASSWORD])
    if token is None:
        raise SecurityConfigError(f"{_METHOD} is given without {_TOKEN}")
    return Credentials(method, token)


def _of_sluice(user: str | None, password: str | None, file: str | None) -> Credentials:
    if user is None:
        raise SecurityConfigError("a password is given without SLUICE_USER")
    if (password is None) == (file is None):
        raise SecurityConfigError("SLUICE_USER needs one of SLUICE_PASSWORD and SLUICE_PASSWORD_FILE")
    if file is None:
        return basic(user, password or "")
    try:
        return basic(user, Path(file).read_text(encoding="utf-8-sig").rstrip("\r\n"))
    except (OSError, UnicodeDecodeError) as error:
        raise SecurityConfigError(f"SLUICE_PASSWORD_FILE: {file} cannot be read: {error}") from None
