"""What commands print: tables for users or JSON for programs on stdout, progress and errors on stderr.

Rich is imported when something is drawn, so that help and JSON come at once.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluice.lookback.progress import Advance

WIDE = 400
"""Columns where stdout is no terminal: nothing is cut off or wrapped for a screen that is not there."""


def encoded(document: Any, *, indent: bool) -> str:
    """JSON; `indent` for a document, one line without."""
    import msgspec

    text = msgspec.json.encode(document)
    return (msgspec.json.format(text, indent=2) if indent else text).decode()


def harmless(text: str) -> str:
    """The text; `\\x1b` and the like for what is no character that can be seen: others write tags, names and errors."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\t\n" else ascii(c)[1:-1] for c in text)


class Output:
    """`json` prints nothing but JSON on stdout."""

    def __init__(self, *, json: bool) -> None:
        self.json = json

    def document(self, document: Any) -> None:
        """The one JSON document of a command."""
        sys.stdout.write(encoded(document, indent=True) + "\n")

    def line(self, document: Any) -> None:
        """One of many JSON objects, out at once."""
        sys.stdout.write(encoded(document, indent=False) + "\n")
        sys.stdout.flush()

    def text(self, text: str, style: str = "") -> None:
        """A line for users."""
        from rich.text import Text

        self._console().print(Text(harmless(text), style=style), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
        """A table for users, or a sentence if there are no rows; `>name` is a column of numbers."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(
                Text(column.lstrip(">")), justify="right" if column.startswith(">") else "left", overflow="fold"
            )
        for row in rows:
            table.add_row(*(Text("" if cell is None else harmless(str(cell))) for cell in row))
        if table.row_count:
            self._console().print(table)
        else:
            self.text(empty)

    def fields(self, fields: Iterable[tuple[str, object]]) -> None:
        """Names and values of one item; empty values are left out."""
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in fields:
            if value is not None and value != "":
                grid.add_row(Text(harmless(name), style="bold"), Text(harmless(str(value))))
        self._console().print(grid)

    @contextmanager
    def progress(self, title: str, total: int | None) -> Iterator["Advance"]:
        """A bar on stderr while something long runs, if that is a terminal; call what it gives with steps done."""
        if not sys.stderr.isatty():
            yield lambda _steps: None
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task(title, total=total)
            yield lambda steps: bars.update(task, advance=steps)

    def _console(self) -> Any:
        from rich.console import Console

        width = None if sys.stdout.isatty() else WIDE
        return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)
