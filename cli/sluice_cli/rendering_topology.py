"""How the topology of a stream is shown: a row for each segment that it has or had."""

from collections.abc import Iterator
from typing import Any

from sluice.lookback.times import show_time
from sluice_cli.output import Output
from sluice_cli.rendering import cut_text
from sluice_cli.units import segment_text, show_size

_COLUMNS = ("segment", ">from", ">to", ">epoch", "born", ">until epoch", "sealed", ">bytes", "")
_FLAGS = ((1, "truncated"), (2, "being created"), (4, "duplicate"), (8, "sample"))


def draw_topology(out: Output, found: dict[str, Any]) -> None:
    """The segments in the order of their ids, and what is true of all."""
    out.table(_COLUMNS, _rows(found["segments"]), empty="it had no segments then")
    target = found.get("target")
    out.fields(
        (
            ("state", found["state"]),
            ("head", cut_text(found["head"])),
            ("epochs", len(found["epochs"]["epoch"])),
            ("target", f"{target['rate']} {target['type']} a second and segment" if target else ""),
            ("shown", "samples, for there are too many; --from and --to narrow them" if found["merged"] else ""),
        )
    )


def _rows(columns: dict[str, list[Any]]) -> Iterator[tuple[object, ...]]:
    names = ("id", "low", "high", "bornEpoch", "born", "endEpoch", "end", "bytes", "flags")
    for id, low, high, born_epoch, born, end_epoch, end, size, flags in zip(*(columns[n] for n in names), strict=True):
        yield (
            segment_text(id),
            low,
            high,
            born_epoch,
            show_time(born),
            end_epoch if end_epoch >= 0 else "",
            show_time(end) if end else "",
            show_size(size) if size >= 0 else "",
            ", ".join(text for flag, text in _FLAGS if flags & flag),
        )
