"""The table of errors: complete, without contradiction, and as the original controller decides (wire protocol 8.1)."""

from typing import Any

import pytest

from sluice.pravega import errors
from sluice.pravega.errors import RULES, check, rule_for
from sluice.pravega.failure import Failure
from sluice.pravega.wire import appends, hello, others, refusals, segments, tables
from sluice.pravega.wire.command import LAYOUTS, Command

REQUESTS = {rule.request for rule in RULES if rule.request is not None}
WITHOUT_RULES = (hello.__name__, others.__name__)


def example(command: type[Command], **fields: Any) -> Command:
    """A command of a type, with any values."""
    values = {name: fields.get(name, 1 if wire.name.startswith("i") else "") for name, wire in LAYOUTS[command].fields}
    return command(**values)


def test_every_command_is_a_request_or_an_answer() -> None:
    answers = {rule.answer for rule in RULES}
    assert {command for command in LAYOUTS if command not in REQUESTS | answers} == {
        command for command in LAYOUTS if command.__module__ in WITHOUT_RULES
    }


def test_no_two_rules_are_about_the_same() -> None:
    pairs = [(rule.request, rule.answer, rule.code) for rule in RULES]
    assert len(pairs) == len(set(pairs))


def test_every_failure_has_a_rule() -> None:
    assert {rule.answer for rule in RULES if isinstance(rule.answer, Failure)} == set(Failure)


def test_every_error_says_what_it_means_and_whether_another_attempt_makes_sense() -> None:
    for error in {rule.error for rule in RULES if rule.error is not None}:
        assert error.__doc__
        assert issubclass(error, errors.TryLater) != issubclass(error, errors.Permanent)


@pytest.mark.parametrize("request_type", sorted(REQUESTS, key=str))
def test_every_pair_succeeds_or_raises_what_the_table_says(request_type: type[Command]) -> None:
    request = example(request_type)
    for answer in LAYOUTS:
        reply = example(answer, error_code=0)
        error = rule_for(request_type, reply).error
        if error is None:
            check(request, reply, "s/t/0", "h:1")
        else:
            with pytest.raises(error, match="s/t/0 at h:1") as caught:
                check(request, reply, "s/t/0", "h:1")
            assert caught.value.reply is reply


def test_a_reply_to_another_request_is_unexpected() -> None:
    assert rule_for(segments.SealSegment, example(segments.SegmentDeleted)).error is errors.UnexpectedReply


ALREADY = {
    (segments.CreateSegment, refusals.SegmentAlreadyExists),
    (tables.CreateTableSegment, refusals.SegmentAlreadyExists),
    (segments.DeleteSegment, refusals.NoSuchSegment),
    (tables.DeleteTableSegment, refusals.NoSuchSegment),
    (segments.SealSegment, refusals.SegmentIsSealed),
    (segments.TruncateSegment, refusals.SegmentIsTruncated),
    (tables.RemoveTableKeys, refusals.TableKeyDoesNotExist),
    (appends.ReadSegment, refusals.SegmentIsSealed),
}


def test_one_reply_and_exactly_these_refusals_count_as_success() -> None:
    done = {(rule.request, rule.answer) for rule in RULES if rule.error is None}
    assert done >= ALREADY
    assert sorted(str(request) for request, _ in done - ALREADY) == sorted(map(str, REQUESTS))


def test_an_expired_token_is_worth_another_try_and_a_wrong_one_is_not() -> None:
    request = example(segments.SealSegment)
    with pytest.raises(errors.TryLater):
        check(request, refusals.AuthTokenCheckFailed(1, "", 1), "s/t/0")
    for code in (0, -1):
        with pytest.raises(errors.AccessDenied):
            check(request, refusals.AuthTokenCheckFailed(1, "", code), "s/t/0")


def test_an_error_says_what_where_and_why() -> None:
    with pytest.raises(errors.RouteStale) as caught:
        check(example(segments.SealSegment), Failure.TIMED_OUT, "s/t/0", "h:1", "detail")
    assert str(caught.value) == (
        "The segment store could not be reached or does not have the container: try again where the map says by then. "
        "[SealSegment s/t/0 at h:1: the call's time was up, detail]"
    )
    assert caught.value.reply is None
