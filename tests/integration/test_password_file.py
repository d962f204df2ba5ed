"""What Pravega's own controller makes of a password file, and what Sluice does: the same."""

import random
import subprocess
from base64 import b64encode
from pathlib import Path

import pytest
from integration.test_java_client import build

from sluice.security.accounts import read_accounts, with_account
from sluice.security.passwords import MalformedHashError, hash_password, verify
from sluice_local import java
from sluice_local.settings import LocalSettings

pytestmark = pytest.mark.integration

SECRET = "1111:ä"
HASH = hash_password(SECRET, bytes(32))
PIECES = ["prn::/", "prn::*", "scope:", "a", "b", ".", "*", "/", "stream:", "s", "(a|b)", "[ab]", r"\.", " ", "prn"]
WORDS = ["READ", "READ_UPDATE", "NONE", " READ ", "READ,", "WRITE", ""]
RESOURCES = [
    "prn::/", "prn::/scope:a", "prn::/scope:b", "prn::/scope:ab", "prn::/scope:a.b", "prn::/scope:a/stream:s",
    "prn::/scope:ab/stream:a", "prn::/scope:b/reader-group:a", "prn::/sluice:cluster",
]  # fmt: skip
ACLS = [
    "",
    ";",
    "prn::*,READ_UPDATE;",
    "prn::/,READ; prn::/scope:a , READ_UPDATE",
    ";;x;prn::*,READ",
    "\u00a0prn::*,READ",
]


def random_acl(chance: random.Random) -> str:
    def entry() -> str:
        pattern = chance.choice(["prn::/", "prn::/scope:", ""]) + "".join(
            chance.choices(PIECES, k=chance.randint(0, 5))
        )
        return f"{pattern},{chance.choice(WORDS)}"

    return ";".join(entry() for _ in range(chance.randint(1, 3)))


def password_file() -> bytes:
    chance = random.Random(7)
    acls = [*ACLS, *(random_acl(chance) for _ in range(300))]
    lines = ["# comment", *(f"u{number}:{HASH}:{acl}" for number, acl in enumerate(acls))]
    lines += [f"bare:{HASH}", "no colon", f"twice:{hash_password('old')}:x", f"twice:{HASH}:prn::/,READ"]
    lines += [f" blanks :{HASH}:x", f"upper:{HASH.upper()} :x", "malformed:zz:x", "", f"unread:{HASH}:prn::*,READ"]
    return with_account("\n".join(lines).encode(), "new", hash_password(SECRET), "prn::/,READ;")


def test_a_password_file_means_what_it_means_to_pravega(tmp_path: Path) -> None:
    file = tmp_path / "passwd"
    file.write_bytes(password_file())
    accounts = read_accounts(file.read_bytes())
    callers = [
        (user, password)
        for user in ("u0", "bare", "no colon", "twice", "blanks", " blanks ", "upper", "malformed", "unread", "new", "")
        for password in (SECRET, "old", "")
    ]

    def principal(user: str, password: str) -> str:
        account = accounts.get(user)
        try:
            return user if account is not None and verify(password, account.stored_hash) else "refused"
        except MalformedHashError:
            return "refused"

    questions = [b64encode(f"{user}:{password}".encode()).decode() for user, password in callers]
    expected = [principal(*caller) for caller in callers]
    for user, account in accounts.items():
        questions += [f"{user}\t{resource}" for resource in RESOURCES]
        expected += [account.acl.permission_on(resource).name for resource in RESOURCES]
    assert dict(zip(questions, zip(answers(file, questions), expected, strict=True), strict=True)) == {
        question: (one, one) for question, one in zip(questions, expected, strict=True)
    }


def answers(file: Path, questions: list[str]) -> list[str]:
    """Those of the controller's handler, whose jars the segment stores bring along."""
    settings = LocalSettings()
    classpath = f"{build(settings.home / 'java-client')}:{settings.jars_dir / 'data-plane'}/*"
    options = ("-XX:+UseSerialGC", "-Xmx128m", *java.SHORT_LIVED)
    command = (java.executable(), *options, "-cp", classpath, "io.sluice.client.PasswordFilePeer", str(file))
    done = subprocess.run(
        command, input="\n".join(questions) + "\n", capture_output=True, text=True, timeout=120, check=True
    )
    return [line.removeprefix("> ") for line in done.stdout.splitlines() if line.startswith("> ")]
