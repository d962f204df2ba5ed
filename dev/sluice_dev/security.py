"""What `--secure` adds: TLS, users with passwords, and tokens for the segment store.

All of it is made anew in a folder, as `sluice security init` makes it, which lives as long as the system does. Each
function gives empty values for a system that is not secured: the environment may have what the user of a secured one
exported for something else.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sluice.pravega.memory_tokens import TokenVerifier
from sluice.security.accounts import with_account
from sluice.security.folder import USERS, File, init, password_of
from sluice.security.passwords import hash_password
from sluice.security.resources import Permission, scope_resource
from sluice.security.tls import PROTOCOLS, watched_identity

ALL_SCOPES = "*"
READER = "reader"


def make(folder: Path, published: str) -> None:
    """Clients come to the `published` host; writer and reader may use all scopes. Raises SecurityConfigError."""
    init(folder, (published,), ALL_SCOPES)
    accounts, password = folder / File.ACCOUNTS, hash_password(password_of(folder, READER))
    # In every scope one entry says it all; three, of which the first decides, would be warned of.
    may_read = f"{scope_resource(ALL_SCOPES)},{Permission.READ.name}"
    accounts.write_bytes(with_account(accounts.read_bytes(), READER, password, may_read))


def authority(folder: Path | None) -> str:
    """The file with the authority that all certificates are of, in PEM."""
    return _file(folder, File.AUTHORITY)


def passwords(folder: Path | None) -> Mapping[str, str]:
    """The file with the password of each user."""
    return {} if folder is None else {user: str(folder / f"{user}.password") for user in USERS}


def store_verifier(folder: Path | None) -> TokenVerifier | None:
    """Which tokens the segment store takes; None: it asks for none."""
    return None if folder is None else TokenVerifier((folder / File.TOKEN_KEY).read_bytes())


def store_tls(folder: Path | None) -> ssl.SSLContext | None:
    """What the segment store shows to clients."""
    shown = watched_identity(_file(folder, File.CERTIFICATE), _file(folder, File.KEY), PROTOCOLS[0])
    return None if shown is None else shown.current.context


def service_settings(folder: Path | None) -> Mapping[str, Any]:
    """For every service: how it gets to the segment store."""
    return {
        "store_tls": folder is not None,
        "store_tls_authorities": authority(folder),
        "token_key": "",
        "token_key_file": _file(folder, File.TOKEN_KEY),
        "tls_certificate": "",
        "tls_key": "",
    }


def gateway_settings(folder: Path | None) -> Mapping[str, Any]:
    """For the gateway, beside those: what it shows to clients, and who may call."""
    return {
        "tls_certificate": _file(folder, File.CERTIFICATE),
        "tls_key": _file(folder, File.KEY),
        "auth_enabled": folder is not None,
        "auth_accounts": _file(folder, File.ACCOUNTS),
    }


def _file(folder: Path | None, name: File) -> str:
    return "" if folder is None else str(folder / name)
