"""The commands of `sluice stream` on segments: which there are, where they are, what replaces them."""

import time
from typing import Annotated, Any

import typer

from sluice_cli.arguments import Begin, DryRun, End, Limit, Stream
from sluice_cli.command import command
from sluice_cli.commands.stream import path
from sluice_cli.session import Session

app = typer.Typer()

WAIT_S = 60.0
LOOK_S = 0.25
MAX_SEGMENTS = 10_000
"""Segments of a stream."""

_Segment = Annotated[str, typer.Argument(metavar="SEGMENT", help="Its id, or its name 0.#epoch.0.", show_default=False)]


@command(app, "scale")
def scale(
    session: Session,
    stream: Stream,
    to: Annotated[
        int | None,
        typer.Option(
            "--to", min=1, max=MAX_SEGMENTS, metavar="N", help="Have so many segments, each of the same share."
        ),
    ] = None,
    seal: Annotated[
        list[str] | None, typer.Option("--seal", metavar="SEGMENT", help="Which segments go; repeated or with commas.")
    ] = None,
    into: Annotated[
        list[str] | None,
        typer.Option("--into", metavar="LOW..HIGH", help="Which key ranges come for them; repeated or with commas."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Return when it has ended, or when it began.")] = True,
    dry: DryRun = False,
) -> None:
    """Replace segments of a stream by new ones over the same keys."""
    from sluice_cli.dry_runs import dry_run
    from sluice_cli.errors import RefusedError, UsageError
    from sluice_cli.units import listed, ranges_of, segment_of

    if to is not None and (seal or into):
        raise UsageError("--to excludes --seal and --into", "give the number of segments, or which ones go and come")
    if to is not None:
        found = session.rest.get(path(stream))
        if not found["segments"]:
            raise RefusedError(f"stream {stream} has no segments that could be scaled: it is {found['state']}")
        body = even(found["segments"], to)
    elif seal and into:
        body = {"sealed": [segment_of(text) for text in listed(seal)], "ranges": ranges_of(into)}
    else:
        raise UsageError("scale into what?", "give --to N, or --seal SEGMENT and --into LOW..HIGH")
    if not body["sealed"]:
        _unchanged(session, stream)
        return
    if dry:
        dry_run(session, "POST", path(stream, "scale"), body)
        return
    answer = session.rest.change("POST", path(stream, "scale"), body)
    done = wait and _wait(session, stream, answer.body["epoch"], answer.request)
    went, came = len(body["sealed"]), len(body["ranges"])
    session.done(
        f"stream {stream}: {went} segment{'s' * (went != 1)} {'replaced' if done else 'being replaced'} by {came}",
        answer._replace(body={**answer.body, "done": done}),
    )


def even(segments: list[dict[str, Any]], count: int) -> dict[str, Any]:
    """What to send for `count` equal segments; those that are as wanted already stay."""
    from sluice.domain.stream.scale import equal_ranges

    wanted = equal_ranges(count)
    there, kept = {(s["low"], s["high"]) for s in segments}, set(wanted)
    return {
        "sealed": [s["id"] for s in segments if (s["low"], s["high"]) not in kept],
        "ranges": [list(r) for r in wanted if r not in there],
    }


def _unchanged(session: Session, stream: str) -> None:
    if session.json:
        session.out.document({"segments": [], "done": True})
    else:
        session.out.text(f"stream {stream} has these segments already")


def _wait(session: Session, stream: str, epoch: int, request: str) -> bool:
    """Return True when the scale has ended. Raises CommandError if it has not in time, or if that is not known then."""
    from sluice_cli.api import NOT_NOW
    from sluice_cli.errors import CommandError, NoAnswerError, RefusedError, UnreachableError

    end = time.monotonic() + WAIT_S
    with session.out.progress(f"scaling {stream}", None):
        while True:
            why: CommandError = NoAnswerError(
                f"stream {stream} is still being scaled after {WAIT_S:g} s (request {request})"
            )
            try:
                if session.rest.get(path(stream, "scales", epoch))["done"]:
                    return True
            except (RefusedError, UnreachableError) as error:
                if isinstance(error, RefusedError) and error.status not in NOT_NOW:
                    raise
                why = error
            if time.monotonic() > end:
                why.hint = f"it goes on: `sluice stream scale-status {stream} {epoch}`, `sluice workflow list`"
                raise why
            time.sleep(LOOK_S)


@command(app, "scale-status")
def scale_status(
    session: Session,
    stream: Stream,
    epoch: Annotated[int, typer.Argument(metavar="EPOCH", min=0, help="The one that the scale began on.")],
) -> None:
    """Say whether the scale that began on an epoch has ended."""
    found = session.rest.get(path(stream, "scales", epoch))
    session.show(found, lambda out, f: out.text("ended" if f["done"] else "still under way"))


@command(app, "segments")
def segments(
    session: Session,
    stream: Stream,
    epoch: Annotated[int | None, typer.Option("--epoch", min=0, metavar="N", help="Those of that epoch.")] = None,
    moment: Annotated[
        str | None, typer.Option("--time", metavar="TIME", help="Those that were written to then; TIME as in --at.")
    ] = None,
    limit: Limit = None,
) -> None:
    """List the segments that are written to, now or then."""
    from sluice.lookback.times import moment_of
    from sluice_cli.rendering import SEGMENT_COLUMNS, segment_row

    at = moment_of(moment, session.now_ms) if moment is not None else None
    items = session.rest.pages(path(stream, "segments"), limit, epoch=epoch, time=at)
    session.items(items, SEGMENT_COLUMNS, segment_row, empty="nothing can be written to it")


@command(app, "topology")
def topology(
    session: Session,
    stream: Stream,
    begin: Begin = None,
    end: End = None,
    most: Annotated[
        int | None,
        typer.Option("--most", min=100, max=20_000, metavar="N", help="How many at most; of more, samples are shown."),
    ] = None,
) -> None:
    """Show all segments that a stream has or had, with their times, as the picture on the page is drawn from."""
    from sluice_cli.rendering_topology import draw_topology

    found = session.rest.get(path(stream, "topology"), most=most, to=end, **{"from": begin})
    session.show(found, draw_topology)


@command(app, "rates")
def rates(
    session: Session,
    stream: Stream,
    begin: Begin = None,
    end: End = None,
    bucket: Annotated[
        str | None, typer.Option("--bucket", metavar="TIME", help="Of the past: the mean of such a time, 1m to 1d.")
    ] = None,
) -> None:
    """Show what is written to each segment now; with --from, what was, where it has a policy."""
    from sluice_cli.rates import RATE_COLUMNS, measured, rate_row, show_past

    if begin is None and end is None and bucket is None:
        found = measured(session, path(stream, "rates"))
        session.show(found, lambda out, f: out.table(RATE_COLUMNS, map(rate_row, f["segments"]), empty="it is sealed"))
        return
    show_past(session, path(stream, "rates", "history"), begin, end, bucket)


@command(app, "successors")
def successors(session: Session, stream: Stream, segment: _Segment) -> None:
    """List the segments that came for one, each with all it came for."""
    from sluice_cli.rendering import SEGMENT_COLUMNS, segment_row
    from sluice_cli.units import segment_of, segment_text

    found = session.rest.get(path(stream, "segments", segment_of(segment), "successors"))
    session.items(
        found["items"],
        (*SEGMENT_COLUMNS, "came for"),
        lambda s: (*segment_row(s), ", ".join(map(segment_text, s["replaces"]))),
        empty="nothing came for it",
    )


@command(app, "locate")
def locate(session: Session, stream: Stream, segment: _Segment) -> None:
    """Say which segment store has a segment."""
    from sluice_cli.units import segment_of

    found = session.rest.get(path(stream, "segments", segment_of(segment), "location"))
    session.show(
        found,
        lambda out, f: out.fields(
            (("segment", f["segment"]), ("container", f["container"]), ("segment store", f["store"]))
        ),
    )
