"""Certificates in PEM."""

import ssl


class NoCertificatesError(Exception):
    """The file holds no certificates that can be read; the text says why."""


def of_pem(content: bytes) -> list[bytes]:
    """Those of a file in PEM, in DER; none where it holds none. Raises NoCertificatesError."""
    blocks = content.decode("ascii", errors="replace").split(ssl.PEM_HEADER)[1:]
    bodies = [block.partition(ssl.PEM_FOOTER)[0] for block in blocks]
    try:
        return [ssl.PEM_cert_to_DER_cert(f"{ssl.PEM_HEADER}{body}{ssl.PEM_FOOTER}\n") for body in bodies]
    except ValueError as error:
        raise NoCertificatesError(f"a certificate in it is damaged: {error}") from None
