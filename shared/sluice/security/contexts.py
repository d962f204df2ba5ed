"""Contexts of TLS, made of what files hold now. What is half configured is refused by SecurityConfigError, so that no
connection is less safe than its settings say.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sluice.security.pem import NoCertificatesError, of_pem
from sluice.security.watched import SecurityConfigError

_ANOTHER_KEY = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")


@dataclass(frozen=True)
class ClientTls:
    """How the client of one connection is secured; paths of PEM files. A service's authorities may be in a store of
    Java's, too.

    `setting` is named in what is said to operators. Without `authorities` those of the machine count; the client shows
    a certificate if it has one. A store in PKCS#12 has its password in `authorities_password_file`.
    """

    setting: str
    authorities: str = ""
    check_host: bool = True
    certificate: str = ""
    key: str = ""
    authorities_password_file: str = ""

    def __post_init__(self) -> None:
        if bool(self.certificate) != bool(self.key):
            raise SecurityConfigError(half(self.setting, bool(self.certificate)))

    @property
    def files(self) -> tuple[str, ...]:
        """Those that are given."""
        paths = (self.authorities, self.certificate, self.key, self.authorities_password_file)
        return tuple(path for path in paths if path)


CertificatesIn = Callable[[bytes, str], list[bytes]]
"""The certificates of a file, in DER, by its content and its password. Raises NoCertificatesError."""


def _in_pem(content: bytes, _password: str) -> list[bytes]:
    if found := of_pem(content):
        return found
    raise NoCertificatesError("it holds no certificates in PEM")


def client_context(tls: ClientTls, certificates_in: CertificatesIn = _in_pem) -> ssl.SSLContext:
    """The context of what the files hold now. Raises SecurityConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.check_host
    if tls.authorities:
        try:
            context.load_verify_locations(cadata=b"".join(certificates_in(*_authorities(tls))))
        except (ssl.SSLError, OSError, NoCertificatesError) as error:
            raise SecurityConfigError(f"{tls.setting}: {tls.authorities}: {error}") from None
    else:
        context.load_default_certs()
    if tls.certificate:
        show(context, tls.certificate, tls.key, tls.setting)
    return context


def _authorities(tls: ClientTls) -> tuple[bytes, str]:
    """Their file's content and password. Raises OSError."""
    password = Path(tls.authorities_password_file).read_text() if tls.authorities_password_file else ""
    return Path(tls.authorities).read_bytes(), password.strip()


def half(setting: str, has_certificate: bool) -> str:
    """That a certificate is given without its key, or the other way round."""
    given, missing = ("certificate", "key") if has_certificate else ("key", "certificate")
    return f"{setting}: a {given} is given without its {missing}"


def show(context: ssl.SSLContext, certificate: str, key: str, setting: str) -> None:
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
