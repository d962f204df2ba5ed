"""Certificates in Java's stores, as Java's own tool and ours write them."""

import ssl
import subprocess
from pathlib import Path

import pytest
from support.certificates import Authority

from sluice.security.authority import trust_store
from sluice.security.contexts import ClientTls
from sluice.security.pem import NoCertificatesError
from sluice.security.stores import certificates_in
from sluice.security.tls import following_client
from sluice.security.watched import SecurityConfigError

PASSWORD = "1111_aaaa"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def der_of(file: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(file.read_text())


def by_java(authority: Authority, form: str) -> Path:
    """A store with the authority's certificate, by Java's keytool."""
    store = authority.file.with_suffix(f".{form}")
    command = ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", str(authority.file)]
    command += ["-keystore", str(store)]
    command += ["-storetype", form, "-storepass", PASSWORD]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return store


@pytest.mark.parametrize("form", ["JKS", "PKCS12"])
def test_an_authority_in_a_store_of_javas_is_trusted(authority: Authority, form: str, tmp_path: Path) -> None:
    store, password = by_java(authority, form), tmp_path / "password"
    password.write_text(f"{PASSWORD}\n")
    tls = ClientTls("SLUICE_ZOOKEEPER_TLS", str(store), authorities_password_file=str(password))
    assert following_client("ZooKeeper", tls).current.get_ca_certs(binary_form=True) == [der_of(authority.file)]
    assert str(password) in tls.files


def test_the_certificate_of_a_key_comes_first(authority: Authority) -> None:
    pair = authority.issue("server")
    store = pair.key.with_suffix(".p12")
    command = ["openssl", "pkcs12", "-export", "-inkey", str(pair.key), "-in", str(pair.certificate)]
    command += ["-certfile", str(authority.file), "-out", str(store), "-passout", f"pass:{PASSWORD}"]
    subprocess.run(command, check=True, timeout=60)
    expected = [der_of(pair.certificate), der_of(authority.file)]
    assert certificates_in(store.read_bytes(), PASSWORD) == expected
    # The same as JKS, by Java.
    jks = store.with_suffix(".jks")
    command = ["keytool", "-importkeystore", "-srckeystore", str(store), "-srcstorepass", PASSWORD]
    command += ["-destkeystore", str(jks), "-deststoretype", "JKS", "-deststorepass", PASSWORD]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert certificates_in(jks.read_bytes(), "") == expected


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_a_store_that_is_cut_off_is_refused(authority: Authority, cut: int) -> None:
    content = trust_store(authority.file.read_text(), PASSWORD)
    assert certificates_in(content, "") == [der_of(authority.file)]
    with pytest.raises(NoCertificatesError):
        certificates_in(content[: 12 + cut], "")


def test_what_holds_no_certificate_is_refused(authority: Authority, tmp_path: Path) -> None:
    store = by_java(authority, "PKCS12")
    with pytest.raises(SecurityConfigError, match=r"SLUICE_STORE_TLS: .*PKCS12: it cannot be opened as PKCS#12"):
        following_client("segment stores", ClientTls("SLUICE_STORE_TLS", str(store)))
    damaged = tmp_path / "damaged.pem"
    damaged.write_text(f"{ssl.PEM_HEADER}\nA\n{ssl.PEM_FOOTER}\n")
    with pytest.raises(SecurityConfigError, match="damaged"):
        following_client("segment stores", ClientTls("SLUICE_STORE_TLS", str(damaged)))
