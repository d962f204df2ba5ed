"""What the operator gives of librdkafka's configuration: for every client, but for what Sluice relies on."""

import json
import logging
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import certifi
import pytest
from confluent_kafka import Consumer
from support.ports import free_port

from sluice.kafka_config import clients
from sluice.kafka_config.conf import Conf, KafkaConfError, files_of, read_conf
from sluice.kafka_config.java import ignored_by_java, java_options
from sluice.kafka_config.python import python_security
from sluice.kafka_config.security import Login, TokenLogin
from sluice.settings import ServiceSettings

STARTS_S = 120.0
SECRET = 'p4"\\word'
LOGIN = {
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": "sluice",
    "sasl.password": SECRET,
}

TOKENS = {
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "sluice",
    "sasl.oauthbearer.client.secret": SECRET,
    "sasl.oauthbearer.token.endpoint.url": "https://provider/token",
}
OAUTH_OF_JAVA = "org.apache.kafka.common.security.oauthbearer"


def given(**more: Any) -> Conf:
    return read_conf(json.dumps({**LOGIN, **{key.replace("_", "."): value for key, value in more.items()}}))


def test_json_and_a_file_with_json_give_the_same(tmp_path: Path) -> None:
    file = tmp_path / "kafka.json"
    file.write_text(json.dumps(LOGIN), encoding="utf-8-sig")
    assert read_conf(f" {file}\n") == read_conf(json.dumps(LOGIN)) == LOGIN
    assert read_conf('{"sasl.mechanisms": "PLAIN"}') == {"sasl.mechanism": "PLAIN"}
    assert read_conf("  ") == {}


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("acks", 1, "acks cannot be set: .* all replicas"),
        ("request.required.acks", 1, "request.required.acks cannot be set: .* all replicas"),
        ("enable.auto.commit", True, "committed when it is decided"),
        ("group.id", "mine", "names its groups itself"),
        ("session.timeout.ms", 9000, "SLUICE_KAFKA_SESSION_TIMEOUT_S"),
        ("metadata.broker.list", "kafka:9092", "SLUICE_KAFKA_BOOTSTRAP"),
        ("isolation.level", "read_uncommitted", "taken back"),
    ],
)
def test_what_sluice_relies_on_is_refused_with_the_reason(key: str, value: Any, reason: str) -> None:
    with pytest.raises(KafkaConfError, match=reason):
        read_conf(json.dumps({key: value}))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f'{{"sasl.username": "{SECRET}"', "not JSON"),
        (json.dumps([SECRET]), "not a JSON object"),
        (json.dumps({"sasl.password": [SECRET]}), "sasl.password must be text"),
        (json.dumps({"sasl.passwort": SECRET}), 'No such configuration property: "sasl.passwort"'),
        (json.dumps({"linger.ms": 1, "queue.buffering.max.ms": 2}), "queue.buffering.max.ms is given twice"),
        (json.dumps({"max.in.flight": 100}), "max.in.flight"),
        (f"sasl.password={SECRET}", "neither JSON nor the path"),
    ],
)
def test_what_cannot_be_used_is_named_without_its_value(text: str, problem: str) -> None:
    with pytest.raises(KafkaConfError, match=f"^SLUICE_KAFKA_CONF: .*{problem}") as refused:
        read_conf(text)
    assert "p4" not in str(refused.value)


def test_settings_do_not_show_what_they_were_given() -> None:
    settings = ServiceSettings.model_validate({"kafka_conf": json.dumps(LOGIN)})
    assert settings.kafka_client()["sasl.password"] == SECRET
    assert "p4" not in f"{settings!r} {settings.model_dump_json()} {settings.model_dump()}"


def test_it_goes_before_sluices_choice_and_to_the_clients_it_is_for() -> None:
    conf = given(queue_buffering_max_ms=7, fetch_message_max_bytes=2_000_000, client_rack="a")
    client = clients.common("kafka:9092", "txn-manager-0", logging.getLogger("test"), conf)
    producer = clients.producer(client, {"linger.ms": 0})
    consumer = clients.consumer(client, "group", {"max.partition.fetch.bytes": 1})
    admin = clients.admin(client)
    assert producer["linger.ms"] == 7
    assert consumer["max.partition.fetch.bytes"] == 2_000_000
    assert "max.partition.fetch.bytes" not in producer.keys() | admin.keys()
    assert "linger.ms" not in consumer
    for config in (producer, consumer, admin):
        assert (config["bootstrap.servers"], config["client.rack"]) == ("kafka:9092", "a")
        assert config["sasl.password"] == SECRET


@pytest.mark.parametrize("session_s", [1.5, 60.0])
def test_a_member_of_any_session_is_waited_for_no_shorter(session_s: float) -> None:
    """librdkafka makes no member that is given up before its session ends."""
    member = clients.consumer({"bootstrap.servers": "127.0.0.1:1"}, "group", clients.membership(session_s))
    Consumer({**member, "log_level": 2}).close()


def test_java_is_given_the_same_security_with_the_files_as_text(tmp_path: Path) -> None:
    chain, key = tmp_path / "chain.pem", "-----BEGIN PRIVATE KEY-----\n…"
    chain.write_text("the chain")
    conf: dict[str, str | int] = {**LOGIN, "ssl.ca.location": certifi.where(), "fetch.wait.max.ms": 7}
    conf |= {"ssl.certificate.location": str(chain), "ssl.key.pem": key, "linger.ms": 5}
    conf |= {"ssl.endpoint.identification.algorithm": "none", "ssl.key.password": SECRET}
    assert java_options(conf) == {
        "fetch.max.wait.ms": "7",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        r'username="sluice" password="p4\"\\word";',
        "ssl.endpoint.identification.algorithm": "",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": Path(certifi.where()).read_text(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "the chain",
        "ssl.keystore.key": key,
        "ssl.key.password": SECRET,
    }
    assert ignored_by_java(conf) == ["linger.ms"]
    assert java_options({}) == {}


def test_a_client_of_an_oauth_provider_logs_in_with_every_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorities = tmp_path / "provider.pem"
    monkeypatch.setattr("sluice.kafka_config.conf.PROVIDERS_FILE", authorities)
    with pytest.raises(KafkaConfError, match=r"provider\.pem must hold the certificates"):
        read_conf(json.dumps(TOKENS))
    authorities.write_text("first\nsecond\n")
    conf = read_conf(json.dumps({**TOKENS, "https.ca.location": str(authorities)}))
    assert java_options(conf) == {
        "security.protocol": "SASL_SSL",
        "ssl.endpoint.identification.algorithm": "https",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://provider/token",
        "sasl.login.callback.handler.class": f"{OAUTH_OF_JAVA}.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": f'{OAUTH_OF_JAVA}.OAuthBearerLoginModule required clientId="sluice" '
        r'clientSecret="p4\"\\word" ssl.truststore.type="PEM" ssl.truststore.certificates="first\nsecond\n";',
    }
    login, _context = python_security(conf)
    assert login == TokenLogin("sluice", SECRET, "https://provider/token", "", "first\nsecond\n")
    assert SECRET not in repr(login)


@pytest.mark.parametrize(
    ("key", "value"), [("sasl.oauthbearer.method", "default"), ("sasl.oauthbearer.extensions", "a=b")]
)
def test_tokens_that_only_librdkafka_can_get_are_refused(key: str, value: str) -> None:
    for call in (java_options, python_security):
        with pytest.raises(KafkaConfError, match=key):
            call({**TOKENS, key: value})


def test_the_files_that_clients_are_configured_by_are_known(tmp_path: Path) -> None:
    file = tmp_path / "kafka.json"
    file.write_text(json.dumps({"security.protocol": "ssl", "ssl.ca.location": certifi.where()}))
    assert files_of(str(file)) == [file, Path(certifi.where())]
    assert files_of('{"ssl.ca.location": "probe"}') == []
    assert files_of("") == []


def test_python_is_given_the_same_security() -> None:
    login, context = python_security(given(ssl_ca_location=certifi.where()))
    assert isinstance(login, Login) and context is not None
    assert (login.mechanism, login.user, login.password) == ("SCRAM-SHA-256", "sluice", SECRET)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.get_ca_certs()
    assert SECRET not in repr(login)
    assert python_security({}) == (None, None)


@pytest.mark.parametrize(
    ("more", "refused_by_java", "refused_by_python"),
    [
        ({"sasl.mechanism": "GSSAPI"}, True, True),
        ({"sasl.mechanism": "OAUTHBEARER"}, True, True),
        ({"ssl.crl.location": "revoked.pem"}, True, True),
        ({"ssl.ca.location": "/nowhere/ca.pem"}, True, True),
        ({"enable.ssl.certificate.verification": False}, True, False),
        ({"ssl.keystore.location": "client.p12"}, False, True),
        ({"ssl.key.pem": "-----BEGIN RSA PRIVATE KEY-----", "ssl.certificate.pem": "…"}, True, True),
    ],
)
def test_security_that_a_driver_cannot_give_is_refused(
    more: dict[str, Any], refused_by_java: bool, refused_by_python: bool
) -> None:
    conf = {**LOGIN, **more}
    for refused, call in ((refused_by_java, java_options), (refused_by_python, python_security)):
        if refused:
            with pytest.raises(KafkaConfError, match=next(iter(more)).rpartition(".")[0]):
                call(conf)
        else:
            call(conf)


def test_a_service_that_cannot_use_it_ends_with_status_2() -> None:
    environment = {**os.environ, "SLUICE_KAFKA_CONF": '{"acks": 1}', "SLUICE_HEALTH_PORT": str(free_port())}
    command = [sys.executable, "-m", "cluster_manager"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=STARTS_S, check=False)
    assert ended.returncode == 2
    assert "SLUICE_KAFKA_CONF: acks cannot be set" in ended.stderr
