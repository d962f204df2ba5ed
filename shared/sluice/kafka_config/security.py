"""The security of the connections, taken from the operator's configuration for drivers that are not librdkafka.

Files are read here, so that a process that has them can pass their contents on to others. What another driver cannot do
is refused: a connection that is less safe than the one that was configured is none.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from sluice.kafka_config.conf import Conf, KafkaConfError

_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_OAUTH = "OAUTHBEARER"
_OF_PASSWORDS = {"sasl.mechanism", "sasl.username", "sasl.password"}
_OF_TOKENS = {
    "sasl.mechanism",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
    "https.ca.location",
    "https.ca.pem",
}
_TLS = {
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.key.location",
    "ssl.key.pem",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification",
}


@dataclass(frozen=True)
class Login:
    """A name and its password, and the SASL mechanism that proves them."""

    mechanism: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class TokenLogin:
    """A client of an OAuth provider, which gives it tokens at `endpoint` (OAUTHBEARER with OIDC).

    `scope` may be empty. `authorities` is PEM of what the provider is trusted by; None: those of the machine.
    """

    client_id: str
    secret: str = field(repr=False)
    endpoint: str
    scope: str
    authorities: str | None


@dataclass(frozen=True)
class Tls:
    """Texts are PEM. `authorities` None: those of the machine. The client shows a certificate if there is a `chain`
    or a `keystore`."""

    authorities: str | None
    chain: str | None
    key: str | None = field(repr=False)
    key_password: str | None = field(repr=False)
    keystore: str | None
    """The path of a PKCS#12 file."""
    keystore_password: str | None = field(repr=False)
    checks_certificate: bool
    checks_host: bool


@dataclass(frozen=True)
class Security:
    """`protocol` as Kafka writes it: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""

    protocol: str
    login: Login | TokenLogin | None
    tls: Tls | None


def security_of(conf: Conf, driver: str) -> Security:
    """What the configuration says of security. Raises KafkaConfError, which names the driver that cannot do it."""
    protocol = str(conf.get("security.protocol", "plaintext")).upper()
    login = _login(conf, driver) if protocol.startswith("SASL") else None
    tls = _tls(conf, driver) if protocol.endswith("SSL") else None
    return Security(protocol, login, tls)


def is_of_security(key: str) -> bool:
    """Whether a setting concerns security, so that it may not be ignored."""
    return key == "security.protocol" or key.startswith(("ssl.", "sasl.", "https.", "enable.ssl.", "enable.sasl."))


def _login(conf: Conf, driver: str) -> Login | TokenLogin:
    mechanism = str(conf.get("sasl.mechanism", "GSSAPI")).upper()
    if mechanism == _OAUTH:
        return _token_login(conf, driver)
    if mechanism not in _MECHANISMS:
        possible = ", ".join((*_MECHANISMS, _OAUTH))
        raise KafkaConfError(f"sasl.mechanism {mechanism} is not possible with {driver}, but {possible} are")
    _refuse_others(conf, driver, ("sasl.", "enable.sasl."), _OF_PASSWORDS)
    return Login(mechanism, str(conf.get("sasl.username", "")), str(conf.get("sasl.password", "")))


def _token_login(conf: Conf, driver: str) -> TokenLogin:
    _refuse_others(conf, driver, ("sasl.", "enable.sasl.", "https."), _OF_TOKENS)
    if str(conf.get("sasl.oauthbearer.method")).lower() != "oidc":
        raise KafkaConfError(f"sasl.oauthbearer.method must be oidc for {driver}")
    return TokenLogin(
        client_id=str(conf.get("sasl.oauthbearer.client.id", "")),
        secret=str(conf.get("sasl.oauthbearer.client.secret", "")),
        endpoint=str(conf.get("sasl.oauthbearer.token.endpoint.url", "")),
        scope=str(conf.get("sasl.oauthbearer.scope", "")),
        authorities=None if conf.get("https.ca.location") == "probe" else _pem(conf, "https.ca"),
    )


def _tls(conf: Conf, driver: str) -> Tls:
    _refuse_others(conf, driver, ("ssl.", "enable.ssl."), _TLS)
    probes = conf.get("ssl.ca.location") == "probe"
    return Tls(
        authorities=None if probes else _pem(conf, "ssl.ca"),
        chain=_pem(conf, "ssl.certificate"),
        key=_pem(conf, "ssl.key"),
        key_password=_text(conf, "ssl.key.password"),
        keystore=_text(conf, "ssl.keystore.location"),
        keystore_password=_text(conf, "ssl.keystore.password"),
        checks_certificate=_is_true(conf, "enable.ssl.certificate.verification"),
        checks_host=_text(conf, "ssl.endpoint.identification.algorithm") != "none",
    )


def _refuse_others(conf: Conf, driver: str, prefixes: tuple[str, ...], known: Iterable[str]) -> None:
    for key in conf:
        if key.startswith(prefixes) and key not in known:
            raise KafkaConfError(f"{key} is not possible with {driver}")


def _pem(conf: Conf, name: str) -> str | None:
    """The text under `name`.pem, or in the file of `name`.location."""
    path = _text(conf, f"{name}.location")
    if path is None:
        return _text(conf, f"{name}.pem")
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise KafkaConfError(f"{name}.location: {path} cannot be read: {why}") from None


def _text(conf: Conf, key: str) -> str | None:
    value = conf.get(key)
    return None if value is None else str(value)


def _is_true(conf: Conf, key: str) -> bool:
    return str(conf.get(key, True)).lower() in ("true", "t", "1")
