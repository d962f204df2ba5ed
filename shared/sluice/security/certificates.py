"""What certificates say: whether they count now and until when, and for which names.

The one check of all that a service uses, its own and those of the authorities it trusts. Of the authorities in a file
one has to count, for while one is replaced there is the next one beside it; whatever else is in a file has to count.
"""

import ipaddress
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

from cryptography import x509

from sluice.security.pem import NoCertificatesError
from sluice.security.stores import JKS, certificates_in
from sluice.security.validity import Validity
from sluice.security.watched import SecurityConfigError

Contents = Mapping[Path, bytes]
"""What files hold; a certificate in a setting has the setting's name as its path."""

_PEM = b"-----BEGIN CERTIFICATE-----"


def validity_of(setting: str, contents: Contents) -> Validity | None:
    """That of what ends first; None if there are no certificates in PEM or JKS.

    Raises SecurityConfigError, which names the setting, unless all that has to count does.
    """
    found = [one for file, content in contents.items() for one in _needed(setting, str(file), content)]
    for one in found:
        if wrong := one.refusal():
            raise SecurityConfigError(f"{setting}: {wrong}")
    return min(found, key=lambda one: one.ends, default=None)


def check_name(setting: str, file: str, chain: bytes, name: str, published_by: str) -> None:
    """Raises SecurityConfigError if the first certificate of the chain is not for this host name or address."""
    known = _names(_certificates(setting, file, chain)[0])
    if not any(_covers(each, name.strip("[]").rstrip(".").lower()) for each in known):
        names = ", ".join(known) or "no name"
        raise SecurityConfigError(
            f"{setting}: {file} is for {names}, and not for {name}, which {published_by} gives out"
        )


def pem_of_key_store(setting: str, file: str, content: bytes, password: str) -> bytes:
    """The certificates in a PKCS#12 file, as PEM. Raises SecurityConfigError."""
    try:
        found = certificates_in(content, password)
    except NoCertificatesError as error:
        raise SecurityConfigError(f"{setting}: {file}: {error}") from None
    return "".join(map(ssl.DER_cert_to_PEM_cert, found)).encode()


def _needed(setting: str, file: str, content: bytes) -> Iterator[Validity]:
    if _PEM not in content and not content.startswith(JKS):
        return
    authorities = []
    for each in _certificates(setting, file, content):
        validity = Validity(file, each.not_valid_before_utc, each.not_valid_after_utc)
        if _is_authority(each):
            authorities.append(validity)
        else:
            yield validity
    if authorities:
        # The one that counts longest.
        yield max(authorities, key=lambda one: (one.refusal() is None, one.ends))


def _certificates(setting: str, file: str, content: bytes) -> list[x509.Certificate]:
    try:
        if content.startswith(JKS):
            return [x509.load_der_x509_certificate(each) for each in certificates_in(content, "")]
        return x509.load_pem_x509_certificates(content)
    except (ValueError, NoCertificatesError):
        raise SecurityConfigError(f"{setting}: {file} holds a certificate that cannot be read") from None


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return certificate.issuer == certificate.subject


def _names(certificate: x509.Certificate) -> list[str]:
    """Without alternative names the common name counts, as it does for Java and gRPC."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return [str(each.value) for each in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    addresses = names.get_values_for_type(x509.IPAddress)
    return [*names.get_values_for_type(x509.DNSName), *map(str, addresses)]


def _covers(known: str, name: str) -> bool:
    try:
        return ipaddress.ip_address(known) == ipaddress.ip_address(name)
    except ValueError:
        known = known.lower()
        return known == name or (known.startswith("*.") and known[2:] == name.partition(".")[2])
