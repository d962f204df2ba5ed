"""An authority of one's own, the certificates it signs, and the stores that Java programs read.

For local systems, tests and first steps; a cluster has an issuer of its own. Keys are of the curve P-256, which every
client of Pravega knows, and in PKCS#8 without a password. The work is done by the command `openssl`, so that no package
is needed for it; passwords reach it by files. Blocking.
"""

import hashlib
import ipaddress
import secrets
import ssl
import struct
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from sluice.security.watched import SecurityConfigError

_AUTHORITY_DAYS = 3650
_CERTIFICATE_DAYS = 825
_OPENSSL_RUNS_S = 60.0
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_EXTENSIONS = """\
[req]
distinguished_name = subject
prompt = no
[subject]
CN = {name}
[authority]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = {names}
"""


def make_authority(certificate: Path, key: Path) -> None:
    """Write a new authority's certificate, which signs itself, and its key. Raises SecurityConfigError."""
    name = f"Sluice authority {secrets.token_hex(4)}"
    _request(name, "DNS:localhost", "authority", _AUTHORITY_DAYS, certificate, key)


def make_certificate(authority: Path, authority_key: Path, names: Iterable[str], certificate: Path, key: Path) -> None:
    """Write a server's certificate for these host names and addresses, signed by the authority, and its new key.

    It may also be shown as a client's. Raises SecurityConfigError.
    """
    first, *others = map(_alternative, names)
    signed = ("-CA", str(authority), "-CAkey", str(authority_key))
    alternatives = ", ".join((first, *others))
    _request(first.partition(":")[2], alternatives, "server", _CERTIFICATE_DAYS, certificate, key, *signed)


def make_key_store(certificate: Path, key: Path, store: Path, password: Path) -> None:
    """Write a certificate and its key as a PKCS#12 file; `password` is a file with its password."""
    pair = ("-in", str(certificate), "-inkey", str(key), "-name", "server")
    _openssl("pkcs12", "-export", *pair, "-out", str(store), "-passout", f"file:{password}")


def trust_store(certificate: str, password: str) -> bytes:
    """An authority's certificate (PEM) as a JKS file.

    OpenSSL writes no PKCS#12 that Java takes for a store of authorities, hence the format of Java's own: a header, each
    entry, and a digest over the password and all of it.
    """
    der = ssl.PEM_cert_to_DER_cert(certificate)
    body = struct.pack(">III", 0xFEEDFEED, 2, 1)  # magic number, version, entries
    body += struct.pack(">I", 2) + _java_text("authority") + struct.pack(">Q", 0)  # trusted certificate, name, time
    body += _java_text("X.509") + struct.pack(">I", len(der)) + der
    digest = hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body, usedforsecurity=False)
    return body + digest.digest()


def _java_text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")


def _alternative(name: str) -> str:
    """A host name or an address as a subject's alternative name."""
    try:
        return f"IP:{ipaddress.ip_address(name)}"
    except ValueError:
        pass
    if not name or not all(part.isalnum() or part == "*" for part in name.replace("-", "a").split(".")):
        raise SecurityConfigError(f"{name!r} is neither a host name nor an address")
    return f"DNS:{name}"


def _request(name: str, names: str, section: str, days: int, certificate: Path, key: Path, *signed: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "openssl.cnf"
        configuration.write_text(_EXTENSIONS.format(name=name, names=names))
        how = ("-config", str(configuration), "-extensions", section, "-days", str(days))
        _openssl("req", "-x509", *_NEW_KEY, *how, *signed, "-keyout", str(key), "-out", str(certificate))


def _openssl(*arguments: str) -> None:
    try:
        subprocess.run(
            ["openssl", *arguments], capture_output=True, text=True, timeout=_OPENSSL_RUNS_S, check=True, umask=0o077
        )
    except FileNotFoundError:
        raise SecurityConfigError("the command openssl is missing: install OpenSSL 3 (on Debian: openssl)") from None
    except subprocess.CalledProcessError as error:
        raise SecurityConfigError(f"openssl {arguments[0]}: {error.stderr.strip()}") from None
    except subprocess.TimeoutExpired:
        raise SecurityConfigError(f"openssl {arguments[0]} did not end in {_OPENSSL_RUNS_S:g} s") from None
