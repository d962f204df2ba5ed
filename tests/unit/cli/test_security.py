"""The commands of `sluice security` that work on a password file."""

from pathlib import Path

import pytest
from unit.cli.conftest import Cli

from sluice.security.accounts import read_accounts
from sluice.security.passwords import hash_password, verify

HASH = hash_password("x", bytes(32))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "passwd"
    file.write_text(
        f"# users\nadmin:{HASH}:prn::*,READ_UPDATE;\nr:{HASH}:x;prn::/scope:a*,READ;prn::/(+,NONE\n\nlost:1\n"
    )
    return file


def test_users_are_listed_without_their_hashes(cli: Cli, file: Path) -> None:
    assert cli("security", "users", file, "--json").document == [
        {"user": "admin", "line": 2, "acl": "prn::*,READ_UPDATE;"},
        {"user": "r", "line": 3, "acl": "x;prn::/scope:a*,READ;prn::/(+,NONE"},
    ]
    found = cli("security", "users", file)
    assert "admin" in found.out and HASH not in found.out


@pytest.mark.parametrize(
    ("user", "resource", "said"),
    [
        ("admin", "prn::/", "READ_UPDATE: entry 1 of line 2, 'prn::*,READ_UPDATE', is the first that matches\n"),
        ("r", "prn::/scope:ab", "READ: entry 2 of line 3, 'prn::/scope:a*,READ', is the first that matches\n"),
        ("r", "prn::/", "NONE: entry 3 of line 3, 'prn::/(+,NONE', is not evaluated and ends the list\n"),
    ],
)
def test_what_a_user_may_do_and_why(cli: Cli, file: Path, user: str, resource: str, said: str) -> None:
    assert cli("security", "may", file, user, resource).out == said


def test_what_no_entry_matches_is_not_permitted(cli: Cli, file: Path) -> None:
    file.write_text(f"a:{HASH}:prn::/,READ")
    assert cli("security", "may", file, "a", "prn::/scope:a", "--json").document == {
        "user": "a",
        "resource": "prn::/scope:a",
        "permission": "NONE",
        "line": 1,
        "entry": None,
        "reason": "no entry of line 1 matches",
    }


def test_a_question_that_makes_no_sense_is_refused(cli: Cli, file: Path) -> None:
    assert cli("security", "may", file, "admin", "demo/s").code == 2
    missing = cli("security", "may", file, "lost", "prn::/")
    assert missing.code == 1 and "no user 'lost'" in missing.err
    assert cli("security", "may", file / "none", "a", "prn::/").code == 2
    file.write_text("\n")
    assert cli("security", "may", file, "a", "prn::/").code == 1


def test_a_password_from_stdin_is_hashed(cli: Cli) -> None:
    assert verify("1111:ä", cli("security", "hash", typed="1111:ä\nmore\n").out.strip())
    assert cli("security", "hash", typed="\n").code == 2


def test_a_user_is_written_as_pravega_reads_it(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "new"
    acl = ("--acl", "prn::/,READ;", "--acl", "prn::/scope:a,READ_UPDATE")
    assert cli("security", "set", file, "me", *acl, typed="secret\n").code == 0
    written = read_accounts(file.read_bytes())["me"]
    assert verify("secret", written.stored_hash) and written.acl_text == "prn::/,READ;prn::/scope:a,READ_UPDATE"
    assert file.stat().st_mode & 0o777 == 0o600 and [*tmp_path.glob(".*")] == []


def test_what_is_not_given_of_a_user_stays(cli: Cli, file: Path) -> None:
    before = file.read_text()
    assert cli("security", "set", file, "admin", "--keep-password", "--acl", "prn::/,READ").code == 0
    assert file.read_text() == before.replace("prn::*,READ_UPDATE;", "prn::/,READ")
    assert cli("security", "set", file, "admin", typed="new\n").code == 0
    admin = read_accounts(file.read_bytes())["admin"]
    assert verify("new", admin.stored_hash) and admin.acl_text == "prn::/,READ"
    assert cli("security", "set", file, "nobody", "--keep-password", "--acl", "prn::/,READ").code == 2


def test_a_password_that_is_given_beside_an_acl_counts(cli: Cli, file: Path) -> None:
    assert cli("security", "set", file, "admin", "--acl", "prn::*,READ", typed="newer\n").code == 0
    admin = read_accounts(file.read_bytes())["admin"]
    assert verify("newer", admin.stored_hash) and admin.acl_text == "prn::*,READ"
    without = cli("security", "set", file, "admin", "--acl", "prn::/,READ")
    assert without.code == 2 and "--keep-password" in without.err


def test_a_link_to_the_file_stays_one(cli: Cli, file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    assert cli("security", "set", link, "new", "--acl", "prn::/,READ", typed="x\n").code == 0
    assert link.is_symlink() and "new" in read_accounts(file.read_bytes())


@pytest.mark.parametrize("arguments", [("a:b",), ("me", "--acl", "*,READ"), ("me", "--acl", "prn::/,WRITE"), ("#me",)])
def test_what_would_do_nothing_is_not_written(cli: Cli, file: Path, arguments: tuple[str, ...]) -> None:
    before = file.read_bytes()
    found = cli("security", "set", file, *arguments, typed="x\n")
    assert found.code == 2 and "nothing was written" in found.err.lower() and file.read_bytes() == before


def test_what_does_nothing_is_listed(cli: Cli, file: Path) -> None:
    found = cli("security", "check", file, "--json")
    assert found.code == 1 and '"line": 3' in found.out and '"line": 4' in found.out
    assert "is not evaluated" in cli("security", "check", file).out
    file.write_text(f"a:{HASH}:prn::*,READ\n")
    assert cli("security", "check", file, "--json").document == []
