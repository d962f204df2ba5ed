"""`sluice stream`: streams, their configuration, creation and deletion. Scaling is in `scaling.py`."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from sluice_cli.arguments import At, DryRun, Limit, Scope, Stream
from sluice_cli.command import command, group
from sluice_cli.confirmation import Yes, confirm, stream_losses, truncation_losses
from sluice_cli.session import Session

app = group("Streams: create, look at, write, read, scale, truncate, seal, delete.")

_Segments = Annotated[int | None, typer.Option("--segments", min=1, metavar="N", help="A fixed number of segments.")]
_Scale = Annotated[
    str | None,
    typer.Option("--scale", metavar="events:N|kbytes:N", help="Scale by load, per segment and second."),
]
_Factor = Annotated[
    int | None, typer.Option("--factor", min=2, metavar="N", help="Into how many a segment is split at most.")
]
_Min = Annotated[int | None, typer.Option("--min", min=1, metavar="N", help="How many segments there are at least.")]
_Retain = Annotated[
    str | None,
    typer.Option("--retain", metavar="POLICY", help="size=1GiB..10GiB, time=1h..2d or none."),
]
_Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="May be repeated.")]
_Rollover = Annotated[str | None, typer.Option("--rollover", metavar="SIZE", help="Of a segment's parts.")]
_Timeout = Annotated[
    str | None,
    typer.Option("--writer-timeout", metavar="TIME", help="After it a silent writer holds up no watermark."),
]


class _Window(StrEnum):
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


class _Sort(StrEnum):
    NAME = "name"
    SEGMENTS = "segments"
    EPOCH = "epoch"
    CHANGED = "changed"


def path(stream: str, *more: str | int) -> str:
    """The path of a stream, or of something of it. Raises UsageError."""
    from sluice_cli.api import path_of
    from sluice_cli.units import scoped

    scope, name = scoped(stream)
    return path_of("scopes", scope, "streams", name, *more)


@command(app, "list")
def list_streams(
    session: Session,
    scope: Scope,
    tag: Annotated[str | None, typer.Option("--tag", metavar="TAG", help="Only those with this tag.")] = None,
    internal: Annotated[bool, typer.Option("--internal", help="Also those that Sluice keeps for itself.")] = False,
    limit: Limit = None,
) -> None:
    """List the streams of a scope."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering import STREAM_COLUMNS, stream_row

    items = session.rest.pages(path_of("scopes", scope, "streams"), limit, tag=tag, internal=internal or None)
    session.items(items, STREAM_COLUMNS, stream_row, empty=f"scope {scope} has no such streams")


@command(app, "find")
def find_streams(
    session: Session,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="Part of SCOPE/NAME or of a tag.")] = None,
    state: Annotated[str | None, typer.Option("--state", metavar="STATE", help="Such as SCALING.")] = None,
    sort: Annotated[_Sort | None, typer.Option("--sort", help="By name, or the largest or latest first.")] = None,
    tag: Annotated[str | None, typer.Option("--tag", metavar="TAG", help="Only those with this tag.")] = None,
    scope: Annotated[str | None, typer.Option("--scope", metavar="SCOPE")] = None,
    internal: Annotated[bool, typer.Option("--internal", help="Also those that Sluice keeps for itself.")] = False,
    limit: Limit = None,
) -> None:
    """List the streams of all scopes, with what is under way and the last decision on each."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering import FOUND_STREAM_COLUMNS, found_stream_row

    parameters = {"q": text, "state": state, "sort": sort, "tag": tag, "scope": scope, "internal": internal or None}
    items = session.rest.pages(path_of("streams"), limit, **parameters)
    session.items(items, FOUND_STREAM_COLUMNS, found_stream_row, empty="there are no such streams")


@command(app, "loads")
def loads(
    session: Session,
    streams: Annotated[
        list[str], typer.Argument(metavar="SCOPE/STREAM…", help="A hundred at most.", show_default=False)
    ],
) -> None:
    """Measure what is written to streams a second, what they hold, and which reader group is slowest."""
    from sluice_cli.rates import LOAD_COLUMNS, load_row, measured_loads

    for stream in streams:
        path(stream)
    found = measured_loads(session, streams)
    session.show(found, lambda out, f: out.table(LOAD_COLUMNS, map(load_row, f["items"]), empty="there are none"))


@command(app, "create")
def create(
    session: Session,
    stream: Stream,
    segments: _Segments = None,
    scale: _Scale = None,
    factor: _Factor = None,
    minimum: _Min = None,
    retain: _Retain = None,
    tag: _Tags = None,
    rollover: _Rollover = None,
    writer_timeout: _Timeout = None,
) -> None:
    """Create a stream; one segment and no retention by default."""
    from sluice_cli.errors import RefusedError
    from sluice_cli.policies import scaling_of

    body = {"scaling": scaling_of(segments, scale, factor, minimum)}
    body |= _settings(retain, tag, rollover, writer_timeout)
    try:
        answer = session.rest.change("PUT", path(stream), body, {"If-None-Match": "*"})
    except RefusedError as error:
        if error.status == 412:
            error.hint = "change it with `sluice stream update`"
        raise
    session.done(f"stream {stream} created", answer)


@command(app, "update")
def update(
    session: Session,
    stream: Stream,
    segments: _Segments = None,
    scale: _Scale = None,
    factor: _Factor = None,
    minimum: _Min = None,
    retain: _Retain = None,
    tag: _Tags = None,
    rollover: _Rollover = None,
    writer_timeout: _Timeout = None,
    dry: DryRun = False,
) -> None:
    """Change what is given of a stream's configuration; the rest stays. `--tag ''` takes all tags away."""
    from sluice_cli.dry_runs import dry_run
    from sluice_cli.errors import UsageError
    from sluice_cli.policies import changed_scaling, check_scaling

    changes, scaling = _settings(retain, tag, rollover, writer_timeout), (segments, scale, factor, minimum)
    check_scaling(*scaling)
    scales = scaling != (None, None, None, None)
    if not changes and not scales:
        raise UsageError("nothing to change", "`sluice stream update --help` shows what can be changed")
    present = session.rest.read(path(stream))
    config = present.body["config"]
    if scales:
        changes["scaling"] = changed_scaling(config["scaling"], *scaling)
    if dry:
        dry_run(session, "PUT", path(stream), {**config, **changes}, headers={"If-Match": present.etag})
        return
    answer = session.rest.change("PUT", path(stream), {**config, **changes}, {"If-Match": present.etag})
    session.done(f"stream {stream} updated", answer)


@command(app, "show")
def show(session: Session, stream: Stream, at: At = None) -> None:
    """Show a stream, now or at a time."""
    from sluice_cli.rendering import draw_past_stream, draw_stream

    if at is None:
        session.show(session.rest.get(path(stream)), draw_stream)
    else:
        from sluice.lookback.replay import stream_at
        from sluice.lookback.times import moment_of
        from sluice_cli.units import scoped

        moment = moment_of(at, session.now_ms)
        session.show(stream_at(session.records, *scoped(stream), moment, session.out.progress), draw_past_stream)


@command(app, "statistics")
def statistics(
    session: Session,
    stream: Stream,
    window: Annotated[_Window, typer.Option("--window", help="How long a window is.")] = _Window.MINUTE,
    count: Annotated[int, typer.Option("--count", min=1, max=120, metavar="N", help="How many windows at most.")] = 10,
) -> None:
    """Show what happened to a stream by minute, hour or day, and how old the figures are."""
    from sluice_cli.rendering_statistics import draw_statistics

    found = session.rest.get(path(stream, "statistics"), window=window.value, count=count)
    session.show(found, lambda out, document: draw_statistics(out, stream, document))


@command(app, "reports")
def reports(session: Session, stream: Stream) -> None:
    """Show what decisions rest on: hot and cold segments, the retention set, when the last reports came."""
    from sluice_cli.rendering_decisions import draw_reported

    session.show(session.rest.get(path(stream, "reports")), draw_reported)


@command(app, "truncate")
def truncate(
    session: Session,
    stream: Stream,
    cut: Annotated[
        list[str],
        typer.Option(
            "--cut",
            metavar="SEGMENT=OFFSET",
            help="Where it begins from now on; repeated or with commas.",
            show_default=False,
        ),
    ],
    yes: Yes = False,
    dry: DryRun = False,
) -> None:
    """Drop everything of a stream that lies before a cut; asks first at a terminal."""
    from sluice_cli.dry_runs import dry_run
    from sluice_cli.units import cut_of

    begin, one = cut_of(cut), path(stream)
    if dry:
        dry_run(session, "POST", path(stream, "truncate"), {"cut": begin})
        return
    confirm(session, f"Truncating stream {stream}", lambda: truncation_losses(session, one, begin), yes=yes)
    session.done(f"stream {stream} truncated", session.rest.change("POST", path(stream, "truncate"), {"cut": begin}))


@command(app, "seal")
def seal(session: Session, stream: Stream, dry: DryRun = False) -> None:
    """Seal a stream: nothing more can be written to it. Open transactions are aborted."""
    from sluice_cli.dry_runs import dry_run

    if dry:
        dry_run(session, "POST", path(stream, "seal"))
        return
    session.done(f"stream {stream} sealed", session.rest.change("POST", path(stream, "seal")))


@command(app, "delete")
def delete(session: Session, stream: Stream, yes: Yes = False, dry: DryRun = False) -> None:
    """Delete a stream, which must be sealed, with all its data; asks first at a terminal."""
    from sluice_cli.dry_runs import dry_run

    one = path(stream)
    if dry:
        dry_run(session, "DELETE", one)
        return
    confirm(session, f"Deleting stream {stream}", lambda: stream_losses(session, one), yes=yes)
    session.done(f"stream {stream} deleted", session.rest.change("DELETE", one))


def _settings(
    retain: str | None, tags: list[str] | None, rollover: str | None, writer_timeout: str | None
) -> dict[str, Any]:
    """What is given, as the API wants it. Raises UsageError."""
    from sluice.lookback.times import duration_of
    from sluice_cli.policies import retention_of
    from sluice_cli.units import size_of

    settings: dict[str, Any] = {}
    if retain is not None:
        settings["retention"] = retention_of(retain)
    if tags is not None:
        settings["tags"] = [tag for tag in tags if tag]
    if rollover is not None:
        settings["rolloverSizeBytes"] = size_of(rollover)
    if writer_timeout is not None:
        settings["timestampAggregationTimeout"] = duration_of(writer_timeout)
    return settings
