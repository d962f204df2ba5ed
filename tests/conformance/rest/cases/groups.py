"""Reader groups (admin-rest-api 5.12 to 5.14, 10): their state is written here as their readers would."""

from typing import Any

from support import group_state as written

from conformance.calls import create_scope, create_stream
from conformance.case import Step, Subject, step
from conformance.group_calls import ID, OTHER_ID, ZERO_ID, create_group
from conformance.rest.calls import delete_group, get_group, list_groups
from conformance.run import Run
from sluice.pravega.store import MARK_ATTRIBUTE

# The original reads a state with its own client, in the few threads that this client's questions need as well.
REST_GROUPS = Subject("rest_group", alone=True)
case = REST_GROUPS.case


def segment(run: Run, number: int, epoch: int = 0, stream: str = "st") -> str:
    return f"{run.scope('sc')}/{stream}/{number}.#epoch.{epoch}"


def writes(*build: Any) -> Step:
    """Append entries to the state stream; each is made from the run."""

    async def act(run: Run) -> str:
        for one in build:
            await run.target.append(run.scope("sc"), "_RGrg", 0, one(run))
        return "SUCCESS"

    return step("write the state of a group", act)


def marks_the_end() -> Step:
    """What was written so far is never read again."""

    async def act(run: Run) -> bool:
        scope = run.scope("sc")
        end = await run.target.append(scope, "_RGrg", 0, written.updates(written.create_checkpoint("cp")))
        return await run.target.mark(scope, "_RGrg", 0, MARK_ATTRIBUTE, end)

    return step("mark the end of the state", act, True)


def config(run: Run, id: str = ID, *, old: bool = False) -> bytes:
    return written.config([f"{run.scope('sc')}/st"], id, 0, old=old)


def initial(*numbers: int, id: str = ID, old: bool = False) -> Any:
    return lambda run: written.initial(config(run, id, old=old), [segment(run, n) for n in numbers])


def shown_group(streams: list[str], readers: list[str]) -> tuple[int, dict[str, Any]]:
    named = {"scopeName": "sc", "readerGroupName": "rg"}
    return 200, {**named, "streamList": streams, "onlineReaderIds": readers}


def updates(*records: bytes) -> Any:
    """An entry that names no segments."""
    return lambda _run: written.updates(*records)


BEGIN = (create_scope(), create_stream(segments=2), create_group())

case("list_none", create_scope(), list_groups().gives((200, {})))
case("list_in_missing_scope", list_groups().gives(404))
case("list", *BEGIN, list_groups().gives((200, {"readerGroups": [{"readerGroupName": "rg"}]})))

case("get_missing", create_scope(), get_group().gives(404))
case("get_in_missing_scope", get_group().gives(404))
case("get_without_state", *BEGIN, get_group().gives(500))
case("get_with_nobody", *BEGIN, writes(initial(0, 1)), get_group().gives(shown_group(["sc/st"], [])))
case(
    "get_with_readers",
    *BEGIN,
    writes(
        initial(0, 1),
        updates(written.add_reader("r1"), written.add_reader("r2")),
        lambda run: written.updates(written.acquire("r1", segment(run, 0))),
    ),
    get_group().gives(shown_group(["sc/st"], ["r1", "r2"])),
    writes(updates(written.remove_reader("r1"))),
    get_group().gives(shown_group(["sc/st"], ["r2"])),
)
case(
    "get_with_everything_read",
    *BEGIN,
    writes(
        initial(0),
        lambda run: written.updates(written.add_reader("r"), written.acquire("r", segment(run, 0))),
        lambda run: written.updates(written.complete("r", segment(run, 0), {})),
    ),
    get_group().gives(shown_group([], ["r"])),
)
case(
    "get_with_a_segment_yet_to_come",
    *BEGIN,
    writes(
        initial(0, 1),
        lambda run: written.updates(
            written.add_reader("r"),
            written.acquire("r", segment(run, 0)),
            written.acquire("r", segment(run, 1)),
            written.complete("r", segment(run, 0), {segment(run, 2, 1, "next"): (0, 1)}),
        ),
    ),
    get_group().gives(shown_group(["sc/st"], ["r"])),
    writes(
        lambda run: written.updates(
            written.complete("r", segment(run, 1), {segment(run, 2, 1, "next"): (0, 1)}),
        )
    ),
    get_group().gives(shown_group(["sc/next"], ["r"])),
)
case(
    "get_from_the_mark",
    *BEGIN,
    writes(initial(0), updates(written.add_reader("gone"))),
    marks_the_end(),
    writes(initial(1), updates(written.add_reader("r"))),
    get_group().gives(shown_group(["sc/st"], ["r"])),
)

case("delete", *BEGIN, writes(initial(0)), delete_group().gives(204), get_group().gives(404))
case("delete_of_an_old_client", *BEGIN, writes(initial(0, id=ZERO_ID, old=True)), delete_group().gives(204))
case("delete_of_another_id", *BEGIN, writes(initial(0, id=OTHER_ID)), delete_group().gives(404), list_groups())
case("delete_missing", create_scope(), delete_group().gives(404))
case(
    "delete_in_missing_scope",
    delete_group().differs(peer=500, sluice=404, why="the original fails inside where there is not even the scope"),
)
case(
    "delete_without_state",
    *BEGIN,
    delete_group().differs(
        peer=500, sluice=204, why="the original cannot delete a group that no Java reader has ever joined"
    ),
)
