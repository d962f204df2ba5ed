"""The password file: which lines are accounts, and what is written into it."""

import pytest

from sluice.security.accounts import read_accounts, with_account
from sluice.security.resources import Permission
from sluice.security.watched import SecurityConfigError

FILE = b"""\
# the operators
admin:aa:prn::*,READ_UPDATE;

late:bb:prn::*,READ
"""


def test_reading_stops_at_the_first_empty_line() -> None:
    assert [*read_accounts(FILE)] == ["admin"]


def test_fields_are_split_at_the_first_two_colons_and_not_trimmed() -> None:
    found = read_accounts(b" a : b :prn::/scope:x,READ\r\nno colon\r\nbare:cc\r\n")
    assert [*found] == [" a ", "bare"]
    assert found[" a "].stored_hash == " b "
    assert found[" a "].acl.permission_on("prn::/scope:x") is Permission.READ
    assert found["bare"].acl.permission_on("prn::/scope:x") is Permission.NONE


def test_the_last_line_of_a_user_counts() -> None:
    assert read_accounts(b"a:1:x\nb:2\na:3:y")["a"].stored_hash == "3"


def test_a_line_ends_where_it_does_for_pravega() -> None:
    assert [*read_accounts("a:1\rb:2\nc\u2028d:3".encode())] == ["a", "b", "c\u2028d"]


def test_a_comment_that_is_not_utf_8_does_no_harm() -> None:
    assert [*read_accounts(b"# caf\xe9\na:1")] == ["a"]


@pytest.mark.parametrize("content", [b"", b"\n", b"# none\n", b"\na:b:c", b"nothing"])
def test_a_file_without_accounts_is_refused(content: bytes) -> None:
    with pytest.raises(SecurityConfigError, match="no account"):
        read_accounts(content)


def test_an_account_shows_no_hash() -> None:
    assert "aa" not in repr(read_accounts(FILE)["admin"])


def test_a_new_account_is_put_where_it_is_read() -> None:
    assert with_account(FILE, "new", "cc", "prn::/,READ") == FILE.replace(b"\n\nlate", b"\nnew:cc:prn::/,READ\n\nlate")
    assert with_account(b"", "new", "cc", "") == b"new:cc:\n"
    assert with_account(b"a:1", "new", "cc", "") == b"a:1\nnew:cc:\n"


def test_an_account_replaces_all_lines_of_its_user() -> None:
    assert with_account(b"a:1:x\nb:2:y\na:3:z\n", "a", "cc", "w") == b"a:cc:w\nb:2:y\n"


@pytest.mark.parametrize("user", ["", "a:b", "#a", "a\nb", "a\r"])
def test_what_would_be_read_as_something_else_is_not_written(user: str) -> None:
    with pytest.raises(ValueError, match="user"):
        with_account(FILE, user, "cc", "")
    with pytest.raises(ValueError, match="one line"):
        with_account(FILE, "a", "cc", "x\ny")
