"""Contexts of TLS, made of watched files: new connections take the newest usable version, open ones go on.

What is half configured, has expired or is not valid yet is refused by SecurityConfigError.
Concurrency: contexts are made in the thread that looks at the files and used on event loops; none is changed later.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sluice.security.contexts import ClientTls, client_context, half, show
from sluice.security.stores import certificates_in
from sluice.security.validity import Validity
from sluice.security.watched import SecurityConfigError, ValidityOf, Watched

SERVER_SETTING = "SLUICE_TLS"
PROTOCOLS = ("TLSv1.2,TLSv1.3", "TLSv1.3,TLSv1.2", "TLSv1.3")
"""What a server may be set to accept. Not TLSv1.2 alone: gRPC offers the newer one in any case."""

PLAIN = "plain"
"""What is said of a connection without TLS."""


@dataclass(frozen=True)
class Identity:
    """What a server shows of itself: as PEM for gRPC, as a context for everything else."""

    chain: bytes
    key: bytes = field(repr=False)
    context: ssl.SSLContext = field(repr=False)


def tls_in_words(is_on: bool, checks_host: bool) -> str:
    """How a client's connection is secured, for operators."""
    if not is_on:
        return PLAIN
    return "TLS" if checks_host else "TLS, host names not verified"


def watched_identity(
    certificate: str, key: str, protocols: str, published: str = "", published_by: str = ""
) -> Watched[Identity] | None:
    """The identity of a server; None if neither file is given: it serves without TLS.

    The certificate has to be for the host that is `published`, if one is; the setting `published_by` says so. Raises
    SecurityConfigError.
    """
    if protocols not in PROTOCOLS:
        raise SecurityConfigError(f"{SERVER_SETTING}_PROTOCOLS must be one of {' | '.join(PROTOCOLS)}")
    if not certificate and not key:
        return None
    if not certificate or not key:
        raise SecurityConfigError(half(SERVER_SETTING, bool(certificate)))
    oldest = ssl.TLSVersion.TLSv1_2 if "TLSv1.2" in protocols else ssl.TLSVersion.TLSv1_3

    def make(chain: bytes, secret: bytes) -> Identity:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = oldest
        show(context, certificate, key, SERVER_SETTING)
        if published:
            from sluice.security.certificates import check_name

            check_name(SERVER_SETTING, certificate, chain, published, published_by)
        return Identity(chain, secret, context)

    files = [Path(certificate), Path(key)]
    return Watched("certificate of this server", files, make, counting(SERVER_SETTING))


def serving_context(identity: Watched[Identity]) -> ssl.SSLContext:
    """A context for a server that stays: each handshake takes the newest identity."""
    context = identity.current.context

    def take_newest(handshake: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        handshake.context = identity.current.context

    context.sni_callback = take_newest
    return context


def watched_client(name: str, is_on: bool, tls: ClientTls) -> Watched[ssl.SSLContext] | None:
    """The context of a client; `name` says to operators of which connection. None if TLS is off.

    Raises SecurityConfigError, also if TLS is off and there are files for it.
    """
    if not is_on:
        if tls.files:
            raise SecurityConfigError(f"{tls.setting}: TLS is off, but files for it are given: {', '.join(tls.files)}")
        return None
    return following_client(name, tls)


def following_client(name: str, tls: ClientTls) -> Watched[ssl.SSLContext]:
    """The context of a client whose TLS is on. Raises SecurityConfigError."""

    def make(*_contents: bytes) -> ssl.SSLContext:
        return client_context(tls, certificates_in)

    def validity_of(contents: Mapping[Path, bytes]) -> Validity | None:
        if tls.authorities_password_file:
            from sluice.security.certificates import pem_of_key_store

            store, password = Path(tls.authorities), contents[Path(tls.authorities_password_file)].decode().strip()
            contents = {**contents, store: pem_of_key_store(tls.setting, str(store), contents[store], password)}
        return counting(tls.setting)(contents)

    return Watched(f"TLS to {name}", [Path(path) for path in tls.files], make, validity_of)


def counting(setting: str) -> ValidityOf:
    """The check that the certificates of a setting count now; what does it is loaded where there are any."""
    from sluice.security.certificates import validity_of

    return partial(validity_of, setting)
