"""Access control lists: which resources a pattern matches, and which entry decides."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cpu import least_cpu_s

from sluice.security.acl import MAX_RESOURCE_CHARS, Acl, BadPatternError, compile_pattern, entries_of
from sluice.security.resources import Permission

ROOT = "prn::/"
SCOPE_A, SCOPE_AB, SCOPE_B = "prn::/scope:a", "prn::/scope:ab", "prn::/scope:b"
IN_A, IN_AB, IN_B = (f"{scope}/stream:s" for scope in (SCOPE_A, SCOPE_AB, SCOPE_B))
ALL = {ROOT, SCOPE_A, SCOPE_AB, SCOPE_B, IN_A, IN_AB, IN_B}


def acl_of(text: str) -> Acl:
    return Acl(entries_of(text))


@pytest.mark.parametrize(
    ("pattern", "granted"),
    [
        ("prn::*", ALL),
        ("prn::/*", ALL),
        ("prn::/", {ROOT}),
        ("prn::/.*", ALL - {ROOT}),
        ("prn::/scope:*", ALL - {ROOT}),
        ("prn::/scope:a", {SCOPE_A}),
        ("prn::/scope:a*", {SCOPE_A, IN_A, SCOPE_AB, IN_AB}),
        ("prn::/scope:a/*", {IN_A}),
        ("prn::/scope:*/stream:s", {IN_A, IN_AB, IN_B}),
        ("prn::/scope:.", {SCOPE_A, SCOPE_B}),
        ("prn::/scope:[bc]", {SCOPE_B}),
        ("prn::/scope:(a|b)", {SCOPE_A, SCOPE_B}),
        (r"prn::/(scope:[a]|\.)(b|/[rs].*)", {SCOPE_AB, IN_A}),
        ("prn::/scope:(a(b|)|x)/stream:*", {IN_A, IN_AB}),
        ("*", set()),
        ("/scope:a", set()),
        ("a/s", set()),
    ],
)
def test_what_a_pattern_grants(pattern: str, granted: set[str]) -> None:
    acl = acl_of(f"{pattern},READ")
    assert {one for one in ALL if acl.permission_on(one) is Permission.READ} == granted


def test_an_escaped_dot_is_a_dot() -> None:
    acl = acl_of(r"prn::/scope:a\.b,READ")
    assert acl.permission_on("prn::/scope:a.b") is Permission.READ
    assert acl.permission_on("prn::/scope:axb") is Permission.NONE


def test_the_first_entry_that_matches_decides_even_if_it_is_lower() -> None:
    acl = acl_of("prn::/scope:a,NONE;prn::/scope:a*,READ;prn::*,READ_UPDATE")
    found = [acl.permission_on(one) for one in (SCOPE_A, IN_A, ROOT)]
    assert found == [Permission.NONE, Permission.READ, Permission.READ_UPDATE]
    decision = acl.decide(SCOPE_A)
    assert decision.entry is not None and decision.entry.number == 1


def test_entries_that_pravega_ignores_are_ignored() -> None:
    acl = acl_of(
        " ; prn::/scope:a ,\tREAD ;x;prn::/scope:b,read;,READ;prn::/scope:b,READ,READ;prn::/scope:ab,READ_UPDATE,;"
    )
    found = [acl.permission_on(one) for one in (SCOPE_A, SCOPE_B, SCOPE_AB)]
    assert found == [Permission.READ, Permission.NONE, Permission.READ_UPDATE]
    decision = acl.decide(SCOPE_AB)
    assert decision.entry is not None and decision.entry.number == 7


@pytest.mark.parametrize(
    "pattern",
    [
        "prn::/scope:(a+)+b",
        "prn::/scope:a?",
        "prn::/a{2}",
        r"prn::/\w",
        "prn::/[z-a]",
        "prn::/[a*]",
        "prn::/(",
        "prn::/[^(a)]",
        r"prn::/\(a\)",
        r"prn::/\\(a|b)",
        "prn::/[[a]",
    ],
)
def test_what_is_not_evaluated_grants_nothing_from_there_on(pattern: str) -> None:
    with pytest.raises(BadPatternError):
        compile_pattern(pattern)
    acl = acl_of(f"prn::/scope:a,READ;{pattern},READ;prn::*,READ_UPDATE")
    assert acl.permission_on(SCOPE_A) is Permission.READ
    assert acl.permission_on(SCOPE_B) is Permission.NONE
    assert not acl.decide(SCOPE_B).evaluated


def test_too_many_alternatives_are_not_evaluated() -> None:
    with pytest.raises(BadPatternError):
        compile_pattern("prn::/" + "(a|b)" * 20)


def test_a_name_that_is_too_long_has_no_permission() -> None:
    acl = acl_of("prn::*,READ_UPDATE")
    longest = ROOT.ljust(MAX_RESOURCE_CHARS, "x")
    assert acl.permission_on(longest) is Permission.READ_UPDATE
    assert acl.permission_on(longest + "x") is Permission.NONE


def test_a_pattern_of_many_stars_takes_no_longer_than_a_glance() -> None:
    acl = acl_of(f"prn::/scope:{'a*' * 40}b,READ")

    def ask() -> None:
        assert acl.permission_on("prn::/scope:" + "a" * 4000) is Permission.NONE

    assert least_cpu_s([ask] * 3) < 0.5


PATTERNS = st.text("ab*./", max_size=10)


@given(PATTERNS, st.text("ab./\n", max_size=12))
def test_patterns_match_as_the_regular_expressions_of_pravega_do(pattern: str, resource: str) -> None:
    expected = re.fullmatch(pattern.replace("*", ".*"), resource)
    assert bool(compile_pattern(pattern).fullmatch(resource)) == bool(expected)
