"""What in a password file does nothing, or something else than its author means (security 9.4). Pure."""

import itertools
import re
from collections.abc import Iterator

import msgspec

from sluice.security import acl
from sluice.security.accounts import account_lines, lines_of
from sluice.security.passwords import MalformedHashError, parse_hash
from sluice.security.resources import (
    ROOT,
    reader_group_resource,
    scope_resource,
    stream_resource,
    table_resource,
)

_NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
_NAME = "\0"
"""Stands for a name in the form of a resource."""

_FORMS = (
    ROOT,
    scope_resource(_NAME),
    stream_resource(_NAME, _NAME),
    reader_group_resource(_NAME, _NAME),
    table_resource(_NAME, _NAME),
    # What Sluice has of its own, about no scope.
    f"{ROOT}sluice:{_NAME}",
)
_UNESCAPED_DOT = re.compile(r"(?<=[\w-])\.(?=[\w-])")
_MAX_STARS = 5
_MAX_COMPARED = 100
_HEX = re.compile(r"[0-9a-fA-F]{32,}")
"""A hash that has slipped into an ACL is not shown."""


class Finding(msgspec.Struct, frozen=True):
    """What is wrong in a line, in words; `entry` is the number and the text of an ACL's entry, empty for none."""

    line: int
    user: str
    entry: str
    problem: str

    def __str__(self) -> str:
        where = f"line {self.line}, user {self.user!r}" if self.user else f"line {self.line}"
        return f"{where}{f', entry {self.entry}' if self.entry else ''}: {self.problem}"


def lint_accounts(content: bytes) -> list[Finding]:
    """Everything worth a warning in a password file."""
    return sorted(itertools.chain(_lint_lines(lines_of(content)), _lint_accounts(content)), key=lambda one: one.line)


def lint_acl(text: str) -> Iterator[tuple[str, str]]:
    """The entries worth a warning, each with its number and text, and what is wrong."""
    before: list[tuple[acl.Entry, re.Pattern[str]]] = []
    for number, raw in enumerate(acl.split_entries(text), 1):
        named = f"{number} {_HEX.sub('***', raw.strip())!r}"
        try:
            entry = acl.parse_entry(number, raw)
        except acl.BadEntryError as error:
            yield named, f"it is ignored: {error}"
            continue
        if not entry.pattern.startswith("prn"):
            yield named, "it never matches: resources begin with prn::"
            continue
        try:
            matching, forms = acl.compile_pattern(entry.pattern), acl.alternatives(entry.pattern)
        except acl.BadPatternError:
            yield named, "its pattern is not evaluated: it and all entries after it grant nothing"
            return
        if not any(_meets(atoms, form) for atoms in forms for form in _FORMS):
            yield named, "it never matches: no resource has this form"
            continue
        for earlier, wider in before[:_MAX_COMPARED]:
            if all(_covers(wider, atoms) for atoms in forms):
                yield named, f"it never decides: entry {earlier.number} {earlier.text!r} matches all that it does"
                break
        if _UNESCAPED_DOT.search(entry.pattern):
            yield named, r"a dot stands for any character; \. is a dot"
        before.append((entry, matching))


def _lint_lines(lines: list[str]) -> Iterator[Finding]:
    for number, line in enumerate(lines, 1):
        if not line:
            unread = next((later for later, text in enumerate(lines[number:], number + 1) if text), None)
            if unread is not None:
                yield Finding(number, "", "", f"reading stops at this empty line: line {unread} does not count")
            return
        if not line.startswith("#") and ":" not in line:
            yield Finding(number, "", "", "it is ignored: it has no colon")


def _lint_accounts(content: bytes) -> Iterator[Finding]:
    accounts = account_lines(lines_of(content))
    last = {account.user: account.number for account in accounts}
    for account in accounts:
        user, number = account.user, account.number
        if last[user] != number:
            yield Finding(number, user, "", f"line {last[user]} counts instead: it names the same user")
            continue
        if user != user.strip() or not user:
            yield Finding(number, user, "", "the user's name has blanks around it, which belong to it, or is empty")
        if not user.isprintable():
            yield Finding(number, user, "", "the user's name has characters that cannot be typed or are not UTF-8")
        try:
            parse_hash(account.stored_hash)
        except MalformedHashError:
            yield Finding(number, user, "", "the stored hash is malformed: no password will do")
        for entry, problem in lint_acl(account.acl):
            yield Finding(number, user, entry, problem)


def _meets(atoms: acl.Atoms, form: str) -> bool:
    """Whether the pattern matches any resource of a form, whose names have one character or more."""
    wanted: list[tuple[str, bool]] = []
    for char in form:
        wanted += [(_NAME_CHARS, False), (_NAME_CHARS, True)] if char == _NAME else [(char, False)]
    reached = _skipping({0}, wanted)
    for atom in atoms:
        if not reached:
            return False
        if atom == "*":
            reached = set(range(min(reached), len(wanted) + 1))
            continue
        matching = acl.compile_pattern(atom)
        stepped: set[int] = set()
        for at in reached - {len(wanted)}:
            chars, repeated = wanted[at]
            if any(map(matching.fullmatch, chars)):
                stepped.add(at if repeated else at + 1)
        reached = _skipping(stepped, wanted)
    return len(wanted) in reached


def _skipping(reached: set[int], wanted: list[tuple[str, bool]]) -> set[int]:
    """What is also reached because a character may be there any number of times."""
    return reached | {at + 1 for at in reached if at < len(wanted) and wanted[at][1]}


def _covers(wider: re.Pattern[str], atoms: acl.Atoms) -> bool:
    """Whether everything that a pattern matches is matched by a wider one, as far as a few examples show.

    Each star is tried as nothing and as more characters than a wider pattern without a star could take.
    """
    # All resources begin so.
    atoms = tuple("prn::/*") if atoms == tuple("prn::*") else atoms
    long = "\0" * (len(wider.pattern) + 1)
    stars = atoms.count("*")
    ways = itertools.product(("", long), repeat=stars) if stars <= _MAX_STARS else (("",) * stars, (long,) * stars)
    return all(wider.fullmatch(_example(atoms, iter(way))) for way in ways)


def _example(atoms: acl.Atoms, stars: Iterator[str]) -> str:
    return "".join(
        next(stars) if atom == "*" else "\0" if atom == "." or atom[0] == "[" else atom.removeprefix("\\")
        for atom in atoms
    )
