"""The configuration of Spark's session."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.certificates import Authority

from retention_spark.session import configuration
from retention_spark.settings import SparkSettings
from sluice.security.watched import SecurityConfigError

ON = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


def login(_folder: Path) -> dict[str, str]:
    name = {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    return {"security.protocol": "sasl_plaintext", **name}


def certificate(folder: Path) -> dict[str, str]:
    pair = Authority(folder).issue("client")
    files = {"ssl.certificate.location": f"{pair.certificate}", "ssl.key.location": f"{pair.key}"}
    return {"security.protocol": "ssl", **files}


def settings(kafka: dict[str, str], master: str = "k8s://https://api", **spark: str) -> SparkSettings:
    return SparkSettings(instance="t", kafka_conf=SecretStr(json.dumps(kafka)), spark_master=master, spark_conf=spark)


@pytest.mark.parametrize("missing", ON)
@pytest.mark.parametrize("kafka", [login, certificate])
def test_kafkas_secrets_do_not_go_to_executors_in_clear(
    kafka: Callable[[Path], dict[str, str]], missing: str, tmp_path: Path
) -> None:
    given = kafka(tmp_path)
    with pytest.raises(SecurityConfigError, match=missing):
        configuration(settings(given, **{**ON, missing: "false"}))
    assert configuration(settings(given, **ON))[missing] == "true"


def test_without_executors_or_without_secrets_nothing_must_be_protected(tmp_path: Path) -> None:
    configuration(settings(login(tmp_path), "local[2]"))
    configuration(settings({}))


@pytest.mark.parametrize(("pod", "host"), [("10.0.0.7", "10.0.0.7"), ("fd00::7", "[fd00::7]")])
def test_executors_are_given_the_address_of_the_drivers_pod_as_spark_takes_it(pod: str, host: str) -> None:
    assert configuration(settings({}, **{"spark.driver.host": pod}))["spark.driver.host"] == host
