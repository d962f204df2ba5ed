"""Contexts of TLS, made of what files hold now. What is half configured is refused by SecurityConfigError, so that no
connection is less safe than its settings say.
"""

import ssl
from dataclasses import dataclass

from sluice.security.watched import SecurityConfigError

_ANOTHER_KEY = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")


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
            raise SecurityConfigError(half(self.setting, bool(self.certificate)))

    @property
    def files(self) -> tuple[str, ...]:
        """Those that are given."""
        return tuple(path for path in (self.authorities, self.certificate, self.key) if path)


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
        show(context, tls.certificate, tls.key, tls.setting)
    return context


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
