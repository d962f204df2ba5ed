"""What the operator gives, for Kafka clients written in Python. Faust's driver, aiokafka, is one."""

import ssl
import tempfile

from sluice.kafka_config.conf import Conf, KafkaConfError
from sluice.kafka_config.security import Login, Tls, TokenLogin, is_of_security, security_of

DRIVER = "Faust, which keeps the statistics,"


def python_security(conf: Conf) -> tuple[Login | TokenLogin | None, ssl.SSLContext | None]:
    """Who logs in, None without SASL, and the context of TLS, None without. Raises KafkaConfError."""
    security = security_of(conf, DRIVER)
    return security.login, _context(security.tls) if security.tls is not None else None


def ignored_by_python(conf: Conf) -> list[str]:
    """What only librdkafka's clients take: all that is not security."""
    return sorted(key for key in conf if not is_of_security(key))


def _context(tls: Tls) -> ssl.SSLContext:
    if tls.keystore is not None:
        raise KafkaConfError(
            f"ssl.keystore.location is not possible with {DRIVER} but ssl.certificate.location and ssl.key.location are"
        )
    try:
        context = ssl.create_default_context(cadata=tls.authorities)
        if tls.chain is not None:
            _show(context, tls.chain, tls)
    except (ssl.SSLError, ValueError) as error:
        raise KafkaConfError(f"{DRIVER} cannot use ssl.ca, ssl.certificate or ssl.key: {error}") from None
    context.check_hostname = tls.checks_host and tls.checks_certificate
    if not tls.checks_certificate:
        context.verify_mode = ssl.CERT_NONE
    return context


def _show(context: ssl.SSLContext, chain: str, tls: Tls) -> None:
    """Python reads a key from files only: one that no one else may read, for as long as that takes."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(f"{chain}\n{tls.key or ''}\n")
        file.flush()
        context.load_cert_chain(file.name, password=tls.key_password or "")
