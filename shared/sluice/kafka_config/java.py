"""What the operator gives, in the names of Kafka's Java client. Spark's source is one.

Certificates and keys are passed on as text, so that Spark's executors need no files.
"""

from collections.abc import Mapping

from sluice.kafka_config.conf import Conf, KafkaConfError
from sluice.kafka_config.security import Login, Security, Tls, TokenLogin, is_of_security, security_of

DRIVER = "Spark's Java client"

_NAMES = {
    "client.dns.lookup": "client.dns.lookup",
    "client.rack": "client.rack",
    "fetch.max.bytes": "fetch.max.bytes",
    "fetch.min.bytes": "fetch.min.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "max.partition.fetch.bytes": "max.partition.fetch.bytes",
    "reconnect.backoff.max.ms": "reconnect.backoff.max.ms",
    "reconnect.backoff.ms": "reconnect.backoff.ms",
    "retry.backoff.max.ms": "retry.backoff.max.ms",
    "retry.backoff.ms": "retry.backoff.ms",
    "socket.connection.setup.timeout.ms": "socket.connection.setup.timeout.ms",
}
"""Settings of both clients that mean the same, for every value."""

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

_OAUTH = "org.apache.kafka.common.security.oauthbearer"


def java_options(conf: Conf) -> dict[str, str]:
    """The Java client's configuration. Raises KafkaConfError for security that it cannot give."""
    tuning = {_NAMES[key]: str(value) for key, value in conf.items() if key in _NAMES}
    return {**tuning, **_security(security_of(conf, DRIVER))}


def ignored_by_java(conf: Conf) -> list[str]:
    """What only librdkafka's clients take."""
    return sorted(key for key in conf if key not in _NAMES and not is_of_security(key))


def _security(security: Security) -> dict[str, str]:
    return {
        **({} if security.protocol == "PLAINTEXT" else {"security.protocol": security.protocol}),
        **(_login(security.login) if security.login is not None else {}),
        **(_tls(security.tls) if security.tls is not None else {}),
    }


def _login(login: Login | TokenLogin) -> dict[str, str]:
    if isinstance(login, Login):
        module = _MODULES[login.mechanism]
        return {
            "sasl.mechanism": login.mechanism,
            "sasl.jaas.config": _jaas(module, {"username": login.user, "password": login.password}),
        }
    options = {"clientId": login.client_id, "clientSecret": login.secret}
    if login.scope:
        options["scope"] = login.scope
    if login.authorities is not None:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": login.authorities}
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": login.endpoint,
        "sasl.login.callback.handler.class": f"{_OAUTH}.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": _jaas(f"{_OAUTH}.OAuthBearerLoginModule", options),
    }


def _jaas(module: str, options: Mapping[str, str]) -> str:
    return f"{module} required {' '.join(f'{name}={_quoted(text)}' for name, text in options.items())};"


def _quoted(text: str) -> str:
    """As JAAS reads it: text in quotation marks on one line, a backslash before what would end it or is one."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _tls(tls: Tls) -> dict[str, str]:
    if not tls.checks_certificate:
        raise KafkaConfError(
            f"enable.ssl.certificate.verification cannot be turned off with {DRIVER}: give ssl.ca.location instead"
        )
    options = {"ssl.endpoint.identification.algorithm": "https" if tls.checks_host else ""}
    if tls.authorities is not None:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": tls.authorities}
    if tls.keystore is not None:
        options |= {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": tls.keystore}
        options |= {"ssl.keystore.password": tls.keystore_password or ""}
    elif tls.chain is not None and tls.key is not None:
        if "-----BEGIN PRIVATE KEY" not in tls.key and "-----BEGIN ENCRYPTED PRIVATE KEY" not in tls.key:
            raise KafkaConfError(f"ssl.key must be in PKCS#8 for {DRIVER}: `openssl pkcs8 -topk8` makes it so")
        options |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": tls.chain}
        options |= {"ssl.keystore.key": tls.key}
        options |= {} if tls.key_password is None else {"ssl.key.password": tls.key_password}
    return options
