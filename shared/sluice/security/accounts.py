"""The password file as Pravega reads it: `user:hash:acl`, one account a line (security 2.2).

Comment lines begin with `#`, reading stops at the first empty line, lines without a colon are ignored, an account
without an ACL may do nothing, of two lines for one user the last counts, and nothing is trimmed. Pure.
"""

import io
import re
from collections.abc import Mapping

import msgspec

from sluice.security.acl import Acl, entries_of
from sluice.security.watched import SecurityConfigError


class Account:
    """A user: the stored hash of the password, and what the user may do. `line` counts from 1."""

    def __init__(self, user: str, stored_hash: str, acl: str, line: int) -> None:
        self.user = user
        self.stored_hash = stored_hash
        self.acl_text = acl
        self.acl = Acl(entries_of(acl))
        self.line = line

    def __repr__(self) -> str:
        return f"Account({self.user!r}, line {self.line})"


class FileLine(msgspec.Struct, frozen=True):
    """A line that is an account, taken apart; `number` counts from 1."""

    number: int
    user: str
    stored_hash: str
    acl: str


def lines_of(content: bytes) -> list[str]:
    """The lines of a file, the unread ones too. What is not UTF-8 becomes characters that no caller can send."""
    return io.StringIO(content.decode(errors="surrogateescape"), newline=None).read().split("\n")


def account_lines(lines: list[str]) -> list[FileLine]:
    """The accounts in the lines that Pravega reads, each as often as it is there."""
    found = []
    for number, line in enumerate(lines, 1):
        if not line:
            break
        fields = line.split(":", 2)
        if line.startswith("#") or len(fields) < 2:
            continue
        found.append(FileLine(number, fields[0], fields[1], fields[2] if len(fields) > 2 else ""))
    return found


def read_accounts(content: bytes) -> Mapping[str, Account]:
    """The accounts of a password file by user. Raises SecurityConfigError for a file without any."""
    found = {
        line.user: Account(line.user, line.stored_hash, line.acl, line.number)
        for line in account_lines(lines_of(content))
    }
    if not found:
        raise SecurityConfigError("the password file has no account: a line user:hash:acl before its first empty line")
    return found


def with_account(content: bytes, user: str, stored_hash: str, acl: str) -> bytes:
    """The file with this account in place of the ones of its user, else after the last line that is read.

    Raises ValueError for what Pravega would read as something else.
    """
    if not user or user.startswith("#") or re.search(r"[:\r\n]", user):
        raise ValueError("a user has at least one character, no colon, and does not begin with #")
    if re.search(r"[\r\n]", acl):
        raise ValueError("an ACL is one line")
    lines = lines_of(content)
    own = [line.number - 1 for line in account_lines(lines) if line.user == user]
    read = lines.index("") if "" in lines else len(lines)
    at = own[0] if own else read
    kept = [line for number, line in enumerate(lines) if number not in own]
    kept.insert(at, f"{user}:{stored_hash}:{acl}")
    text = "\n".join(kept)
    return (text if text.endswith("\n") else text + "\n").encode(errors="surrogateescape")
