"""How resources are shown: fields of one, rows of many. Takes what the API answers; prints nothing by itself
but through `Output`.
"""

from typing import Any

from sluice.lookback.times import show_time
from sluice_cli.output import Output
from sluice_cli.policies import show_retention, show_scaling
from sluice_cli.units import segment_text, show_age, show_duration, show_size

WORKFLOW_COLUMNS = (
    "on", "kind", "state", "since", "for", "step", ">attempts", "last error", "waits for", "can cancel",
)  # fmt: skip
TRANSACTION_COLUMNS = ("transaction", "state", "opened", "lease ends", "ended", "reason", ">queue position")
LETTER_COLUMNS = ("partition/offset", "at", "from", "key", "reason", "settled")
MEMBER_COLUMNS = ("service", "instance", "endpoints", "since", "last heartbeat", "problems")
SEGMENT_COLUMNS = ("segment", ">id", ">from", ">to", ">container", "segment store")
FOUND_STREAM_COLUMNS = (
    "stream", "state", ">epoch", ">segments", "under way", ">transactions", "last decision", "changed", "tags",
)  # fmt: skip
STREAM_COLUMNS = ("stream", "state", ">epoch", ">segments", "tags")


def workflow_row(workflow: dict[str, Any], now_ms: int) -> tuple[object, ...]:
    return (
        workflow["aggregate"],
        workflow["kind"],
        workflow.get("state"),
        show_time(workflow["since"]),
        show_age(workflow["since"], now_ms),
        workflow["step"],
        workflow["attempts"] or "",
        workflow["lastError"],
        _chain(workflow.get("waitsFor")),
        "yes" if workflow.get("canCancel") else "no",
    )


def _chain(wait: dict[str, Any] | None) -> str:
    """What keeps a workflow, and what keeps that."""
    reasons = []
    while wait is not None:
        reasons.append(wait["why"])
        wait = wait.get("then")
    return "; ".join(reasons)


def transaction_row(transaction: dict[str, Any]) -> tuple[object, ...]:
    return (
        transaction["id"],
        transaction["state"],
        show_time(transaction.get("openedAt")),
        show_time(transaction.get("leaseEndsAt")),
        show_time(transaction.get("endedAt")),
        transaction.get("reason"),
        transaction.get("queuePosition"),
    )


def letter_row(letter: dict[str, Any]) -> tuple[object, ...]:
    stands_at = f"{letter['partition']}/{letter['offset']}"
    return stands_at, show_time(letter["at"]), letter["topic"], letter["key"], letter["reason"], letter.get("settled")


def member_row(member: dict[str, Any], now_ms: int) -> tuple[object, ...]:
    endpoints = ", ".join(f"{protocol} {address}" for protocol, address in sorted(member["endpoints"].items()))
    seen = member.get("lastSeen")
    last = f"{show_age(seen, now_ms)} ago" if seen is not None else ""
    problems = "; ".join(f"{check}: {problem}" for check, problem in member.get("problems", {}).items())
    return member["service"], member["instance"], endpoints, show_time(member["since"]), last, problems


def segment_row(segment: dict[str, Any]) -> tuple[object, ...]:
    id = segment["id"]
    return segment_text(id), id, segment["low"], segment["high"], segment.get("container"), store_text(segment)


def store_text(found: dict[str, Any], nowhere: str = "") -> str:
    """The segment store that runs a container, and what is wrong with that container."""
    return ", ".join(filter(None, (found.get("store") or nowhere, found.get("problem"))))


def state_text(found: dict[str, Any]) -> str:
    """The state of a stream or table in a list, and how many of its segments can be neither written nor read."""
    many = found.get("unreachable")
    return f"{found['state']}, {many} unreachable" if many else str(found["state"])


def unreachable_text(found: dict[str, Any], what: str) -> str:
    """How many segments can be neither written nor read, since when and why; empty if all can."""
    lost = found.get("unreachable")
    if lost is None:
        return ""
    gone = lost["gone"]
    stores = [f"{store} has gone" if store in gone else f"{store} does not answer" for store in lost["stores"]]
    why = ", ".join(stores) or "no segment store runs them"
    return f"{lost['segments']} of {len(found['segments'])} {what} since {show_time(lost['since'])}: {why}"


def stream_row(stream: dict[str, Any]) -> tuple[object, ...]:
    return stream["name"], state_text(stream), stream["epoch"], stream["segments"], ", ".join(stream["tags"])


def found_stream_row(stream: dict[str, Any]) -> tuple[object, ...]:
    decision, failing = stream.get("lastDecision"), " (failing)" if stream.get("failing") else ""
    return (
        f"{stream['scope']}/{stream['name']}",
        state_text(stream),
        stream["epoch"],
        stream["segments"],
        f"{stream.get('workflow', '')}{failing}",
        stream["transactions"] or "",
        f"{decision['kind']}: {decision['code']}" if decision else "",
        show_time(stream["changedAt"]),
        ", ".join(stream["tags"]),
    )


def draw_containers(out: Output, found: dict[str, Any]) -> None:
    """The container map, and segment stores that run nothing."""
    load = found.get("load")
    columns = (">container", "segment store", *((">bytes/s when measured",) if load else ()))
    rows = (
        (item["container"], store_text(item, "no store"), *((load.get(str(item["container"]), 0),) if load else ()))
        for item in found["items"]
    )
    out.table(columns, rows, empty="there are no containers")
    idle = set(found["stores"]) - {item.get("store") for item in found["items"]}
    changed = found.get("assignedAt")
    out.fields(
        (
            ("segment stores", ", ".join(found["stores"]) or "none"),
            ("without container", ", ".join(sorted(idle))),
            ("drained", ", ".join(found.get("drained", ()))),
            ("last changed", show_time(changed) if changed else "never"),
        )
    )


def draw_scope(out: Output, scope: dict[str, Any]) -> None:
    out.fields(
        (
            ("scope", scope["name"]),
            ("created", show_time(scope["createdAt"])),
            ("streams", scope["streams"]),
            ("internal streams", scope["internalStreams"]),
            ("reader groups", scope["readerGroups"]),
            ("tables", scope["tables"]),
            ("under way", workflow_text(scope.get("workflow"))),
        )
    )


def draw_past_scope(out: Output, scope: dict[str, Any]) -> None:
    draw_scope(out, scope)
    names = scope["names"]
    rows = [(kind, name) for kind in ("streams", "readerGroups", "tables") for name in names[kind]]
    out.table(("kind", "name"), ((_KINDS[kind], name) for kind, name in rows), empty="it held nothing")
    draw_record(out, scope)


_KINDS = {"streams": "stream", "readerGroups": "reader group", "tables": "table"}


def draw_stream(out: Output, stream: dict[str, Any]) -> None:
    """A stream with its segments."""
    _draw_stream(out, stream)
    out.table(SEGMENT_COLUMNS, map(segment_row, stream["segments"]), empty="nothing can be written to it")


def _draw_stream(out: Output, stream: dict[str, Any]) -> None:
    config, counts = stream["config"], stream["transactions"]
    out.fields(
        (
            ("stream", f"{stream['scope']}/{stream['name']}"),
            ("state", stream["state"]),
            ("unreachable", unreachable_text(stream, "segments")),
            ("created", show_time(stream["createdAt"])),
            ("epoch", stream["epoch"]),
            ("scaling", show_scaling(config["scaling"])),
            ("retention", show_retention(config.get("retention"))),
            ("tags", ", ".join(config["tags"])),
            ("rollover", show_size(config["rolloverSizeBytes"]) if config["rolloverSizeBytes"] else ""),
            ("head", cut_text(stream["headCut"])),
            ("truncated", show_size(stream["truncatedBytes"])),
            ("under way", workflow_text(stream.get("workflow"))),
            ("waiting", _waiting(stream.get("waiting"))),
            ("transactions", ", ".join(f"{counts[kind]} {kind}" for kind in ("open", "waiting", "aborting"))),
            ("ended", f"{counts['ended']} are remembered, each for {show_duration(counts['endedKeptMs'])} or more"),
            *(("subscriber", f"{s['name']} at {cut_text(s['cut']) or 'no cut yet'}") for s in stream["subscribers"]),
            *((f"{d['kind']} decision", f"{d['code']}: {d['reason']}") for d in stream["decisions"]),
            ("undecided", _undecided(stream.get("undecidedSince"))),
            ("mark stream", stream["markStream"]),
            ("watermark", _watermark(stream.get("watermark"))),
        )
    )


def _undecided(since: int | None) -> str:
    return f"no retention-spark decides by its policies since {show_time(since)}" if since is not None else ""


def draw_past_stream(out: Output, stream: dict[str, Any]) -> None:
    """As above; the journal does not say which segment store has a segment."""
    _draw_stream(out, stream)
    rows = (segment_row(segment)[:4] for segment in stream["segments"])
    out.table(SEGMENT_COLUMNS[:4], rows, empty="nothing could be written to it")
    draw_record(out, stream)


def draw_record(out: Output, past: dict[str, Any]) -> None:
    """Which record of the journal made something so."""
    record = past["record"]
    where = f"journal {record['partition']}@{record['offset']}"
    request = f", request {record['request']}" if "request" in record else ""
    out.fields(
        (
            ("as of", show_time(past["at"])),
            (
                "made so by",
                f"{', '.join(record['types'])} ({where}, {show_time(record['at'])}, {record['by']}{request})",
            ),
        )
    )


def draw_transaction(out: Output, transaction: dict[str, Any]) -> None:
    lease = transaction.get("leaseMs")
    out.fields(
        (
            ("transaction", transaction["id"]),
            ("state", transaction["state"]),
            ("opened", show_time(transaction.get("openedAt"))),
            ("lease", show_duration(lease) if lease is not None else ""),
            ("last ping", show_time(transaction.get("lastActivityAt"))),
            ("lease ends", show_time(transaction.get("leaseEndsAt"))),
            ("dies", show_time(transaction.get("diesAt"))),
            ("writer", transaction.get("writer")),
            ("ended", show_time(transaction.get("endedAt"))),
            ("reason", transaction.get("reason")),
            ("under way", workflow_text(transaction.get("workflow"))),
        )
    )


def draw_letter(out: Output, letter: dict[str, Any]) -> None:
    out.fields(
        (
            ("partition/offset", f"{letter['partition']}/{letter['offset']}"),
            ("from", letter["topic"]),
            ("key", letter["key"]),
            ("reason", letter["reason"]),
            ("reported by", letter["service"]),
            ("at", show_time(letter["at"])),
            ("settled", letter.get("settled")),
            ("value" if letter["encoding"] == "text" else "value, base64", letter["value"]),
        )
    )


def draw_group(out: Output, group: dict[str, Any]) -> None:
    config = group["config"]
    interval = config["checkpointIntervalMs"]
    out.fields(
        (
            ("reader group", f"{group['scope']}/{group['name']}"),
            ("state", group["state"]),
            ("created", show_time(group["createdAt"])),
            ("id", group["id"]),
            ("generation", group["generation"]),
            ("retention", config["retention"]),
            ("refresh", show_duration(config["refreshMs"])),
            ("checkpoints", f"every {show_duration(interval)}" if interval >= 0 else "never"),
            ("under way", workflow_text(group.get("workflow"))),
        )
    )
    streams = ((n, cut_text(s.get("start") or {}), cut_text(s.get("end") or {})) for n, s in config["streams"].items())
    out.table(("stream", "from", "to"), ((n, s or "head", e or "for ever") for n, s, e in streams), empty="no streams")


def draw_table(out: Output, table: dict[str, Any]) -> None:
    config = table["config"]
    secondary, rollover = config["secondaryKeyLength"], config["rolloverSizeBytes"]
    out.fields(
        (
            ("table", f"{table['scope']}/{table['name']}"),
            ("state", table["state"]),
            ("unreachable", unreachable_text(table, "partitions")),
            ("created", show_time(table["createdAt"])),
            ("keys", f"{config['primaryKeyLength']} B" + (f" + {secondary} B" if secondary else "")),
            ("rollover", show_size(rollover) if rollover else ""),
            ("under way", workflow_text(table.get("workflow"))),
        )
    )
    rows = ((segment_text(s["id"]), s["low"], s["high"]) for s in table["segments"])
    out.table(("partition", ">from", ">to"), rows, empty="no partitions")


def draw_past_group(out: Output, group: dict[str, Any]) -> None:
    draw_group(out, group)
    draw_record(out, group)


def draw_past_table(out: Output, table: dict[str, Any]) -> None:
    draw_table(out, table)
    draw_record(out, table)


def workflow_text(workflow: dict[str, Any] | None) -> str:
    """What is being done and what keeps it; empty for nothing."""
    if workflow is None:
        return ""
    text = f"{workflow['kind']} since {show_time(workflow['since'])}"
    if workflow["attempts"]:
        text += f", step {workflow['step']} failed {workflow['attempts']} times: {workflow['lastError']}"
    elif workflow["lastError"]:
        text += f", step {workflow['step']} {workflow['lastError']}"
    return f"{text}, being cancelled" if workflow["cancelled"] else text


def cut_text(cut: dict[str, int]) -> str:
    """`0.#epoch.0=1024`, and so on."""
    return ", ".join(f"{segment_text(int(segment))}={offset}" for segment, offset in cut.items())


def _waiting(waiting: dict[str, Any] | None) -> str:
    return f"{waiting['kind']}, recorded at {show_time(waiting['at'])}" if waiting else ""


def _watermark(watermark: dict[str, Any] | None) -> str:
    return f"{watermark['lower']} to {watermark['upper']}, {show_time(watermark['at'])}" if watermark else ""
