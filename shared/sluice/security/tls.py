"""Contexts of TLS, made of watched files: new connections take the newest usable version, open ones go on.

What is half configured is refused by SecurityConfigError, so that no connection is less safe than its settings say.
Concurrency: contexts are made in the thread that looks at the files and used on event loops; none is changed later.
"""

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from sluice.security.watched import SecurityConfigError, Watched

SERVER_SETTING = "SLUICE_TLS"
PROTOCOLS = ("TLSv1.2,TLSv1.3", "TLSv1.3,TLSv1.2", "TLSv1.3")
"""What a server may be set to accept. Not TLSv1.2 alone: gRPC offers the newer one in any case."""

PLAIN = "plain"
"""What is said of a connection without TLS."""

_ANOTHER_KEY = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")


@dataclass(frozen=True)
class Identity:
    """What a server shows of itself: as PEM for gRPC, as a context for everything else."""

    chain: bytes
    key: bytes = field(repr=False)
    context: ssl.SSLContext = field(repr=False)


@dataclass(frozen=True)
class ClientTls:
    """How the client of one connection is secured; paths of PEM files.

    `setting` is named in what is said to operators. Without `authorities` those of the machine count; the client shows
    a certificate if it has one.
    """

    setting: str
    authorities: str = ""
    check_host: bool = True
    certificate: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        if bool(self.certificate) != bool(self.key):
            raise SecurityConfigError(_half(self.setting, bool(self.certificate)))

    @property
    def files(self) -> tuple[str, ...]:
        """Those that are given."""
        return tuple(path for path in (self.authorities, self.certificate, self.key) if path)


def tls_in_words(is_on: bool, checks_host: bool) -> str:
    """How a client's connection is secured, for operators."""
    if not is_on:
        return PLAIN
    return "TLS" if checks_host else "TLS, host names not verified"


def watched_identity(certificate: str, key: str, protocols: str) -> Watched[Identity] | None:
    """The identity of a server; None if neither file is given: it serves without TLS. Raises SecurityConfigError."""
    if protocols not in PROTOCOLS:
        raise SecurityConfigError(f"{SERVER_SETTING}_PROTOCOLS must be one of {' | '.join(PROTOCOLS)}")
    if not certificate and not key:
        return None
    if not certificate or not key:
        raise SecurityConfigError(_half(SERVER_SETTING, bool(certificate)))
    oldest = ssl.TLSVersion.TLSv1_2 if "TLSv1.2" in protocols else ssl.TLSVersion.TLSv1_3

    def make(chain: bytes, secret: bytes) -> Identity:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = oldest
        _show(context, certificate, key, SERVER_SETTING)
        return Identity(chain, secret, context)

    return Watched("certificate of this server", [Path(certificate), Path(key)], make)


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

    def make(*_contents: bytes) -> ssl.SSLContext:
        return client_context(tls)

    return Watched(f"TLS to {name}", [Path(path) for path in tls.files], make)


def client_context(tls: ClientTls) -> ssl.SSLContext:
    """The context of what the files hold now. Raises SecurityConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.check_host
    if tls.authorities:
        try:
            context.load_verify_locations(tls.authorities)
        except (ssl.SSLError, OSError):
            raise SecurityConfigError(f"{tls.setting}: {tls.authorities} holds no certificates in PEM") from None
    else:
        context.load_default_certs()
    if tls.certificate:
        _show(context, tls.certificate, tls.key, tls.setting)
    return context


def _half(setting: str, has_certificate: bool) -> str:
    given, missing = ("certificate", "key") if has_certificate else ("key", "certificate")
    return f"{setting}: a {given} is given without its {missing}"


def _show(context: ssl.SSLContext, certificate: str, key: str, setting: str) -> None:
    """Have the context show the certificate. Raises SecurityConfigError."""

    def no_password() -> str:
        raise SecurityConfigError(f"{setting}: the key in {key} must have no password")

    try:
        context.load_cert_chain(certificate, key, no_password)
    except ssl.SSLError as error:
        if error.reason in _ANOTHER_KEY:
            raise SecurityConfigError(f"{setting}: the key in {key} is not that of {certificate}") from None
        raise SecurityConfigError(
            f"{setting}: {certificate} and {key} must hold a certificate chain and a key in PEM"
        ) from None
    except OSError as error:
        raise SecurityConfigError(f"{setting}: {certificate} or {key} cannot be read: {error.strerror}") from None
