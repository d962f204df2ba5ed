"""The end of a stream's deletion, which takes along what is left of its transactions."""

from sluice.domain.decision import Decision, Reader
from sluice.domain.ids import StreamId
from sluice.domain.stream.decide import delete_with_mark
from sluice.domain.stream.state import find_stream
from sluice.domain.transaction.batch import find_commits, record_deleted
from sluice.domain.workflow import last_reply, undone_creation


def finish_delete(reader: Reader, id: StreamId) -> Decision:
    """What commits have skipped is deleted together with the stream's own segments."""
    commits = find_commits(reader, id)
    skipped = record_deleted(reader, id, commits.batches) if commits is not None else ()
    deleted = delete_with_mark(reader, id, undone_creation(find_stream(reader, id)))
    return Decision((*skipped, *deleted), last_reply(reader.get(id.aggregate)))
