"""How the journal fails."""


class JournalError(Exception):
    """The journal cannot serve now."""


class JournalUnavailableError(JournalError):
    """The log did not acknowledge, or did not answer, in time; what was appended may count or not."""


class PartitionFailedError(JournalError):
    """A record of the partition could not be decoded or applied; the partition stays stopped until that is mended."""


class MissingRecordsError(JournalError):
    """The follower was not given the records in between."""


class LostRecordsError(JournalError):
    """The journal no longer has what it had: it was made anew, or has lost its end."""
