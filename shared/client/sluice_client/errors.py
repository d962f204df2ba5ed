"""What can go wrong for a user of the client; the exceptions' docstrings are their messages."""


class ClientError(Exception):
    """The client could not carry out the call."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"{type(self).__doc__} [{detail}]")
        self.detail = detail


class Unavailable(ClientError):
    """Controller or segment store did not answer in time; whether the request had an effect is not known."""


class NotSent(Unavailable):
    """Too many calls came before this one, or for too long: it was not sent and has no effect."""


class ClientClosed(ClientError):
    """The client was closed."""


class Refused(ClientError):
    """Controller or segment store will not do this."""


class AccessRefused(Refused):
    """The controller does not know who calls, or that caller may not do this."""


class ScopeMissing(ClientError):
    """The scope does not exist."""


class ScopeNotEmpty(ClientError):
    """The scope has streams, reader groups or tables."""


class StreamMissing(ClientError):
    """The stream does not exist, or not any more."""


class StreamSealed(ClientError):
    """The stream is sealed: nothing can be appended."""


class StreamNotSealed(ClientError):
    """The stream must be sealed first."""


class NotASingleSegment(ClientError):
    """A revisioned stream has exactly one segment, and this stream has not."""


class TransactionEnded(ClientError):
    """The transaction is not open any more."""


class EventMissing(ClientError):
    """The event was truncated away or deleted, or there never was one."""


class EntryTooLarge(ClientError):
    """The entry, or event, is larger than it may be."""


class EntryMalformed(ClientError):
    """The stream holds bytes that are not an entry, or not one of this kind: another program writes to it."""


class RevisionTruncated(ClientError):
    """What lies at the revision was truncated away."""

    def __init__(self, detail: str, head_offset: int) -> None:
        super().__init__(detail)
        self.head_offset = head_offset
        """Where the stream begins, in bytes."""


class RevisionAhead(ClientError):
    """The revision lies behind the end of the stream: it belongs to an earlier stream of this name."""


class StateLost(ClientError):
    """The stream was truncated behind the last state in it, by a retention policy or by hand."""


class Contended(ClientError):
    """Others changed the stream at every attempt."""
