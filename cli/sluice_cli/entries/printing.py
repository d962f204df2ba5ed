"""Entries of tables, for users and for programs."""

from typing import Any

from sluice.domain.segment import parse_segment_name
from sluice.pravega import TableEntry
from sluice_cli.entries.layout import Layout
from sluice_cli.events.printing import text_or_base64
from sluice_cli.units import segment_text


def document(layout: Layout, partition: str, entry: TableEntry) -> dict[str, Any]:
    """Partition, version, and key, secondary key and value, each with `text` if it is UTF-8, else `base64`."""
    key = layout.split(entry.key.key)
    return {
        "partition": segment_text(parse_segment_name(partition)[2]),
        "version": entry.key.version,
        "key": text_or_base64(key.primary),
        **({"secondary": text_or_base64(key.secondary)} if key.secondary else {}),
        "value": text_or_base64(entry.value),
    }


def line(layout: Layout, entry: TableEntry) -> bytes:
    """Key, secondary key if the table has one, and value, with tabs between them."""
    key = layout.split(entry.key.key)
    return b"\t".join(part for part in (key.primary, key.secondary) if part) + b"\t" + entry.value
