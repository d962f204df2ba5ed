"""`sluice ingest status` and `reset`: what a store says of jobs, and forgetting one."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from distributed_ingest.job import ROOT, Definition, Job, checked_name
from distributed_ingest.stores import default_url, is_new_file, opened
from distributed_ingest.tally import Counts
from sluice_cli.errors import RefusedError, UsageError
from sluice_cli.output import Output
from sluice_cli.session import Session
from sluice_cli.units import show_size
from sluice_coordination import ConflictError, Document, DocumentStore, SourceState, Status, statuses

_TIMEOUT_S = 2.0
WATCH_S = 2.0
_CLEAR = "\x1b[H\x1b[2J"
_ROUNDS = 5


def watch(session: Session, name: str | None, store: str | None) -> None:
    """Print it every two seconds, until Ctrl-C. Raises CommandError."""
    with suppress(KeyboardInterrupt):
        while True:
            if sys.stdout.isatty():
                sys.stdout.write(_CLEAR)
            status(session, name, store)
            sys.stdout.flush()
            time.sleep(WATCH_S)


def status(session: Session, name: str | None, store: str | None) -> None:
    """Print one job, or all jobs of a store. Raises CommandError."""
    prefix = f"{ROOT}/{checked_name(name)}/" if name else f"{ROOT}/"
    documents = asyncio.run(_read(_url(name, store), prefix))
    jobs = jobs_of(documents, time.time_ns() // 1_000_000)
    if name:
        if not jobs:
            raise _unknown(name)
        session.show(jobs[0], _draw)
    else:
        session.items(
            jobs,
            ("job", "kind", "stream", ">nodes", ">under way", ">lag", ">records", ">bytes"),
            lambda j: (
                j["job"], j["kind"], j["stream"], len(j["nodes"]), _under_way(j), _lags(j["tasks"]),
                f"{j['written']['records']:,}", show_size(j["written"]["bytes"]),
            ),
            empty="there is no job",
        )  # fmt: skip


def reset(session: Session, name: str, store: str | None, *, force: bool) -> None:
    """Forget a job. Raises CommandError; RefusedError while nodes take part, without `force`."""
    removed = asyncio.run(_reset(_url(name, store), checked_name(name), force=force))
    if session.json:
        session.out.document({"job": name, "documents": removed})
    else:
        session.out.text(f"forgotten {name}, {removed} documents")


def jobs_of(documents: Mapping[str, Document], now_ms: int) -> list[dict[str, Any]]:
    """Return what documents say of each job, by name.

    `nodes` are those that say they live, by clocks on walls; `tasks` those on the board, with the `node` that holds
    each, if one does, and what it has reported last as `lag`.
    """
    return [
        _job(Job(name, msgspec.convert(documents[f"{ROOT}/{name}/job"].body, Definition)), documents, now_ms)
        for name in sorted({id.split("/")[1] for id in documents})
        if f"{ROOT}/{name}/job" in documents
    ]


def _job(job: Job, documents: Mapping[str, Document], now_ms: int) -> dict[str, Any]:
    def under(prefix: str) -> dict[str, dict[str, Any]]:
        return {id.removeprefix(prefix): found.body for id, found in documents.items() if id.startswith(prefix)}

    totals = documents.get(job.totals)
    counts = Counts() if totals is None else msgspec.convert(totals.body, Counts)
    sources = {name: msgspec.convert(body, SourceState) for name, body in under(f"{job.board}/source/").items()}
    prefix = f"{job.board}/part/"
    reported = statuses({id: found for id, found in documents.items() if id.startswith(prefix)}, now_ms)
    keys = {f"{prefix}{name}/{key}" for name, state in sources.items() for key in state.tasks} | reported.keys()
    return {
        "job": job.name,
        **msgspec.to_builtins(job.definition),
        "written": msgspec.to_builtins(counts),
        "nodes": sorted(t for t, body in under(f"{job.board}/node/").items() if body.get("expire", 0) > now_ms),
        "tasks": [_task(id.removeprefix(prefix), reported.get(id)) for id in sorted(keys)],
        "positions": {part: body["position"] for part, body in sorted(under(job.progress()).items())}
        | {name: state.position for name, state in sources.items() if name == "folder"},
    }


def _task(name: str, found: Status | None) -> dict[str, Any]:
    return {
        "task": name,
        "node": found.owner if found is not None and found.lives else "",
        "lag": found.report if found is not None else None,
    }


def _under_way(job: dict[str, Any]) -> int:
    return sum(task["node"] != "" for task in job["tasks"])


def _lags(tasks: list[dict[str, Any]]) -> str:
    """Return what tasks have left, of each unit."""
    left = Counter[str]()
    for task in tasks:
        if task["lag"]:
            left[task["lag"]["unit"]] += task["lag"]["left"]
    return ", ".join(show_size(n) if unit == "bytes" else f"{n:,} {unit}" for unit, n in left.items()) or "-"


def _draw(out: Output, job: dict[str, Any]) -> None:
    written = job["written"]
    out.fields(
        [
            ("job", job["job"]),
            ("source", f"{job['kind']} {' '.join(job['origins'])}"),
            ("stream", job["stream"]),
            ("records", f"{written['records']:,}, {show_size(written['bytes'])}, as the nodes have reported"),
            ("left out", written["skipped"] or None),
            ("nodes", ", ".join(job["nodes"]) or "none"),
            ("tasks", f"{_under_way(job)} under way, {len(job['tasks']) - _under_way(job)} waiting"),
            ("lag", _lags(job["tasks"])),
        ]
    )
    if job["tasks"]:
        rows = [(task["task"], task["node"] or "waits", _lags([task])) for task in job["tasks"]]
        out.table(("task", "node", ">lag"), rows, empty="")


async def _read(url: str, prefix: str) -> dict[str, Document]:
    if is_new_file(url):
        return {}
    async with opened(url, _TIMEOUT_S) as store:
        return await store.under(prefix)


async def _reset(url: str, name: str, *, force: bool) -> int:
    if is_new_file(url):
        raise _unknown(name)
    async with opened(url, _TIMEOUT_S) as store:
        prefix = f"{ROOT}/{name}/"
        documents = await store.under(prefix)
        if not documents:
            raise _unknown(name)
        jobs = jobs_of(documents, time.time_ns() // 1_000_000)
        living = jobs[0]["nodes"] if jobs else []
        if living and not force:
            raise RefusedError(
                f"nodes take part in {name}: {', '.join(living)}", "stop them first, or wait until their locks run out"
            )
        removed = 0
        for _ in range(_ROUNDS):
            removed += await _remove(store, documents)
            documents = await store.under(prefix)
            if not documents:
                return removed
        raise RefusedError(f"{name} is written to faster than it can be forgotten", "stop its nodes first")


async def _remove(store: DocumentStore, documents: Mapping[str, Document]) -> int:
    removed = 0
    for id, found in documents.items():
        try:
            await store.delete(id, found.version)
            removed += 1
        except ConflictError:
            # A node writes; the next round sees what.
            continue
    return removed


def _url(name: str | None, store: str | None) -> str:
    if store is None and name is None:
        raise UsageError("whose jobs?", "give a NAME, or a store with --store URL or SLUICE_INGEST_STORE")
    return store or default_url(name or "")


def _unknown(name: str) -> RefusedError:
    return RefusedError(
        f"there is no job {name} in this store", "`sluice ingest status --store URL` lists those of a store"
    )
