"""What one process came to, for people and for programs.

As JSON: `{"job", "kind", "stream", "node", "seconds", "records", "bytes", "recordsPerS", "bytesPerS", "skipped",
"unkeyed", "finished", "stoppedBy", "sources": [{"source", "records", "bytes", "skipped"}], "allNodes": {"records",
"bytes", "skipped", "unkeyed"}, "missed", "refused", "problems"}`. All but `allNodes` is about this process.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from distributed_ingest.job import Job
from distributed_ingest.tally import Counts, Tally
from sluice_cli.output import Output
from sluice_cli.units import show_size

_ROWS = 20


@dataclass(frozen=True)
class Summary:
    """`finished`: `--once` reached its end; `stopped_by`: the signal that ended the process, empty for none.

    `missed`: what `--once` has given up, each with the reason; `refused`: why the stream takes nothing any more.
    """

    job: Job
    node: str
    seconds: float
    tally: Tally
    all_nodes: Counts
    finished: bool
    stopped_by: str
    missed: tuple[str, ...] = ()
    refused: str = ""

    def document(self) -> dict[str, Any]:
        """Return the summary as JSON."""
        total, seconds = self.tally.total, max(self.seconds, 1e-3)
        return {
            "job": self.job.name,
            "kind": self.job.definition.kind,
            "stream": self.job.definition.stream,
            "node": self.node,
            "seconds": round(self.seconds, 3),
            "records": total.records,
            "bytes": total.bytes,
            "recordsPerS": round(total.records / seconds, 1),
            "bytesPerS": round(total.bytes / seconds, 1),
            "skipped": total.skipped,
            "unkeyed": total.unkeyed,
            "finished": self.finished,
            "stoppedBy": self.stopped_by or None,
            "sources": [
                {"source": origin, "records": counts.records, "bytes": counts.bytes, "skipped": counts.skipped}
                for origin, counts in self._by_size()
            ],
            "allNodes": msgspec.to_builtins(self.all_nodes),
            "missed": list(self.missed),
            "refused": self.refused or None,
            "problems": list(self.tally.problems),
        }

    def draw(self, out: Output, _document: Any) -> None:
        """Print the summary for people."""
        total, seconds = self.tally.total, max(self.seconds, 1e-3)
        by_size = self._by_size()
        if len(by_size) > 1:
            rows = by_size[:_ROWS]
            rest = by_size[_ROWS:]
            if rest:
                summed = sum((counts for _, counts in rest), start=Counts())
                rows.append((f"and {len(rest)} more", summed))
            out.table(
                ("source", ">records", ">bytes", ">skipped"),
                [(origin, f"{c.records:,}", show_size(c.bytes), c.skipped or "") for origin, c in rows],
                empty="",
            )
        ending = "everything that was there is in the stream" if self.finished else "stopped; the same command goes on"
        if self.refused:
            ending = "the stream takes nothing any more"
        elif self.missed:
            ending = "not everything was read; the same command goes on"
        out.fields(
            [
                ("job", self.job.name),
                ("stream", self.job.definition.stream),
                ("written", f"{total.text()}, in {self.seconds:.1f} s"),
                ("rate", f"{total.records / seconds:,.0f} records/s, {show_size(round(total.bytes / seconds))}/s"),
                ("all nodes", f"{self.all_nodes.text()}, in all runs"),
                ("without key", total.unkeyed or None),
                ("LEFT OUT", f"{total.skipped:,}, see above" if total.skipped else None),
                ("end", ending),
            ]
        )

    def _by_size(self) -> list[tuple[str, Counts]]:
        return sorted(self.tally.by_origin.items(), key=lambda each: (-each[1].bytes, each[0]))
