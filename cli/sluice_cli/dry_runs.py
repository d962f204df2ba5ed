"""What an operation would do, in numbers: the answer of the API to a dry run, for users."""

from typing import Any

from sluice_cli.output import Output
from sluice_cli.session import Session
from sluice_cli.units import show_size

_WORDS = {
    "segmentsCreated": "segments created",
    "segmentsSealed": "segments sealed",
    "segmentsDeleted": "segments deleted",
    "transactionsAborted": "transactions aborted",
    "transactionsCommitted": "transactions committed before",
    "readerGroupsBehind": "reader groups behind",
    "waitsFor": "waits for",
}


def dry_run(session: Session, method: str, path: str, body: Any = None, **more: Any) -> None:
    """Print what the operation would do. Raises RefusedError if the call itself is wrong."""
    session.show(session.rest.change(method, path, body, dryRun=True, **more).body, _draw)


def _draw(out: Output, found: dict[str, Any]) -> None:
    refused, effects = found.get("refused"), found["effects"]
    if refused is not None:
        out.text(f"it would be refused, {refused['status']}: {refused['detail']}")
        return
    dropped = effects.get("bytesDropped")
    fields = [(words, effects.get(name)) for name, words in _WORDS.items()]
    shown = [*fields, ("dropped", show_size(dropped) if dropped is not None else None)]
    if all(value is None for _, value in shown):
        out.text("it changes nothing that can be counted")
    out.fields(shown)
