"""Certificates in the stores of Java: JKS and PKCS#12, as Pravega's settings name them, or PEM."""

import struct

from sluice.security.pem import NoCertificatesError, of_pem

JKS = b"\xfe\xed\xfe\xed"
_DER = b"\x30"
_KEY, _TRUSTED = 1, 2


def certificates_in(content: bytes, password: str) -> list[bytes]:
    """The certificates of a file in DER, the first one that of its key if it has one. Raises NoCertificatesError.

    Certificates in JKS are not encrypted: no password is needed.
    """
    if content.startswith(JKS):
        found = _of_jks(content)
    elif content.startswith(_DER):
        found = _of_pkcs12(content, password)
    else:
        found = of_pem(content)
    if not found:
        raise NoCertificatesError("it holds no certificates: PEM, JKS and PKCS#12 are known")
    return found


def _of_jks(content: bytes) -> list[bytes]:
    """Sun's format, big-endian: entries of a key with its chain, or of one certificate; then a digest."""
    at = 4

    def take(form: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from(f">{form}", content, at)
        at += struct.calcsize(form)
        return int(value)

    def block(length: int) -> bytes:
        nonlocal at
        at += length
        if at > len(content):
            raise NoCertificatesError("it ends too early")
        return content[at - length : at]

    def certificate() -> bytes:
        block(take("H"))  # its type, which is X.509
        return block(take("I"))

    of_keys: list[bytes] = []
    trusted: list[bytes] = []
    try:
        version, entries = take("I"), take("I")
        if version != 2:
            raise NoCertificatesError(f"it is a key store of version {version}")
        for _ in range(entries):
            kind = take("I")
            block(take("H"))  # its alias
            take("Q")  # when it was made
            if kind == _KEY:
                block(take("I"))
                of_keys += [certificate() for _ in range(take("I"))]
            elif kind == _TRUSTED:
                trusted.append(certificate())
            else:
                raise NoCertificatesError(f"it has an entry of the unknown kind {kind}")
    except struct.error:
        raise NoCertificatesError("it ends too early") from None
    return of_keys + trusted


def _of_pkcs12(content: bytes, password: str) -> list[bytes]:
    # Only who has such a file needs the library.
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    try:
        store = pkcs12.load_pkcs12(content, password.encode() or None)
    except ValueError:
        raise NoCertificatesError("it cannot be opened as PKCS#12 with its password") from None
    found = ([store.cert] if store.cert else []) + store.additional_certs
    return [each.certificate.public_bytes(Encoding.DER) for each in found]
