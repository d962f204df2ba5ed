"""Certificates made on the fly: an authority of its own for each test that wants one."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

LOCAL = "DNS:localhost,IP:127.0.0.1"
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """The files of a certificate and of its key."""

    certificate: Path
    key: Path

    def replace_by(self, other: "Pair") -> None:
        """Have these files hold another certificate from now on."""
        self.key.write_bytes(other.key.read_bytes())
        self.certificate.write_bytes(other.certificate.read_bytes())


class Authority:
    """Issues certificates in a folder; `file` is what clients have to trust. It is valid from `begins` to `ends`."""

    def __init__(
        self, folder: Path, name: str = "authority", begins: timedelta = -DAY, ends: timedelta = 2 * DAY
    ) -> None:
        self._folder = folder
        self._name = _named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = folder / f"{name}.pem"
        public = self._key.public_key()
        made = _valid(begins, ends).issuer_name(self._name).subject_name(self._name).public_key(public)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        self.file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def issue(self, name: str, names: str = LOCAL, begins: timedelta = -DAY, ends: timedelta = 2 * DAY) -> Pair:
        """A certificate for these names, whose key is in PKCS#8; valid between these times from now.

        Without them it has its common name alone, which is `name`.
        """
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        key = ec.generate_private_key(ec.SECP256R1())
        made = _valid(begins, ends).issuer_name(self._name).subject_name(_named(name)).public_key(key.public_key())
        if names:
            made = made.add_extension(x509.SubjectAlternativeName(map(_alternative, names.split(","))), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = made.add_extension(issuer, critical=False)
        pair.certificate.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        _write(pair.key, key, NoEncryption())
        return pair


def lock(key: Path, password: str) -> None:
    """Encrypt the key in the file."""
    _write(key, _key_in(key), BestAvailableEncryption(password.encode()))


def key_store(pair: Pair, password: str) -> Path:
    """A PKCS#12 file beside the pair, with both."""
    (certificate,) = x509.load_pem_x509_certificates(pair.certificate.read_bytes())
    store = pair.certificate.with_suffix(".p12")
    locked = BestAvailableEncryption(password.encode())
    store.write_bytes(pkcs12.serialize_key_and_certificates(b"us", _key_in(pair.key), certificate, None, locked))
    return store


def _valid(begins: timedelta, ends: timedelta) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().serial_number(x509.random_serial_number())
    return made.not_valid_before(now + begins).not_valid_after(now + ends)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _alternative(name: str) -> x509.GeneralName:
    kind, _, text = name.partition(":")
    return x509.IPAddress(ipaddress.ip_address(text)) if kind == "IP" else x509.DNSName(text)


def _key_in(file: Path) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(file.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _write(file: Path, key: ec.EllipticCurvePrivateKey, locked: KeySerializationEncryption) -> None:
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
