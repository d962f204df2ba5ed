"""Certificates made on the fly: an authority of its own for each test that wants one."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

_OPENSSL_RUNS_S = 60.0
LOCAL = "DNS:localhost,IP:127.0.0.1"


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
    """Issues certificates in a folder; `file` is what clients have to trust."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
        self.file = self._pair.certificate
        _openssl("req -x509", f"-subj /CN={name}", _new_key(self._pair.key), f"-days 2 -out {self.file}")

    def issue(self, name: str, names: str = LOCAL) -> Pair:
        """A certificate for these names, whose key is in PKCS#8."""
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        request, extensions = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={names}\n")
        _openssl("req -new", f"-subj /CN={name}", _new_key(pair.key), f"-out {request}")
        signer = f"-CA {self.file} -CAkey {self._pair.key} -CAcreateserial"
        _openssl("x509 -req -days 2", signer, f"-in {request} -extfile {extensions} -out {pair.certificate}")
        return pair


def lock(key: Path, password: str) -> None:
    """Encrypt the key in the file."""
    locked = key.with_suffix(".locked")
    _openssl(f"pkcs8 -topk8 -in {key} -out {locked} -passout pass:{password}")
    locked.replace(key)


def _new_key(file: Path) -> str:
    return f"-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {file}"


def _openssl(*arguments: str) -> None:
    command = ["openssl", *" ".join(arguments).split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_OPENSSL_RUNS_S, check=False)
    assert done.returncode == 0, done.stderr
