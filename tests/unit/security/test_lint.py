"""What in a password file is worth a warning."""

import pytest

from sluice.security.lint import lint_accounts, lint_acl
from sluice.security.passwords import hash_password

HASH = hash_password("x", bytes(32))


def problems(acl: str) -> list[str]:
    return [problem for _, problem in lint_acl(acl)]


@pytest.mark.parametrize(
    "acl",
    [
        "",
        "prn::*,READ_UPDATE;",
        "prn::/,READ;prn::/scope:s,READ;prn::/scope:s/stream:a,READ;prn::/scope:s/reader-group:g,READ",
        "prn::/scope:*/stream:_RG*,READ;prn::/scope:*,READ",
        "prn::/scope:s,NONE;prn::/.*,READ;prn::/,READ",
        r"prn::/scope:a\.b/key-value-table:[tu],READ_UPDATE",
        "prn::/scope:a*/stream:x,READ;prn::/scope:*a/stream:x,READ",
        "prn::/scope:*.,READ;prn::/scope:*,READ",
    ],
)
def test_a_usual_list_is_without_a_warning(acl: str) -> None:
    assert problems(acl) == []


@pytest.mark.parametrize(
    ("acl", "problem"),
    [
        ("prn::/scope:a", "one comma"),
        ("prn::/scope:a,READ,x", "one comma"),
        ("prn::/scope:a,WRITE", "'WRITE' is no permission"),
        ("*,READ_UPDATE", "begin with prn::"),
        ("/scope:a,READ", "begin with prn::"),
        ("prn::scope:a,READ", "no resource has this form"),
        ("prn::/scope:a/streams:b,READ", "no resource has this form"),
        ("prn::/scope:a/stream:b/c,READ", "no resource has this form"),
        ("prn::/scope:,READ", "no resource has this form"),
        ("prn::/scope:my.scope,READ", r"\. is a dot"),
        ("prn::/scope:(a+)+,READ;prn::*,READ", "not evaluated"),
        ("prn::*,READ;prn::/scope:a,NONE", "entry 1 'prn::*,READ' matches all"),
        ("prn::/scope:*,READ;prn::/scope:a*/stream:*b*,READ", "entry 1"),
        ("prn::/*,READ;prn::*,NONE", "entry 1"),
        ("prn::/scope:a,READ;x,READ;prn::/scope:a,READ_UPDATE", "begin with"),
    ],
)
def test_what_does_nothing_is_named(acl: str, problem: str) -> None:
    assert problem in problems(acl)[0]


def test_a_warning_names_line_user_and_entry() -> None:
    content = f"# c\na:{HASH}:prn::*,READ;prn::/scope:s,NONE\n".encode()
    (found,) = lint_accounts(content)
    assert str(found).startswith("line 2, user 'a', entry 2 'prn::/scope:s,NONE': it never decides")


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (f"a:{HASH}:\nnothing\n", 2, "no colon"),
        (f"a:{HASH}:\n\n# c\nb:{HASH}:\n", 2, "line 3 does not count"),
        (f"a:{HASH}:\na:{HASH}:\n", 1, "line 2 counts instead"),
        (f"a: {HASH}:\n", 1, "no password will do"),
        (f"a :{HASH}:\n", 1, "blanks"),
        (f"a\udce9:{HASH}:\n", 1, "not UTF-8"),
    ],
)
def test_a_line_that_does_nothing_is_named(content: str, line: int, problem: str) -> None:
    (found,) = lint_accounts(content.encode(errors="surrogateescape"))
    assert found.line == line and problem in found.problem


def test_a_hash_in_the_wrong_place_is_not_shown() -> None:
    found = lint_accounts(f"a::{HASH}:prn::*,READ\n".encode())
    assert found and not any(HASH[:40] in str(one) for one in found)
