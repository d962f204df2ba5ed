"""The one table that says what every answer of a segment store means for the caller.

Each pair of a request and an answer (a reply, or a failure to get one) has one rule: done, or an error, which says by
its class whether another attempt makes sense: a TryLater or a Permanent. The replies that count as success are those
the original controller accepts (segment-store-wire-protocol 8.1, 4.1). `RULES` is data, which tests enumerate. Pure
functions; the exceptions' docstrings are their messages.
"""

import msgspec

from sluice.pravega.failure import Failure
from sluice.pravega.wire import appends, refusals, segments, tables
from sluice.pravega.wire.command import Command


class SegmentStoreError(Exception):
    """The segment store did not carry out the request."""

    def __init__(self, operation: str, segment: str, host: str, detail: str = "", reply: Command | None = None) -> None:
        where = f"{operation} {segment}" + (f" at {host}" if host else "")
        super().__init__(f"{type(self).__doc__} [{where}{': ' if detail else ''}{detail}]")
        self.operation = operation
        self.segment = segment
        self.host = host
        self.detail = detail
        self.reply = reply
        """What the store answered, None if it did not."""


class TryLater(SegmentStoreError):
    """The segment store cannot do it at the moment: try again after a while."""


class RouteStale(TryLater):
    """The segment store could not be reached or does not have the container: try again where the map says by then."""


class ConnectionClosed(TryLater):
    """The segment store closed the connection instead of answering: it is not ready, or never takes this request."""


class TokenExpired(TryLater):
    """The segment store finds our delegation token expired: do the clocks agree?"""


class Permanent(SegmentStoreError):
    """The segment store will never do this."""


class SegmentMissing(Permanent):
    """The segment does not exist."""


class SegmentSealed(Permanent):
    """The segment is sealed."""


class SegmentTruncated(Permanent):
    """The segment begins behind the offset; `reply.start_offset` says where."""


class LengthDiffers(Permanent):
    """The segment does not have the length that the append expects: another writer appended."""


class TableNotEmpty(Permanent):
    """The table has entries."""


class KeyMissing(Permanent):
    """The table does not have a key of which a version was demanded."""


class KeyVersionDiffers(Permanent):
    """A key of the table does not have the version demanded."""


class AccessDenied(Permanent):
    """The segment store refuses our delegation token: is the signing key the same?"""


class Unsupported(Permanent):
    """The segment store cannot do this kind of operation."""


class IllegalRequest(Permanent):
    """The request is not a legal one."""


class UnexpectedReply(Permanent):
    """The segment store gave an answer that does not belong to the request."""


class Rule(msgspec.Struct, frozen=True):
    """What one answer to one request means: `error`, or that it is done.

    `request` None is any request, `code` a value of the reply's error_code.
    """

    request: type[Command] | None
    answer: type[Command] | Failure
    error: type[SegmentStoreError] | None = None
    code: int | None = None


_Meaning = tuple[type[Command], type[SegmentStoreError] | None]


def _may(request: type[Command], success: type[Command], *others: _Meaning) -> list[Rule]:
    return [Rule(request, success), *(Rule(request, answer, error) for answer, error in others)]


_ALREADY = None
"""No error: what the request is to bring about is so already."""
_MISSING = (refusals.NoSuchSegment, SegmentMissing)
_GONE = (refusals.NoSuchSegment, _ALREADY)
_SEALED = (refusals.SegmentIsSealed, SegmentSealed)
_EXISTS = (refusals.SegmentAlreadyExists, _ALREADY)
_NO_KEY = (refusals.TableKeyDoesNotExist, KeyMissing)
_BAD_VERSION = (refusals.TableKeyBadVersion, KeyVersionDiffers)
_APPEND_REFUSALS = (_MISSING, _SEALED, (appends.ConditionalCheckFailed, LengthDiffers))

RULES: tuple[Rule, ...] = (
    *_may(segments.CreateSegment, segments.SegmentCreated, _EXISTS),
    *_may(segments.UpdateSegmentPolicy, segments.SegmentPolicyUpdated, _MISSING, _SEALED),
    *_may(segments.SealSegment, segments.SegmentSealed, (refusals.SegmentIsSealed, _ALREADY), _MISSING),
    *_may(segments.TruncateSegment, segments.SegmentTruncated, (refusals.SegmentIsTruncated, _ALREADY), _MISSING),
    *_may(segments.DeleteSegment, segments.SegmentDeleted, _GONE),
    *_may(segments.CreateTransientSegment, segments.SegmentCreated),
    # The attribute is that of the writer's last number: the next set-up says what has become of it.
    *_may(
        segments.MergeSegments, segments.SegmentsMerged, _MISSING, _SEALED, (segments.SegmentAttributeUpdated, TryLater)
    ),
    *_may(segments.MergeSegmentsBatch, segments.SegmentsBatchMerged, _MISSING, _SEALED),
    *_may(segments.GetStreamSegmentInfo, segments.StreamSegmentInfo, _MISSING),
    *_may(segments.GetSegmentAttribute, segments.SegmentAttribute, _MISSING),
    *_may(segments.UpdateSegmentAttribute, segments.SegmentAttributeUpdated, _MISSING, _SEALED),
    # A read that waited at the tail ends with SegmentIsSealed: there is nothing more to read.
    *_may(
        appends.ReadSegment,
        appends.SegmentRead,
        _MISSING,
        (refusals.SegmentIsSealed, _ALREADY),
        (refusals.SegmentIsTruncated, SegmentTruncated),
    ),
    *_may(appends.SetupAppend, appends.AppendSetup, _MISSING, _SEALED),
    *_may(appends.AppendBlockEnd, appends.DataAppended, *_APPEND_REFUSALS),
    *_may(appends.ConditionalAppend, appends.DataAppended, *_APPEND_REFUSALS),
    *_may(tables.CreateTableSegment, segments.SegmentCreated, _EXISTS),
    *_may(tables.DeleteTableSegment, segments.SegmentDeleted, _GONE, (refusals.TableSegmentNotEmpty, TableNotEmpty)),
    *_may(tables.GetTableSegmentInfo, tables.TableSegmentInfo, _MISSING),
    *_may(tables.UpdateTableEntries, tables.TableEntriesUpdated, _MISSING, _SEALED, _NO_KEY, _BAD_VERSION),
    *_may(
        tables.RemoveTableKeys,
        tables.TableKeysRemoved,
        _MISSING,
        _SEALED,
        (refusals.TableKeyDoesNotExist, _ALREADY),
        _BAD_VERSION,
    ),
    *_may(tables.ReadTable, tables.TableRead, _MISSING),
    *_may(tables.ReadTableEntries, tables.TableEntriesRead, _MISSING),
    Rule(None, refusals.WrongHost, RouteStale),
    Rule(None, refusals.InvalidEventNumber, TryLater),
    Rule(None, refusals.AuthTokenCheckFailed, TokenExpired, refusals.TOKEN_EXPIRED),
    Rule(None, refusals.AuthTokenCheckFailed, AccessDenied),
    Rule(None, refusals.OperationUnsupported, Unsupported),
    Rule(None, refusals.ErrorMessage, IllegalRequest),
    Rule(None, Failure.CONNECT_FAILED, RouteStale),
    Rule(None, Failure.LOST, RouteStale),
    Rule(None, Failure.SILENT, RouteStale),
    Rule(None, Failure.TIMED_OUT, RouteStale),
    Rule(None, Failure.NO_ROUTE, TryLater),
    # A store closes the connection when a container is not running yet, and when it has no reply for an error (4.1).
    Rule(None, Failure.CLOSED_BY_PEER, ConnectionClosed),
    Rule(None, Failure.MALFORMED, TryLater),
    Rule(None, Failure.INCOMPATIBLE, TryLater),
    Rule(None, Failure.OVERLOADED, TryLater),
    Rule(None, Failure.WRITER_BUSY, TryLater),
    Rule(None, Failure.CLOSED, TryLater),
    Rule(None, Failure.UNENCODABLE, IllegalRequest),
)
"""Every rule; what no rule names is an UnexpectedReply."""

_BY_PAIR = {(rule.request, rule.answer, rule.code): rule for rule in RULES}


def rule_for(request: type[Command], answer: Command | Failure) -> Rule:
    """The rule for an answer to a request of this type."""
    kind = answer if isinstance(answer, Failure) else type(answer)
    code = getattr(answer, "error_code", None)
    for key in ((request, kind, None), (None, kind, code), (None, kind, None)):
        rule = _BY_PAIR.get(key)
        if rule is not None:
            return rule
    return Rule(request, kind, UnexpectedReply)


def check(request: Command, answer: Command | Failure, segment: str, host: object = "", detail: str = "") -> None:
    """Returns if the answer means done or already done, else raises the SegmentStoreError that the table names."""
    rule = rule_for(type(request), answer)
    if rule.error is None:
        return
    if isinstance(answer, Failure):
        text = f"{answer.value}, {detail}" if detail else answer.value
        raise rule.error(type(request).__name__, segment, f"{host}", text)
    raise rule.error(type(request).__name__, segment, f"{host}", repr(answer), answer)
